package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	lib "modernc.org/sqlite/lib"

	"redrive/internal/job"
)

// Enqueue stores jobs, all or none of them, and returns each as it is stored,
// in the same order. A job that may not run before a time after now is
// scheduled, any other available. An empty id is filled in; an id that is taken
// is a *job.Conflict. The jobs must be valid: nothing is checked here.
func (s *Store) Enqueue(ctx context.Context, now time.Time, jobs []job.Job) ([]job.Enqueued, error) {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		fresh(&jobs[i], now)
	}
	done, err := write(ctx, s.writer, len(jobs), func(t *tx) ([]job.Enqueued, error) {
		done := make([]job.Enqueued, len(jobs))
		for i, j := range jobs {
			var err error
			if done[i], err = t.enqueue(j); err != nil {
				return nil, err
			}
		}
		return done, t.jobs.flush(t, 1)
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
	j.RunAt = j.RunAt.UTC().Truncate(time.Microsecond)
	j.State = job.Available
	if j.RunAt.After(now) {
		j.State = job.Scheduled
	} else {
		j.RunAt = now
	}
	if j.Payload == nil {
		j.Payload = []byte{}
	}
}

// inserting stores new jobs.
func inserting() batch {
	return batch{
		head: `INSERT INTO jobs (seq, id, queue, type, state, priority, policy_id, ttr, run_at, enqueued_at, changed_at, key, meta, payload) VALUES `,
		row:  `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, columns: 14,
	}
}

// enqueue stores a job, unless its key names one already.
func (t *tx) enqueue(j job.Job) (job.Enqueued, error) {
	if j.Key != "" {
		first, err := t.byKey(j.Key)
		if !errors.Is(err, sql.ErrNoRows) {
			return job.Enqueued{Job: first, Repeat: true}, err
		}
	}
	policy, err := t.policyID(j.Policy)
	if err != nil {
		return job.Enqueued{}, err
	}
	t.seq++
	j.Seq = t.seq
	err = t.jobs.add(t, j.Seq, j.ID, j.Queue, j.Type, string(j.State), j.Priority, policy, j.Timeout.Microseconds(),
		micros(j.RunAt), micros(j.EnqueuedAt), micros(j.ChangedAt), j.Key, []byte(j.Meta), j.Payload)
	t.moved(job.Job{}, j)
	return job.Enqueued{Job: j}, err
}

func (t *tx) byKey(key string) (job.Job, error) {
	const query = `SELECT ` + jobColumns + ` FROM jobs WHERE key = $1 AND key <> ''`
	if err := t.jobs.flush(t, 1); err != nil { // it may be one of those that wait
		return job.Job{}, err
	}
	return one(t.store.policies.jobs(t, query, key))
}

// byID returns the job as this transaction sees it.
func (t *tx) byID(id string) (job.Job, error) { return t.store.policies.byID(t, id) }

func (p *policies) byID(src source, id string) (job.Job, error) {
	const query = `SELECT ` + jobColumns + ` FROM jobs WHERE id = $1`
	j, err := one(p.jobs(src, query, id))
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w with the id %s", job.ErrNotFound, job.Clip(id, 64))
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
