package store

import (
	"fmt"
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
	"redrive/internal/store/rows"
)

// gathered is what one transaction of the core gathers on its way.
type gathered struct {
	changes  []job.Change
	arrivals *arrivals           // new jobs
	runs     map[runKey]endedRun // replayed runs that ended
	paused   bool                // a queue was paused
	resumed  bool                // a queue was resumed

	completed, failed, attempts db.Batch
}

// newGathered makes the batches, which are used again by later transactions. completed ends executions that succeeded, and failed
// those that failed, many at once. Nothing changes a completed job any more, so its row is the record of its
// last attempt too (see the view executions): one row less to write for each job
// that does its work.
func newGathered() *gathered {
	return &gathered{
		arrivals: newArrivals(), runs: map[runKey]endedRun{},
		completed: db.NewBatch(6, `UPDATE jobs SET state = 'completed', finished_at = s.column4, attempts = s.column5, started_at = s.column6,
			unbegun = 0, reason = '', error_type = '', error_message = '' FROM (VALUES `,
			`) AS s WHERE jobs.seq = s.column1 AND jobs.run = s.column2 AND jobs.execution = s.column3 AND jobs.state = 'active'`),
		failed: db.NewBatch(13, `UPDATE jobs SET changed_at = s.column4, state = s.column5,
			list_state = CASE s.column5 WHEN 'available' THEN '' ELSE s.column5 END, attempts = s.column6,
			finished_at = s.column7, run_at = s.column8, reason = s.column9, letter = s.column10, error_type = s.column11,
			error_message = s.column12, group_id = s.column13, unbegun = 0 FROM (VALUES `,
			`) AS s WHERE jobs.seq = s.column1 AND jobs.run = s.column2 AND jobs.execution = s.column3 AND jobs.state = 'active'`),
		attempts: rows.Recording(),
	}
}

// clear makes everything empty for another transaction.
func (g *gathered) clear() {
	g.arrivals.begin()
	clear(g.changes)
	g.changes = g.changes[:0]
	clear(g.runs)
	g.paused, g.resumed = false, false

	for _, b := range []*db.Batch{&g.completed, &g.failed, &g.attempts} {
		b.Reset()
	}
}

// in returns what a transaction has gathered so far.
func (s *Store) in(t *db.Tx) *gathered { return s.gathered.In(t) }

// core takes part in every transaction, with what the store itself gathers.
type core struct{ store *Store }

// Flush writes the jobs and the attempts that wait, and tells the projections how
// replayed runs ended.
func (c core) Flush(t *db.Tx) error {
	g := c.store.in(t)
	if err := db.Steps(t, g.arrivals.flush, g.attempts.Flush); err != nil || len(g.runs) == 0 {
		return err
	}

	ended, err := g.endedRuns(t)
	if err != nil {
		return fmt.Errorf("read from where the ended runs were replayed: %w", err)
	}

	return c.store.projections.RunsEnded(t, ended)
}

// endedRuns are the replayed runs that ended, in the order of their jobs:
// neighbours share pages.
func (g *gathered) endedRuns(t *db.Tx) ([]projection.EndedRun, error) {
	const query = `SELECT r.job_seq, r.run + 1, r.group_id, r.operation_id FROM json_each($1) AS e
		JOIN replays AS r ON r.job_seq = e.value ->> 0 AND r.run = e.value ->> 1`

	replays := make([][2]int64, 0, len(g.runs))
	for k := range g.runs {
		replays = append(replays, [2]int64{k.seq, int64(k.run - 1)})
	}

	slices.SortFunc(replays, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })

	fields := func(r *projection.EndedRun) []any { return []any{&r.Seq, &r.Run, &r.Origin, &r.Operation} }
	all, err := db.All(t, query, fields, db.Rows(replays))
	for i := range all {
		r := &all[i]
		end := g.runs[runKey{r.Seq, r.Run}]
		r.At, r.Outcome, r.Group = end.at, end.outcome, end.group
	}

	return all, err
}

// Committed has nothing to make known (see publisher).
func (core) Committed(*db.Tx) {}

// moved tells the projections that a job went from one status to another, and notes it
// for the listeners. A new job comes from nil.
func (s *Store) moved(t *db.Tx, from, to *job.Job, totals stats.Totals) {
	s.projections.Moved(t, projection.Move{From: from, To: to, Totals: totals})
	change := to.Changed()
	change.Failed = totals.Failed > 0

	g := s.in(t)
	g.changes = append(g.changes, change)
}

// moveAll is moved of many jobs, each changed alike and in its place: they are large.
func (s *Store) moveAll(t *db.Tx, jobs []job.Job, totals stats.Totals, change func(*job.Job)) {
	var from job.Job
	for i := range jobs {
		from = jobs[i]
		change(&jobs[i])
		s.moved(t, &from, &jobs[i], totals)
	}
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

// ended notes that a run is over, the first time that it is called for the run. First
// runs belong to no operation, and the projections already know of a run that was over in
// an earlier transaction.
func (g *gathered) ended(j *job.Job, outcome operation.RunOutcome, now time.Time) {
	k := runKey{j.Seq, j.Run}
	if _, known := g.runs[k]; j.Run > 1 && !known {
		g.runs[k] = endedRun{db.Micros(now), outcome, j.Group}
	}
}

// runsResumed takes back that the runs of these jobs were dropped, which they are in.
func (s *Store) runsResumed(t *db.Tx, jobs []job.Job) error {
	var runs [][2]int64
	gathered := s.in(t).runs
	for _, j := range jobs {
		if j.Run == 1 {
			continue
		}

		runs = append(runs, [2]int64{j.Seq, int64(j.Run)})
		if k := (runKey{j.Seq, j.Run}); gathered[k].outcome == operation.RunDropped {
			delete(gathered, k)
		}
	}

	if len(runs) == 0 {
		return nil
	}

	return s.projections.RunsResumed(t, db.Rows(runs))
}
