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
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
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

	mu           sync.RWMutex      // for those who read the groups beside the writer
	known        map[string]*group // by fingerprint
	fingerprints map[int64]string  // of the groups, by their numbers
	open         int64             // groups that no one has dealt with
	newest       int64             // the number of the newest group
	sizes        map[string]int    // groups by the source that brought them, '' for our own

	gathered *db.Slot[gathered]
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

	hour := at / db.MicrosPerHour
	g.failures++
	if hour > g.hour {
		g.hour, g.inHour = hour, 0
	}

	if hour == g.hour {
		g.inHour++
	}

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
func (p *Projection) Of(_ context.Context, letters []filter.DeadLetterRow) (map[int64]failures.Group, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()

	all := make(map[int64]failures.Group, len(letters))
	for _, l := range letters {
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

// Invariants are what holds after every commit.
func (*Projection) Invariants() []db.Invariant {
	return []db.Invariant{
		{What: "counts of error groups match their jobs", Query: `SELECT fingerprint AS id FROM groups LEFT JOIN (
				SELECT group_id, count(*) FILTER (WHERE letter = 'stored') AS dead_letters,
					count(*) FILTER (WHERE letter = 'refused') AS refused_letters,
					count(*) FILTER (WHERE state IN ('scheduled', 'returning', 'returned', 'available', 'active', 'retryable')) AS waiting
				FROM jobs WHERE group_id <> 0 GROUP BY group_id) AS found ON found.group_id = groups.id
			WHERE dead <> coalesce(dead_letters, 0) OR refused <> coalesce(refused_letters, 0) OR retrying <> coalesce(waiting, 0)`},
		{What: "the error group of every job exists",
			Query: `SELECT id FROM jobs WHERE group_id <> 0 AND group_id NOT IN (SELECT id FROM groups)`},
	}
}

// Decide writes down what a person decides about an error group: that it is
// resolved, ignored or open. It returns the group as it is then, without its
// queues and hours, or job.ErrNotFound. What was decided before is forgotten.
func (p *Projection) Decide(
	ctx context.Context, now time.Time, fingerprint string, to failures.Decision, by audit.Actor,
) (failures.Group, error) {
	const update = `UPDATE groups SET state = $2, state_at = $3, state_by = $4, reopened_at = 0, reopened_by = '',
		until = $5, until_count = $6, until_rate = $7 WHERE id = $1`

	return p.act(ctx, fingerprint, func(t *db.Tx, g *group, before failures.Group) (audit.Entry, error) {
		patience := failures.Patience{}
		if to.State == failures.Ignored {
			patience = to.Patience
			if to.More > 0 {
				patience.Count = g.failures + to.More
			}
		}

		g.state, g.patience = to.State, patience
		p.gathered.In(t).of(g.id).opened = "" // an earlier failure in this transaction
		e := audit.Entry{At: now, Actor: by, Action: action(to.State), Before: string(before.State), After: to.Words()}

		return e, t.ExecExactly(1, update, g.id, string(to.State), db.Micros(now), by.Name,
			db.Micros(patience.Until), patience.Count, patience.Rate)
	})
}

// action is what the audit log calls a decision. These names are stable: filters
// of the log name them.
func action(to failures.State) string {
	switch to {
	case failures.Resolved:
		return "group.resolve"
	case failures.Ignored:
		return "group.ignore"
	}

	return "group.reopen"
}

// Note writes a note on an error group, or removes it with an empty one.
func (p *Projection) Note(ctx context.Context, now time.Time, fingerprint, note string, by audit.Actor) (failures.Group, error) {
	const update = `UPDATE groups SET note = $2 WHERE id = $1`

	return p.act(ctx, fingerprint, func(t *db.Tx, g *group, before failures.Group) (audit.Entry, error) {
		e := audit.Entry{At: now, Actor: by, Action: "group.note", Before: before.Note, After: note}
		return e, t.ExecExactly(1, update, g.id, note)
	})
}

// act lets a person change a group, and returns it as it is then. change gets the
// group as the writer knows it and as it was written before, and says what the
// audit log tells of the act.
func (p *Projection) act(
	ctx context.Context, fingerprint string, change func(*db.Tx, *group, failures.Group) (audit.Entry, error),
) (failures.Group, error) {
	return db.Write(ctx, p.writer, 1, func(t *db.Tx) (failures.Group, error) {
		g := p.group(p.gathered.In(t), fingerprint)
		if g == nil {
			return failures.Group{}, fmt.Errorf("error group %s: %w", clip.Text(fingerprint, 64), job.ErrNotFound)
		}

		before, err := One(t, `id = $1`, g.id)
		if err != nil {
			return failures.Group{}, err
		}

		e, err := change(t, g, before)
		if err != nil {
			return failures.Group{}, fmt.Errorf("change error group %s: %w", fingerprint, err)
		}

		t.Touch()

		e.Subject, e.Count = fingerprint, 1
		if err := p.log.Log(t, e); err != nil {
			return failures.Group{}, err
		}

		return One(t, `id = $1`, g.id)
	})
}

// ReopenDue opens the groups that were ignored until now or earlier, and returns
// how many. Those that are ignored until something else open with the failure
// that makes it true.
func (p *Projection) ReopenDue(ctx context.Context, now time.Time) (int, error) {
	return db.Write(ctx, p.writer, 1, func(t *db.Tx) (int, error) {
		opened, in := 0, p.gathered.In(t)
		all := maps.Clone(p.known)
		maps.Copy(all, in.changed)

		for fingerprint, g := range all {
			if g == nil { // removed
				continue
			}

			until := g.patience.Until
			if g.state != failures.Ignored || until.IsZero() || until.After(now) {
				continue
			}

			p.group(in, fingerprint).state = failures.Open
			in.reopen(g.id, failures.ByDate, db.Micros(until))

			opened++
		}

		if opened > 0 {
			t.Touch()
		}

		return opened, nil
	})
}

// Size is how many groups there are, without those that sources brought: these have a bound
// of their own.
func (p *Projection) Size() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.sizes[""]
}

// MakeRoom prunes groups of any age, the oldest first, while more than nine tenths
// of those that there may be are there. Our own groups and those that each source brought
// are looked at one after the other, and those of one make no room for another.
func (p *Projection) MakeRoom(t *db.Tx, now time.Time, most int64) (removed int, err error) {
	for _, source := range slices.Sorted(maps.Keys(p.sizes)) {
		over := int64(p.size(p.gathered.In(t), source) - p.bound(source)*9/10)
		over = min(over, most-int64(removed))
		if over <= 0 {
			continue
		}

		n, err := p.prune(t, `source = $4`, now, over, source)
		if err != nil {
			return removed, err
		}

		removed += n
	}

	return removed, nil
}

// Prune removes error groups that no job belongs to any more and in which
// nothing has failed since a time, at most so many. Those stay that have a note,
// or that a person resolved or ignores; and so does the newest, because the
// next number follows from it and none is given twice.
func (p *Projection) Prune(t *db.Tx, before time.Time, most int64) (int, error) {
	return p.prune(t, `true`, before, most)
}

// prune is Prune of the groups for which a condition holds.
func (p *Projection) prune(t *db.Tx, condition string, before time.Time, most int64, args ...any) (int, error) {
	in := p.gathered.In(t)
	query := `SELECT id, fingerprint FROM groups AS g WHERE state = 'open' AND last_seen < $1 AND note = '' AND id <> $2
		AND NOT EXISTS (SELECT 1 FROM jobs WHERE group_id = g.id AND group_id <> 0) AND ` + condition + ` ORDER BY last_seen, id LIMIT $3 + 0`

	old, err := db.Map[int64, string](t, query, append([]any{db.Micros(before), in.newest, most}, args...)...)
	if err != nil {
		return 0, err
	}

	maps.DeleteFunc(old, func(id int64, _ string) bool { return in.groups[id] != nil }) // something of it waits to be written

	if len(old) == 0 {
		return 0, nil
	}

	const hours = `DELETE FROM group_hours WHERE group_id IN (SELECT value FROM json_each($1))`
	const queues = `DELETE FROM group_queues WHERE group_id IN (SELECT value FROM json_each($1))`
	const groups = `DELETE FROM groups WHERE id IN (SELECT value FROM json_each($1))`
	numbers := db.Numbers(slices.Collect(maps.Keys(old)))
	if err := db.Steps(t, db.Any(hours, numbers), db.Any(queues, numbers), db.Any(groups, numbers)); err != nil {
		return 0, fmt.Errorf("remove old error groups: %w", err)
	}

	for _, fingerprint := range old {
		in.added[p.group(in, fingerprint).source]--
		in.changed[fingerprint] = nil
	}

	t.Touch()

	return len(old), nil
}
