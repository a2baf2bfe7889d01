package core

import (
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// arrivals are the new jobs of a transaction, which wait for one another.
type arrivals struct {
	waiting []arrival

	jobs, bodies, keys   db.Batch
	similar, plainBodies db.Batch
}

// arrival is a job that waits to be written.
type arrival struct {
	*job.Job
	likeness
}

// likeness is what most of the jobs have in common that come together.
type likeness struct {
	queue    string
	source   string
	typ      string
	state    job.State
	priority int
	policy   int64
	timeout  time.Duration
}

// atOnce is how many new rows are written together.
const atOnce = 64

// newArrivals makes the batches. To bind a value takes as long as to store it, so
// jobs of one likeness have a statement that binds that once, and bodies that are
// nothing but payloads one that binds nothing else: that saves a quarter of the time
// of a thousand jobs.
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

// reset makes everything empty for another transaction.
func (a *arrivals) reset() {
	a.forget()

	for _, b := range []*db.Batch{&a.jobs, &a.bodies, &a.keys, &a.similar, &a.plainBodies} {
		b.Reset()
	}
}

// forget forgets the jobs that waited, whose texts are large.
func (a *arrivals) forget() {
	clear(a.waiting)
	a.waiting = a.waiting[:0]
}

// add lets a job wait. It reports whether enough jobs wait to be written.
func (a *arrivals) add(j *job.Job, policy int64) (full bool) {
	a.waiting = append(a.waiting, arrival{j, likeness{j.Queue, j.Source, j.Type, j.State, j.Priority, policy, j.Timeout}})
	return len(a.waiting) >= atOnce
}

// flush writes the jobs that wait.
func (a *arrivals) flush(t *db.Tx) error {
	if len(a.waiting) == 0 {
		return nil
	}

	err := db.Steps(t, a.flushJobs, a.flushBodies, a.flushKeys)
	a.forget()

	return err
}

func (a *arrivals) flushJobs(t *db.Tx) error {
	if len(a.waiting) < 2 || slices.ContainsFunc(a.waiting, func(j arrival) bool { return j.likeness != a.waiting[0].likeness }) {
		for _, j := range a.waiting {
			err := a.jobs.Add(t, j.Seq, j.ID, j.Queue, j.Source, j.Type, string(j.State), rows.ListState(j.State), j.Priority, j.policy,
				j.Timeout.Microseconds(), db.Micros(j.RunAt), db.Micros(j.EnqueuedAt), db.Micros(j.ChangedAt), j.Key)
			if err != nil {
				return err
			}
		}

		return a.jobs.Flush(t)
	}

	l := a.waiting[0].likeness
	a.similar.Common(l.queue, l.source, l.typ, string(l.state), rows.ListState(l.state), l.priority, l.policy, l.timeout.Microseconds())

	for _, j := range a.waiting {
		if err := a.similar.Add(t, j.Seq, j.ID, db.Micros(j.RunAt), db.Micros(j.EnqueuedAt), j.Key); err != nil {
			return err
		}
	}

	return a.similar.Flush(t)
}

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

// isPlain reports whether a job brings nothing but a payload.
func isPlain(j *job.Job) bool {
	return j.ExpiresAt.IsZero() && j.TraceID == "" && j.MessageID == "" && j.Note == "" && j.Meta == nil && j.Envelope == nil
}

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
