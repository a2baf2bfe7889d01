// Package core is what every change of a job goes through. It has the verbs of a transaction:
// append a job, record an attempt, store a dead letter, move a job, end a run, change what a
// job has, put it into the trash and take it out, remove it. Each verb writes to the tables of
// jobs and tells the projections. The rooms of the store (claiming and settling in package
// store, mirror, sweep) decide what happens, in terms of these verbs.
//
// What a verb gathers belongs to its transaction (see [db.Slot]): rows that wait for others
// like them, how replayed runs ended, and which jobs moved. New jobs and dead letters wait
// until there are enough for one statement, or until another statement has to see them
// (see [db.Tx.Later]).
package core

import (
	"fmt"

	"redrive/internal/job"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
	"redrive/internal/store/rows"
)

// Numbers gives new jobs their numbers.
type Numbers interface {
	Number(t *db.Tx) (int64, error)

	// Newest returns the number of the newest job.
	Newest(t *db.Tx) (int64, error)
}

// Core has the verbs. Its methods are called within transactions of the writer.
type Core struct {
	policies    *rows.Policies
	numbers     Numbers
	projections projection.Projections
	gathered    *db.Slot[gathered]

	write func(*db.Tx) error // writeWaiting: made once, and not for each row that waits
}

// New returns the verbs, of which no projection hears yet.
func New(policies *rows.Policies, numbers Numbers) *Core {
	c := &Core{policies: policies, numbers: numbers, gathered: db.NewReusedSlot(newGathered, (*gathered).clear)}
	c.write = c.writeWaiting

	return c
}

// Register lets a projection hear what happens to jobs.
func (c *Core) Register(projection any) { c.projections.Register(projection) }

// gathered is what one transaction gathers on its way.
type gathered struct {
	changes     []job.Change
	arrivals    *arrivals    // new jobs
	deadLetters *deadLetters // new dead letters
	attempts    db.Batch
	runs        map[runKey]endedRun // replayed runs that ended
}

func newGathered() *gathered {
	return &gathered{
		arrivals: newArrivals(), deadLetters: newDeadLetters(), attempts: rows.Recording(),
		runs: map[runKey]endedRun{},
	}
}

// clear makes everything empty for another transaction.
func (g *gathered) clear() {
	g.arrivals.reset()
	g.deadLetters.reset()
	g.attempts.Reset()

	clear(g.changes)
	g.changes = g.changes[:0]
	clear(g.runs)
}

func (c *Core) in(t *db.Tx) *gathered { return c.gathered.In(t) }

// later lets the rows that wait be written before the next statement.
func (c *Core) later(t *db.Tx) { t.Later(c.write) }

// writeWaiting writes the jobs that wait, and then the dead letters, whose jobs have to be
// there.
func (c *Core) writeWaiting(t *db.Tx) error {
	t.Later(nil)
	g := c.in(t)
	return db.Steps(t, g.arrivals.flush, g.deadLetters.flush)
}

// Flush writes what waits, and tells the projections how replayed runs ended.
func (c *Core) Flush(t *db.Tx) error {
	g := c.in(t)

	err := db.Steps(t, c.writeWaiting, g.attempts.Flush)
	if err != nil || len(g.runs) == 0 {
		return err
	}

	ended, err := g.endedRuns(t)
	if err != nil {
		return fmt.Errorf("read from where the ended runs were replayed: %w", err)
	}

	return c.projections.RunsEnded(t, ended)
}

// Committed has nothing to make known: the publisher of the store does so, see [Core.Changes].
func (c *Core) Committed(*db.Tx) {}

// Append stores a new job, whose number it sets.
func (c *Core) Append(t *db.Tx, j *job.Job, policy int64) (err error) {
	j.Seq, err = c.numbers.Number(t)
	if err != nil {
		return err
	}

	full := c.in(t).arrivals.add(j, policy)
	if full {
		return c.writeWaiting(t)
	}

	c.later(t)

	return nil
}

// AddAttempt records an attempt of the job with the number.
func (c *Core) AddAttempt(t *db.Tx, seq int64, a job.Attempt) error {
	return rows.AddAttempt(t, &c.in(t).attempts, seq, a)
}

// Fail tells the projections of a failure, before the job moves for it.
func (c *Core) Fail(t *db.Tx, f projection.Failure) error { return c.projections.Failed(t, f) }

// Ask tells the projections what sources are asked to do.
func (c *Core) Ask(t *db.Tx, ask projection.Ask) error { return c.projections.Asked(t, ask) }

// Move tells the projections that a job went from one status to another, and notes it
// for the listeners. A new job comes from nil.
func (c *Core) Move(t *db.Tx, from, to *job.Job, totals stats.Totals) {
	c.projections.Moved(t, projection.Move{From: from, To: to, Totals: totals})

	change := to.Changed()
	change.Failed = totals.Failed > 0

	g := c.in(t)
	g.changes = append(g.changes, change)
}

// MoveAll is Move of many jobs, each changed alike and in its place: they are large.
func (c *Core) MoveAll(t *db.Tx, jobs []job.Job, totals stats.Totals, change func(*job.Job)) {
	var from job.Job
	for i := range jobs {
		from = jobs[i]
		change(&jobs[i])
		c.Move(t, &from, &jobs[i], totals)
	}
}

// Changes are the jobs that a transaction has moved, in the order in which they moved. The
// next transaction uses the slice again.
func (c *Core) Changes(t *db.Tx) []job.Change { return c.in(t).changes }

// Change runs a statement that changes the job, and returns it as it is then.
func (c *Core) Change(t *db.Tx, j job.Job, update string, args ...any) (job.Job, error) {
	err := t.ExecExactly(1, update, args...)
	if err != nil {
		return job.Job{}, fmt.Errorf("change job %s: %w", j.ID, err)
	}

	return c.policies.ByID(t, j.ID)
}

// Remove deletes jobs that are over, with everything that is known of them.
func (c *Core) Remove(t *db.Tx, jobs []job.Job) error {
	these := rows.Seqs(jobs)
	for _, table := range []string{
		"dead_letters WHERE job_seq", "attempts WHERE job_seq", "earlier_runs WHERE job_seq", "replays WHERE job_seq",
		"bodies WHERE job_seq", "job_keys WHERE job_seq", "trash WHERE job_seq", "jobs WHERE seq",
	} {
		err := t.Run(`DELETE FROM `+table+` IN (SELECT value FROM json_each($1))`, these)
		if err != nil {
			return err
		}
	}

	for i := range jobs {
		c.projections.Moved(t, projection.Move{From: &jobs[i]})
	}

	t.Touch()

	return c.projections.Removed(t, jobs)
}
