// Package groups is the projection of error groups: every failure is counted in the
// group of its fingerprint, and a group that a person resolved or ignored opens
// again when its time has come.
//
// The projection keeps in memory which groups exist, by their fingerprints, and which of them
// a person has resolved or ignored. A limit bounds the number of groups. What one transaction
// counts is added up and written once for each group, in the order of their numbers.
//
// After the sums, a statement decides from the stored row whether the failures open their
// group: so the decision is right even if another process wrote part of the row. An act of a
// person has a transaction of its own, so that only failures after the act open the group.
//
// What is in memory changes only after the commit of a transaction, so one that is rolled back
// leaves nothing behind.
package groups

import (
	"cmp"
	"context"
	"fmt"
	"sync"

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
	writer    *db.Writer
	reader    *db.Reader
	policies  *rows.Policies
	log       projection.Log
	redact    func(string) string
	maxGroups int // how many groups there may be, not counting those of sources
	gathered  *db.Slot[gathered]

	// The groups as of the last commit. The writer alone changes them, with the mutex, and
	// reads them without it; all others read them with it.
	mu           sync.RWMutex
	known        map[string]group // by fingerprint
	fingerprints map[int64]string // of the groups, by their numbers
	decided      map[int64]bool   // those that a person resolved or ignores, by their numbers
	newest       int64            // the number of the newest group
	sizes        map[string]int   // how many groups each source has brought; "": Redrive's own jobs
}

// group is what is kept in memory of an error group. It never changes.
type group struct {
	id     int64
	source string // the source whose job failed first in this way; "": a job of our own
}

// gathered is what one transaction counts, and how it changes the groups.
type gathered struct {
	sums

	made    map[string]group // by fingerprint
	removed map[string]bool  // by fingerprint
	decided map[int64]bool   // as a person decided in this transaction; false: open
	sizes   map[string]int   // by how much the number of groups of each source changes
	newest  int64            // the number of the newest group
}

// New returns a projection without groups, which Load reads from the database. redact hides the
// secrets in a text. maxGroups is how many groups there may be; 0 means failures.DefaultGroups.
func New(
	writer *db.Writer, reader *db.Reader, policies *rows.Policies, log projection.Log, redact func(string) string, maxGroups int,
) *Projection {
	p := &Projection{
		maxGroups: cmp.Or(maxGroups, failures.DefaultGroups),
		writer:    writer, reader: reader, policies: policies, log: log, redact: redact,
		known: map[string]group{}, fingerprints: map[int64]string{}, decided: map[int64]bool{}, sizes: map[string]int{},
	}
	p.gathered = db.NewSlot(func() *gathered {
		return &gathered{
			sums: newSums(), made: map[string]group{}, removed: map[string]bool{}, decided: map[int64]bool{},
			sizes: map[string]int{}, newest: p.newest,
		}
	})

	return p
}

// sourceShare divides the limit of groups: each source may bring a tenth of that limit, in
// addition to it.
const sourceShare = 10

// bound is how many groups a source may bring. For "" it is how many our own jobs may bring.
func (p *Projection) bound(source string) int {
	if source == "" {
		return p.maxGroups
	}
	return max(1, p.maxGroups/sourceShare)
}

// size is how many groups a source has brought, as the transaction sees it.
func (p *Projection) size(in *gathered, source string) int { return p.sizes[source] + in.sizes[source] }

// Moved counts a job out of the group that it had and into the one that it has now. A replay
// also counts for the group that it had.
func (p *Projection) Moved(t *db.Tx, m projection.Move) {
	sums := &p.gathered.In(t).sums
	if m.From != nil {
		sums.job(m.From, -1)
	}

	if m.To != nil {
		sums.job(m.To, 1)
	}

	// A replay starts the next run.
	if m.From != nil && m.To != nil && m.To.Run > m.From.Run && m.From.Group != 0 {
		sums.of(m.From.Group).replayed++
	}
}

// Failed counts a failure in the group of its cause, which is made if there is none yet, and
// sets the group of the job.
func (p *Projection) Failed(t *db.Tx, f projection.Failure) error {
	at := db.Micros(f.Job.ChangedAt)

	id := p.groupOf(t, f.Cause, f.Job, at)
	p.gathered.In(t).failure(id, f, at)
	f.Job.Group = id

	return nil
}

// groupOf returns the number of the group of a cause. A cause that was never seen gets a new
// group, or the group "other" if the bound is reached. Each source has a bound of its own, so
// that its causes cannot use up the groups of others.
func (p *Projection) groupOf(t *db.Tx, c fingerprint.Cause, j *job.Job, at int64) int64 {
	in := p.gathered.In(t)
	if g, known := p.group(in, c.Fingerprint); known {
		return g.id
	}

	// The cause is new. Without room for another group, it belongs to the group "other".
	typ, source := j.Type, j.Source
	if p.size(in, source) >= p.bound(source) {
		c = fingerprint.Cause{
			Fingerprint: failures.OtherGroup, Class: failures.OtherGroup,
			Message: "new causes that came after the limit of error groups was reached",
		}
		typ, source = "", ""

		if other, known := p.group(in, c.Fingerprint); known {
			return other.id
		}
	}

	// Make the group. Its row is written with the sums.
	g := group{id: in.newest + 1, source: source}
	in.rows = append(in.rows, groupRow{group: g, typ: typ, cause: c, at: at})

	in.newest = g.id
	in.made[c.Fingerprint] = g
	in.sizes[source]++

	return g.id
}

// group returns the group of a fingerprint as the transaction sees it, and whether it exists.
func (p *Projection) group(in *gathered, fingerprint string) (group, bool) {
	g, known := in.made[fingerprint]
	if !known && !in.removed[fingerprint] {
		g, known = p.known[fingerprint]
	}

	return g, known
}

// Committed updates memory with the groups that the transaction made and removed, and with the
// states that it gave to groups.
func (p *Projection) Committed(t *db.Tx) {
	p.mu.Lock()
	defer p.mu.Unlock()

	in := p.gathered.In(t)
	for fingerprint := range in.removed {
		p.forget(fingerprint)
	}

	for fingerprint, g := range in.made {
		p.learn(fingerprint, g)
	}

	for id, decided := range in.decided {
		p.decide(id, decided)
	}
}

// forget removes a group from memory.
func (p *Projection) forget(fingerprint string) {
	g := p.known[fingerprint]
	p.sizes[g.source]--
	delete(p.known, fingerprint)
	delete(p.fingerprints, g.id)
	delete(p.decided, g.id)
}

// learn adds a group to memory, as an open one: see decide.
func (p *Projection) learn(fingerprint string, g group) {
	p.newest = max(p.newest, g.id)
	p.sizes[g.source]++
	p.known[fingerprint], p.fingerprints[g.id] = g, fingerprint
}

// decide records whether a group is resolved or ignored (decided), or open.
func (p *Projection) decide(id int64, decided bool) {
	if decided {
		p.decided[id] = true
	} else {
		delete(p.decided, id)
	}
}

// Open returns how many groups are open, as of the last commit. Only code that the writer runs
// may call it, because it does not lock.
func (p *Projection) Open() int64 { return int64(len(p.known) - len(p.decided)) }

// Load reads which groups exist from the database. It is called once, at the start.
func (p *Projection) Load(src db.Source) error {
	const query = `SELECT fingerprint, id, source, state <> 'open' FROM groups`
	type row struct {
		fingerprint string
		decided     bool
		group
	}

	all, err := db.All(src, query, func(r *row) []any { return []any{&r.fingerprint, &r.id, &r.source, &r.decided} })
	if err != nil {
		return fmt.Errorf("read the error groups: %w", err)
	}

	for _, r := range all {
		p.learn(r.fingerprint, r.group)
		p.decide(r.id, r.decided)
	}

	return nil
}

// Of returns the error groups to which the jobs of these dead letters belong, by the numbers of
// the groups. Of each group, only its number, its fingerprint and its count of failures are set.
func (p *Projection) Of(ctx context.Context, dead []filter.DeadLetterRow) (map[int64]failures.Group, error) {
	const query = `SELECT id, fingerprint, failures FROM groups WHERE id IN (SELECT value FROM json_each($1))`

	if len(dead) == 0 {
		return nil, nil
	}

	numbers := make([]int64, len(dead))
	for i, l := range dead {
		numbers[i] = l.Job.Group
	}

	fields := func(g *failures.Group) []any { return []any{&g.Number, &g.Fingerprint, &g.Failures} }
	found, err := db.All(p.reader.In(ctx), query, fields, db.Numbers(numbers))
	all := make(map[int64]failures.Group, len(found))
	for _, g := range found {
		all[g.Number] = g
	}

	return all, db.Wrap(err, "read the error groups of dead letters")
}

// Classes returns the error class of each of the groups with these fingerprints, by
// fingerprint. A group that does not exist is missing from the map.
func (p *Projection) Classes(ctx context.Context, fingerprints []string) (map[string]string, error) {
	const query = `SELECT fingerprint, class FROM groups WHERE fingerprint IN (SELECT value FROM json_each($1))`
	all, err := db.Map[string, string](p.reader.In(ctx), query, db.Texts(fingerprints))
	return all, db.Wrap(err, "read the classes of error groups")
}
