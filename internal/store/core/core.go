// Package core has the verbs of a transaction, through which every change of a job goes:
// append a job, record an attempt, store a dead letter, move a job, end a run, change what a
// job has, put it into the trash and take it out, remove it. A verb writes to the tables of
// jobs, tells the projections, or does both. Other packages decide what happens to a job and
// carry it out with these verbs: package store claims and settles, mirror takes over the
// records of sources, and sweep removes what is old.
//
// What a verb gathers belongs to its transaction (see [db.Slot]): rows that are still to be
// written, how replayed runs ended, and which jobs moved. New jobs and dead letters are
// written many at a time: when there are enough for one statement, or just before another
// statement of the transaction, which has to see them (see [db.Tx.Later]).
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

// Core has the verbs as methods, which are called within transactions of the writer. It is a
// participant of each of these (see [db.Participant]).
type Core struct {
	policies    *rows.Policies
	numbers     Numbers
	projections projection.Projections
	gathered    *db.Slot[gathered]

	// write is the method value c.writeWaiting. It is made once, because making one for each
	// row would allocate.
	write func(*db.Tx) error
}

// New returns a Core that tells no projection yet: see Register.
func New(policies *rows.Policies, numbers Numbers) *Core {
	c := &Core{policies: policies, numbers: numbers, gathered: db.NewReusedSlot(newGathered, (*gathered).clear)}
	c.write = c.writeWaiting

	return c
}

// Register adds a projection, which is told from then on of the events that it has methods for.
func (c *Core) Register(projection any) { c.projections.Register(projection) }

// gathered is what the verbs of one transaction gather until its commit.
type gathered struct {
	changes     []job.Change        // of the jobs that moved, in their order
	arrivals    *arrivals           // new jobs that are not written yet
	deadLetters *deadLetters        // new dead letters that are not written yet
	attempts    db.Batch            // attempts that are not written yet
	runs        map[runKey]endedRun // the replayed runs that ended
}

func newGathered() *gathered {
	return &gathered{
		arrivals: newArrivals(), deadLetters: newDeadLetters(), attempts: rows.Recording(),
		runs: map[runKey]endedRun{},
	}
}

// clear empties g, so that another transaction can use its memory.
func (g *gathered) clear() {
	g.arrivals.reset()
	g.deadLetters.reset()
	g.attempts.Reset()

	clear(g.changes)
	g.changes = g.changes[:0]
	clear(g.runs)
}

// in returns what the transaction has gathered so far.
func (c *Core) in(t *db.Tx) *gathered { return c.gathered.In(t) }

// later makes the transaction call writeWaiting before its next statement.
func (c *Core) later(t *db.Tx) { t.Later(c.write) }

// writeWaiting writes the new jobs and dead letters that are not written yet. The jobs come
// first, because the row of a dead letter refers to that of its job.
func (c *Core) writeWaiting(t *db.Tx) error {
	t.Later(nil) // else its own statements would call it again
	g := c.in(t)
	return db.Steps(t, g.arrivals.flush, g.deadLetters.flush)
}

// Flush writes all rows that are not written yet, and then tells the projections which
// replayed runs ended, and how. The transaction calls it before its commit.
func (c *Core) Flush(t *db.Tx) error {
	g := c.in(t)

	err := db.Steps(t, c.writeWaiting, g.attempts.Flush)
	if err != nil || len(g.runs) == 0 {
		return err
	}

	// Tell the projections about the ended runs.
	ended, err := g.endedRuns(t)
	if err != nil {
		return fmt.Errorf("read from where the ended runs were replayed: %w", err)
	}

	return c.projections.RunsEnded(t, ended)
}

// Committed does nothing. The publisher of the store makes known which jobs changed, which it
// gets from [Core.Changes].
func (c *Core) Committed(*db.Tx) {}

// Append stores a new job with the policy of a number (see rows.Policies), and sets the number
// of the job. It tells no projection: the caller does so with Move.
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

// AddAttempt stores an attempt of the job with the number seq.
func (c *Core) AddAttempt(t *db.Tx, seq int64, a job.Attempt) error {
	return rows.AddAttempt(t, &c.in(t).attempts, seq, a)
}

// Fail tells the projections of a failure, which sets the error group of its job. The caller
// calls it before Move, so that the job moves with its group.
func (c *Core) Fail(t *db.Tx, f projection.Failure) error { return c.projections.Failed(t, f) }

// Ask tells the projections what sources are asked to do, which writes the requests down.
func (c *Core) Ask(t *db.Tx, ask projection.Ask) error { return c.projections.Asked(t, ask) }

// Move tells the projections that a job is now as to has it, and adds it to Changes. For a new
// job, from is nil. The caller has written the job, or does so in the same transaction. The
// counters rise by totals.
func (c *Core) Move(t *db.Tx, from, to *job.Job, totals stats.Totals) {
	c.projections.Moved(t, projection.Move{From: from, To: to, Totals: totals})

	change := to.Changed()
	change.Failed = totals.Failed > 0

	g := c.in(t)
	g.changes = append(g.changes, change)
}

// MoveAll applies the same change to each of the jobs, in the slice itself, and calls Move for
// each. The totals are those of a single job.
func (c *Core) MoveAll(t *db.Tx, jobs []job.Job, totals stats.Totals, change func(*job.Job)) {
	var from job.Job // one for all: a job is large
	for i := range jobs {
		from = jobs[i]
		change(&jobs[i])
		c.Move(t, &from, &jobs[i], totals)
	}
}

// Changes returns the changes of the jobs that the transaction has moved, in the order in which
// they moved. The slice is valid until the next transaction, which uses it again.
func (c *Core) Changes(t *db.Tx) []job.Change { return c.in(t).changes }

// Change runs a statement that has to change exactly the row of job j, and returns the job as
// it is afterwards. It tells no projection: the caller does so with Move.
func (c *Core) Change(t *db.Tx, j job.Job, update string, args ...any) (job.Job, error) {
	err := t.ExecExactly(1, update, args...)
	if err != nil {
		return job.Job{}, fmt.Errorf("change job %s: %w", j.ID, err)
	}

	return c.policies.ByID(t, j.ID)
}

// Remove deletes jobs that have ended, with everything that is stored about them, and tells the
// projections.
func (c *Core) Remove(t *db.Tx, jobs []job.Job) error {
	// The rows that refer to the jobs go first, and then those of the jobs themselves.
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

	// The jobs are not added to Changes, because listeners have no use for what is gone.
	for i := range jobs {
		c.projections.Moved(t, projection.Move{From: &jobs[i]})
	}

	t.Touch()

	return c.projections.Removed(t, jobs)
}
