// Package groups is the projection of error groups: every failure is counted in the
// group of its fingerprint, and a group that a person resolved or ignored opens
// again when its time has come.
//
// What a failure has to be compared with (the state of its group and how many
// failures it has) is kept in memory for every group; a limit bounds
// them. What one transaction counts is added up and written once for each group,
// in the order of their numbers.
//
// Only transactions of the writer change the groups in memory. A transaction works
// on copies, which take the place of the groups after its commit, so that a
// transaction that is rolled back leaves nothing behind and readers never see a
// group that is half changed.
package groups

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/fingerprint"
	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
	"redrive/internal/store/rows"
)

// Projection keeps the error groups.
type Projection struct {
	writer   *db.Writer
	reader   *db.Reader
	policies *rows.Policies
	log      projection.Log
	redact   func(string) string
	most     int // groups that there may be, without those that sources brought
	gathered *db.Slot[gathered]

	// The groups as of the last commit. The writer alone changes them, with the mutex, and
	// reads them without it; all others read them with it.
	mu           sync.RWMutex
	known        map[string]*group // by fingerprint
	fingerprints map[int64]string  // of the groups, by their numbers
	open         int64             // groups that no one has dealt with
	newest       int64             // the number of the newest group
	sizes        map[string]int    // groups by the source that brought them, '' for our own
}

// gathered is what one transaction counts, and how it changes the groups.
type gathered struct {
	sums

	changed map[string]*group // by fingerprint: groups to be known otherwise; nil: removed
	added   map[string]int    // how many more groups there are, as sizes; fewer when negative
	newest  int64             // the number of the newest group
}

// New returns a projection without groups; Load reads them. redact takes out of an
// error what no user may find.
func New(
	writer *db.Writer, reader *db.Reader, policies *rows.Policies, log projection.Log, redact func(string) string, most int,
) *Projection {
	p := &Projection{
		most:   cmp.Or(most, failures.DefaultGroups),
		writer: writer, reader: reader, policies: policies, log: log, redact: redact,
		known: map[string]*group{}, fingerprints: map[int64]string{}, sizes: map[string]int{},
	}
	p.gathered = db.NewSlot(func() *gathered {
		return &gathered{sums: newSums(), changed: map[string]*group{}, added: map[string]int{}, newest: p.newest}
	})

	return p
}

// sourceShare is which part of the groups that there may be each source has beside them.
const sourceShare = 10

// bound is how many groups a source may bring, or our own failures for an empty name.
func (p *Projection) bound(source string) int {
	if source == "" {
		return p.most
	}
	return max(1, p.most/sourceShare)
}

// size is how many groups a source has brought, as the transaction sees it.
func (p *Projection) size(g *gathered, source string) int { return p.sizes[source] + g.added[source] }

// group is what is kept in memory of an error group.
type group struct {
	id       int64
	source   string // that brought it
	state    failures.State
	patience failures.Patience
	failures int64
	hour     int64 // the newest one that was counted, since 1970
	inHour   int64
}

// Moved counts a job out of its group and in the one that it has now.
func (p *Projection) Moved(t *db.Tx, m projection.Move) {
	sums := &p.gathered.In(t).sums
	if m.From != nil {
		sums.job(m.From, -1)
	}

	if m.To != nil {
		sums.job(m.To, 1)
	}

	if m.From != nil && m.To != nil && m.To.Run > m.From.Run && m.From.Group != 0 {
		sums.of(m.From.Group).replayed++
	}
}

// Failed counts a failure, and tells the job its group.
func (p *Projection) Failed(t *db.Tx, f projection.Failure) error {
	at := db.Micros(f.Job.ChangedAt)

	g, err := p.groupOf(t, f.Cause, f.Job, at)
	if err != nil {
		return fmt.Errorf("count a failure in group %s: %w", f.Cause.Fingerprint, err)
	}

	// Count it in the copy of the group: in all, and in the newest hour.
	hour := at / db.MicrosPerHour
	g.failures++
	if hour > g.hour {
		g.hour, g.inHour = hour, 0
	}

	if hour == g.hour {
		g.inHour++
	}

	// The failure can be what a person waits for.
	if why := g.opens(db.FromMicros(at)); why != "" {
		g.state = failures.Open
		p.gathered.In(t).reopen(g.id, why, at)
	}

	p.gathered.In(t).failure(g.id, f, at)
	f.Job.Group = g.id

	return nil
}

// opens says why a failure now opens the group automatically.
func (g *group) opens(now time.Time) failures.Reopening {
	switch g.state {
	case failures.Resolved:
		return failures.ByFailure
	case failures.Ignored:
		return g.patience.Over(now, g.failures, g.inHour)
	}

	return ""
}

// groupOf returns the group of a cause as this transaction sees it, a new one
// for a cause that was never seen. Past the bound, that is the group "other". A source has
// a bound of its own, so that its causes take no group from those of others.
func (p *Projection) groupOf(t *db.Tx, c fingerprint.Cause, j *job.Job, at int64) (*group, error) {
	in := p.gathered.In(t)
	if g := p.group(in, c.Fingerprint); g != nil {
		return g, nil
	}

	// A new cause, if there is room for it.
	typ, source := j.Type, j.Source
	if p.size(in, source) >= p.bound(source) {
		c = fingerprint.Cause{
			Fingerprint: failures.OtherGroup, Class: failures.OtherGroup,
			Message: "new causes that came after the limit of error groups was reached",
		}
		typ, source = "", ""

		if other := p.group(in, c.Fingerprint); other != nil {
			return other, nil
		}
	}

	const insert = `INSERT INTO groups (id, fingerprint, type, class, message, frames, state, first_seen, last_seen,
			sample_seq, sample_execution, failures, dead, refused, retrying, replayed, recovered, relapsed, source)
		VALUES ($1, $2, $3, $4, $5, $6, 'open', $7, $7, 0, 0, 0, 0, 0, 0, 0, 0, 0, $8)`
	g := &group{id: in.newest + 1, source: source, state: failures.Open}
	if err := t.Run(insert, g.id, c.Fingerprint, typ, c.Class, c.Message, strings.Join(c.Frames, "\n"), at, source); err != nil {
		return nil, err
	}

	in.newest = g.id
	in.changed[c.Fingerprint] = g
	in.added[source]++

	return g, nil
}

// group returns the copy of a known group that this transaction may change, or
// nil when there is no such group (any more).
func (p *Projection) group(in *gathered, fingerprint string) *group {
	if g, changed := in.changed[fingerprint]; changed {
		return g
	}

	known := p.known[fingerprint]
	if known == nil {
		return nil
	}

	g := *known
	in.changed[fingerprint] = &g

	return &g
}

// Committed takes over the groups that the transaction changed, or removed.
func (p *Projection) Committed(t *db.Tx) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.learn(p.gathered.In(t).changed)
}

// learn puts groups in the place of those with the same fingerprints, and updates
// the number of open ones.
func (p *Projection) learn(changed map[string]*group) {
	for fingerprint, g := range changed {
		// The group of before goes, with all that is counted of it.
		if before := p.known[fingerprint]; before != nil {
			if before.state == failures.Open {
				p.open--
			}

			p.sizes[before.source]--
			delete(p.known, fingerprint)
			delete(p.fingerprints, before.id)
		}

		if g == nil {
			continue
		}

		if g.state == failures.Open {
			p.open++
		}

		p.newest = max(p.newest, g.id)
		p.sizes[g.source]++
		p.known[fingerprint], p.fingerprints[g.id] = g, fingerprint
	}
}

// Open is how many groups no one has dealt with, as of the last commit. Only code
// that the writer runs may call it.
func (p *Projection) Open() int64 { return p.open }

// Load reads the groups at the start, each with the newest hour in which it had
// failures: an ignored group may open when there are too many within an hour.
func (p *Projection) Load(src db.Source) error {
	const query = `SELECT fingerprint, id, source, state, until, until_count, until_rate, failures,
			coalesce((SELECT hour FROM group_hours WHERE group_id = id ORDER BY hour DESC LIMIT 1), 0),
			coalesce((SELECT failures FROM group_hours WHERE group_id = id ORDER BY hour DESC LIMIT 1), 0)
		FROM groups`
	type row struct {
		fingerprint string
		group
	}

	all, err := db.All(src, query, func(r *row) []any {
		return []any{
			&r.fingerprint, &r.id, &r.source, &r.state,
			db.Time(&r.patience.Until), &r.patience.Count, &r.patience.Rate, &r.failures, &r.hour, &r.inHour,
		}
	})
	if err != nil {
		return fmt.Errorf("read the error groups: %w", err)
	}

	loaded := make(map[string]*group, len(all))
	for i := range all {
		loaded[all[i].fingerprint] = &all[i].group
	}

	p.learn(loaded)

	return nil
}

// Of returns the error groups to which the jobs of dead letters belong, by their
// numbers, from memory: of each its fingerprint, and how many failures it has.
func (p *Projection) Of(_ context.Context, dead []filter.DeadLetterRow) (map[int64]failures.Group, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()

	all := make(map[int64]failures.Group, len(dead))
	for _, l := range dead {
		fingerprint := p.fingerprints[l.Job.Group]
		if g := p.known[fingerprint]; g != nil {
			known := failures.Group{Number: g.id, Failures: g.failures}
			known.Fingerprint = fingerprint
			all[g.id] = known
		}
	}

	return all, nil
}

// Classes returns the error classes of groups, by their fingerprints.
func (p *Projection) Classes(ctx context.Context, fingerprints []string) (map[string]string, error) {
	const query = `SELECT fingerprint, class FROM groups WHERE fingerprint IN (SELECT value FROM json_each($1))`
	all, err := db.Map[string, string](p.reader.In(ctx), query, db.Texts(fingerprints))
	return all, db.Wrap(err, "read the classes of error groups")
}
