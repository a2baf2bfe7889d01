package store

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/book"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// gathered is what one transaction of the core gathers on its way.
type gathered struct {
	books    *book.Books
	changes  []job.Change
	messages map[message]job.Job // new jobs that came as envelopes
	runs     map[runKey]endedRun // replayed runs that ended
	paused   bool                // a queue was paused
	resumed  bool                // a queue was resumed

	jobs, bodies, completed, attempts db.Batch
}

func newGathered() gathered {
	return gathered{jobs: inserting(), bodies: insertingBodies(), completed: completing(), attempts: rows.Recording()}
}

// Begin starts a transaction. The changes of the one before may still be read by
// those who were told of them.
func (g *gathered) Begin() {
	g.changes, g.messages, g.runs = nil, map[message]job.Job{}, map[runKey]endedRun{}
	g.paused, g.resumed = false, false
	for _, b := range []*db.Batch{&g.jobs, &g.bodies, &g.completed, &g.attempts} {
		b.Reset()
	}
}

// Flush writes the attempts that wait, and tells the books how replayed runs
// ended.
func (g *gathered) Flush(t *db.Tx) error {
	if err := g.attempts.Flush(t); err != nil || len(g.runs) == 0 {
		return err
	}
	ended := make([][5]any, 0, len(g.runs))
	for k, r := range g.runs {
		ended = append(ended, [5]any{k.seq, k.run, r.at, r.outcome, r.group})
	}
	return g.books.RunsEnded(t, db.Rows(ended))
}

// Committed has nothing to make known; see news.
func (g *gathered) Committed(*db.Tx) {}

// moved tells the books that a job went from one status to another, and notes it
// for those who listen. A new job comes from nil.
func (s *Store) moved(from, to *job.Job, totals job.Totals) {
	s.books.Moved(book.Move{From: from, To: to, Totals: totals})
	change := to.Changed()
	change.Failed = totals.Failed > 0
	s.tx.changes = append(s.tx.changes, change)
}

// moveAll is moved of many jobs, each changed alike. It returns them as they are
// then.
func (s *Store) moveAll(from []job.Job, totals job.Totals, change func(*job.Job)) []job.Job {
	to := slices.Clone(from)
	s.tx.changes = slices.Grow(s.tx.changes, len(from))
	for i := range to {
		change(&to[i])
		s.moved(&from[i], &to[i], totals)
	}
	return to
}

// runKey names a run of a job.
type runKey struct {
	seq int64
	run int
}

// endedRun is how a replayed run ended in this transaction.
type endedRun struct {
	at      int64
	outcome operation.RunOutcome
	group   int64 // of the failure that ended it
}

// ended notes that a run is over, the first time that somebody says so. First
// runs belong to no operation, and of a run that was over in an earlier
// transaction the books know already.
func (g *gathered) ended(j *job.Job, outcome operation.RunOutcome, now time.Time) {
	k := runKey{j.Seq, j.Run}
	if _, known := g.runs[k]; j.Run > 1 && !known {
		g.runs[k] = endedRun{db.Micros(now), outcome, j.Group}
	}
}

// runsResumed takes back that the runs of these jobs were dropped, which they are in.
func (s *Store) runsResumed(t *db.Tx, jobs []job.Job) error {
	var runs [][2]int64
	for _, j := range jobs {
		if j.Run == 1 {
			continue
		}
		runs = append(runs, [2]int64{j.Seq, int64(j.Run)})
		if k := (runKey{j.Seq, j.Run}); s.tx.runs[k].outcome == operation.RunDropped {
			delete(s.tx.runs, k)
		}
	}
	if len(runs) == 0 {
		return nil
	}
	return s.books.RunsResumed(t, db.Rows(runs))
}

// news is what is told after a commit.
type news struct {
	onCommit func([]job.Change)
	revision int64 // of the database: it rises with each commit that changed something
	snapshot atomic.Pointer[job.Snapshot]
}

// publisher is the last participant of every transaction: it counts the revision
// and tells what has become true once all others know it.
type publisher struct{ s *Store }

// Begin has nothing to prepare.
func (p *publisher) Begin() {}

// Flush counts the revision, when something changed that pages show.
func (p *publisher) Flush(t *db.Tx) error {
	if !p.changed(t) {
		return nil
	}
	const update = `UPDATE revision SET n = n + 1, newest = $1`
	t.Wrote()
	return db.Wrap(t.Run(update, p.s.known.newest()), "count the revision")
}

func (p *publisher) changed(t *db.Tx) bool {
	tx := &p.s.tx
	return len(tx.changes) > 0 || tx.paused || tx.resumed || t.Touched()
}

// Committed calls OnCommit: with the jobs that moved; and without any when a
// queue was resumed, because then jobs can run that did not move, or when a count
// changed otherwise.
func (p *publisher) Committed(t *db.Tx) {
	if !p.changed(t) {
		return
	}
	p.s.news.revision++
	p.s.publish()
	tx, tell := &p.s.tx, p.s.news.onCommit
	if tell == nil {
		return
	}
	if len(tx.changes) > 0 {
		tell(tx.changes)
	}
	if tx.resumed || t.Touched() {
		tell(nil)
	}
}

// publish makes the counts as of the last commit visible to readers.
func (s *Store) publish() {
	s.news.snapshot.Store(&job.Snapshot{
		Seq: s.news.revision, Totals: s.Counters.Totals(), Depths: s.Counters.Depths(),
		Operations: s.Operations.UnderWay(), OpenGroups: s.Groups.Open(),
	})
}

// Snapshot returns the totals and depths as of the last commit, from memory.
func (s *Store) Snapshot() job.Snapshot {
	snapshot := *s.news.snapshot.Load()
	snapshot.Depths = maps.Clone(snapshot.Depths)
	return snapshot
}

func (s *Store) loadRevision(src db.Source) (err error) {
	s.news.revision, err = db.Value[int64](src, `SELECT n FROM revision`)
	return db.Wrap(err, "read the revision")
}
