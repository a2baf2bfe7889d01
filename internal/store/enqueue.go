package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	lib "modernc.org/sqlite/lib"

	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/fingerprint"
	"redrive/internal/job"
)

// Enqueue stores jobs, all or none of them, and returns each as it is stored,
// in the same order. A job that may not run before a time after now is
// scheduled, any other available. One that comes as discarded is a dead letter
// from the beginning, for the reason and the error that it brings. An empty id
// is filled in; an id that is taken is a *job.Conflict. The first job answers
// for a repeat: of an idempotency key for as long as that job is kept, of an
// envelope's message id in its queue until the first one has ended. The jobs must
// be valid: nothing is checked here.
func (s *Store) Enqueue(ctx context.Context, now time.Time, jobs []job.Job) ([]job.Enqueued, error) {
	jobs = slices.Clone(jobs)
	texts, err := policyTexts(jobs)
	if err != nil {
		return nil, err
	}
	causes := map[int]fingerprint.Cause{} // of those that come as dead letters
	for i := range jobs {
		if fresh(&jobs[i], now); jobs[i].State == job.Discarded {
			causes[i] = failures.CauseOf(jobs[i])
		}
	}
	done, err := write(ctx, s.writer, len(jobs), func(t *tx) ([]job.Enqueued, error) {
		done := make([]job.Enqueued, len(jobs))
		for i, j := range jobs {
			var err error
			if done[i], err = t.enqueue(j, texts[i], causes[i]); err != nil {
				return nil, err
			}
		}
		return done, t.flushJobs()
	})
	if taken(err) {
		return nil, &job.Conflict{Problem: "a job with this id exists already; nothing was enqueued"}
	}
	return done, err
}

// taken reports whether a row is refused because of an id that exists. Keys
// never do that: a repeat is no error.
func taken(err error) bool { return code(err) == lib.SQLITE_CONSTRAINT_UNIQUE }

// fresh fills in what every new job has.
func fresh(j *job.Job, now time.Time) {
	now = now.UTC().Truncate(time.Microsecond)
	if j.ID == "" {
		j.ID = job.NewID()
	}
	j.Run, j.Attempts, j.Execution = 1, 0, 0
	j.EnqueuedAt, j.ChangedAt = now, now
	j.RunAt, j.ExpiresAt = j.RunAt.UTC().Truncate(time.Microsecond), j.ExpiresAt.UTC().Truncate(time.Microsecond)
	switch {
	case j.State == job.Discarded:
		j.RunAt, j.FinishedAt, j.Letter = now, now, job.LetterStored
	case j.RunAt.After(now):
		j.State = job.Scheduled
	default:
		j.State, j.RunAt = job.Available, now
	}
	if j.Payload == nil {
		j.Payload = []byte{}
	}
}

// inserting stores new jobs.
func inserting() batch {
	return batch{
		head: `INSERT INTO jobs (seq, id, queue, type, state, shelf, priority, policy_id, ttr, run_at, enqueued_at, changed_at, key) VALUES `,
		row:  `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, columns: 13,
	}
}

// insertingBodies stores what they bring along.
func insertingBodies() batch {
	return batch{
		head: `INSERT INTO bodies (job_seq, ` + bodyColumns + `) VALUES `,
		row:  `(?, ?, ?, ?, ?, ?, ?, ?)`, columns: 8,
	}
}

// shelf is the state for the lists that the schema keeps apart.
func shelf(s job.State) string {
	switch s {
	case job.Available, job.Active, job.Completed:
		return ""
	}
	return string(s)
}

// flushJobs writes the new jobs that wait.
func (t *tx) flushJobs() error {
	if err := t.jobs.flush(t, 1); err != nil {
		return err
	}
	return t.bodies.flush(t, 1)
}

// enqueue stores a job, unless its key names one already.
func (t *tx) enqueue(j job.Job, text policyText, cause fingerprint.Cause) (job.Enqueued, error) {
	if first, err := t.first(j); !errors.Is(err, sql.ErrNoRows) {
		return job.Enqueued{Job: first, Repeat: true}, err
	}
	policy, err := t.policyID(text)
	if err != nil {
		return job.Enqueued{}, err
	}
	t.seq++
	j.Seq = t.seq
	err = t.jobs.add(t, j.Seq, j.ID, j.Queue, j.Type, string(j.State), shelf(j.State), j.Priority, policy, j.Timeout.Microseconds(),
		micros(j.RunAt), micros(j.EnqueuedAt), micros(j.ChangedAt), j.Key)
	if err == nil {
		err = t.bodies.add(t, j.Seq, micros(j.ExpiresAt), j.TraceID, j.MessageID, j.Note, []byte(j.Meta), j.Payload, j.Envelope)
	}
	if err == nil && j.State == job.Discarded {
		err = t.quarantine(&j, cause)
	}
	t.moved(job.Job{}, j)
	if j.MessageID != "" && j.State != job.Discarded {
		t.messages[message{j.Queue, j.MessageID}] = j
	}
	return job.Enqueued{Job: j}, err
}

// quarantine makes a new job a dead letter: it never ran.
func (t *tx) quarantine(j *job.Job, cause fingerprint.Cause) (err error) {
	const update = `UPDATE jobs SET letter = 'stored', finished_at = $2, reason = $3, error_type = $4, error_message = $5,
			group_id = $6 WHERE seq = $1`
	if err := t.flushJobs(); err != nil {
		return err
	}
	if j.Group, err = t.failed(cause, *j, 0, micros(j.FinishedAt), true); err != nil {
		return err
	}
	n, err := t.exec(update, j.Seq, micros(j.FinishedAt), string(j.Reason), j.Error.Type, j.Error.Message, j.Group)
	if err := expect(1, n, err); err != nil {
		return err
	}
	if err := t.unsearched.add(t, j.Seq, 0); err != nil {
		return err
	}
	return t.addLetter(*j, job.DeadLetter{
		Run: j.Run, Reason: j.Reason, Error: j.Error.Message, Exception: j.Error.Type, FailedAt: j.FinishedAt, Queue: j.Queue,
	})
}

// message names an envelope.
type message struct{ queue, id string }

// first returns the job that answers for a repeat, or sql.ErrNoRows.
func (t *tx) first(j job.Job) (job.Job, error) {
	if j.Key != "" {
		return t.byKey(j.Key)
	}
	if j.MessageID == "" || j.State == job.Discarded {
		return job.Job{}, sql.ErrNoRows
	}
	if first, ok := t.messages[message{j.Queue, j.MessageID}]; ok {
		return first, nil
	}
	const query = wholeJobs + ` WHERE message_id = $1 AND message_id <> '' AND queue = $2
		AND state NOT IN ('completed', 'discarded', 'cancelled') ORDER BY seq LIMIT 1`
	return one(t.store.policies.whole(t, query, j.MessageID, j.Queue))
}

func (t *tx) byKey(key string) (job.Job, error) {
	const query = wholeJobs + ` WHERE key = $1 AND key <> ''`
	if err := t.flushJobs(); err != nil { // it may be one of those that wait
		return job.Job{}, err
	}
	return one(t.store.policies.whole(t, query, key))
}

// byID returns the job as this transaction sees it.
func (t *tx) byID(id string) (job.Job, error) { return t.store.policies.byID(t, id) }

func (p *policies) byID(src source, id string) (job.Job, error) {
	const query = wholeJobs + ` WHERE id = $1`
	j, err := one(p.whole(src, query, id))
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w with the id %s", job.ErrNotFound, clip.Text(id, 64))
	}
	return j, err
}

// one is the only job that a query found.
func one(jobs []job.Job, err error) (job.Job, error) {
	if err == nil && len(jobs) == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return job.Job{}, err
	}
	return jobs[0], nil
}
