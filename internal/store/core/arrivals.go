package core

import (
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// arrivals are the new jobs of a transaction, which are written many at a time.
type arrivals struct {
	waiting []arrival

	jobs, bodies, keys   db.Batch
	similar, plainBodies db.Batch
}

// arrival is a new job that is not written yet.
type arrival struct {
	*job.Job
	common
}

// common has the columns that jobs which are enqueued together usually have in common.
type common struct {
	queue    string
	source   string
	typ      string
	state    job.State
	priority int
	policy   int64
	timeout  time.Duration
}

// atOnce is how many new rows are written together at most.
const atOnce = 64

// newArrivals makes the statements. Binding a value takes as long as storing it, so there is a
// statement for jobs that share all their common columns, which binds these once, and one for
// bodies that have nothing but a payload. Both together save a quarter of the time of writing
// a thousand jobs.
func newArrivals() *arrivals {
	return &arrivals{
		jobs: db.NewBatch(14, `INSERT INTO jobs (seq, id, queue, source, type, state, list_state, priority, policy_id, ttr,
			run_at, enqueued_at, changed_at, key) VALUES `, ""),
		similar: db.NewBatch(5, `INSERT INTO jobs (queue, source, type, state, list_state, priority, policy_id, ttr,
			seq, id, run_at, enqueued_at, changed_at, key)
			SELECT ?, ?, ?, ?, ?, ?, ?, ?, j.column1, j.column2, j.column3, j.column4, j.column4, j.column5 FROM (VALUES `, `) AS j`),
		bodies: db.NewBatch(8, `INSERT INTO bodies (job_seq, `+rows.BodyColumns+`) VALUES `, ""),
		plainBodies: db.NewBatch(2, `INSERT INTO bodies (job_seq, payload, expires_at, trace_id, message_id, note)
			SELECT b.column1, b.column2, 0, '', '', '' FROM (VALUES `, `) AS b`),
		keys: db.NewBatch(4, `INSERT INTO job_keys (job_seq, caller, key, content) VALUES `, ""),
	}
}

// reset drops all rows that are not written, so that another transaction can begin.
func (a *arrivals) reset() {
	a.forget()

	for _, b := range []*db.Batch{&a.jobs, &a.bodies, &a.keys, &a.similar, &a.plainBodies} {
		b.Reset()
	}
}

// forget empties the list of jobs, and releases their texts, which can be large.
func (a *arrivals) forget() {
	clear(a.waiting)
	a.waiting = a.waiting[:0]
}

// add adds a job, and reports whether there are enough for one statement, so that the caller
// should write them.
func (a *arrivals) add(j *job.Job, policy int64) (full bool) {
	a.waiting = append(a.waiting, arrival{j, common{j.Queue, j.Source, j.Type, j.State, j.Priority, policy, j.Timeout}})
	return len(a.waiting) >= atOnce
}

// flush writes the jobs that wait, with their bodies and idempotency keys.
func (a *arrivals) flush(t *db.Tx) error {
	if len(a.waiting) == 0 {
		return nil
	}

	err := db.Steps(t, a.flushJobs, a.flushBodies, a.flushKeys)
	a.forget()

	return err
}

// flushJobs writes the rows of the table jobs.
func (a *arrivals) flushJobs(t *db.Tx) error {
	differ := slices.ContainsFunc(a.waiting, func(j arrival) bool { return j.common != a.waiting[0].common })
	if len(a.waiting) < 2 || differ {
		for _, j := range a.waiting {
			err := a.jobs.Add(t, j.Seq, j.ID, j.Queue, j.Source, j.Type, string(j.State), rows.ListState(j.State), j.Priority, j.policy,
				j.Timeout.Microseconds(), db.Micros(j.RunAt), db.Micros(j.EnqueuedAt), db.Micros(j.ChangedAt), j.Key)
			if err != nil {
				return err
			}
		}

		return a.jobs.Flush(t)
	}

	// All jobs have the same common columns: bind these once.
	c := a.waiting[0].common
	a.similar.Common(c.queue, c.source, c.typ, string(c.state), rows.ListState(c.state), c.priority, c.policy, c.timeout.Microseconds())

	for _, j := range a.waiting {
		if err := a.similar.Add(t, j.Seq, j.ID, db.Micros(j.RunAt), db.Micros(j.EnqueuedAt), j.Key); err != nil {
			return err
		}
	}

	return a.similar.Flush(t)
}

// flushBodies writes the rows of the table bodies.
func (a *arrivals) flushBodies(t *db.Tx) error {
	for _, j := range a.waiting {
		var err error
		if isPlain(j.Job) {
			err = a.plainBodies.Add(t, j.Seq, j.Payload)
		} else {
			err = a.bodies.Add(t, j.Seq, db.Micros(j.ExpiresAt), j.TraceID, j.MessageID, j.Note, []byte(j.Meta), j.Payload, j.Envelope)
		}

		if err != nil {
			return err
		}
	}

	return db.Steps(t, a.plainBodies.Flush, a.bodies.Flush)
}

// isPlain reports whether the body of a job has nothing but a payload.
func isPlain(j *job.Job) bool {
	return j.ExpiresAt.IsZero() && j.TraceID == "" && j.MessageID == "" && j.Note == "" && j.Meta == nil && j.Envelope == nil
}

// flushKeys writes the idempotency keys of the jobs that have one.
func (a *arrivals) flushKeys(t *db.Tx) error {
	for _, j := range a.waiting {
		if j.Key == "" {
			continue
		}

		if err := a.keys.Add(t, j.Seq, j.Caller, j.Key, j.Content); err != nil {
			return err
		}
	}

	return a.keys.Flush(t)
}
