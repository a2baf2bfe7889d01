package store

import (
	"context"
	"iter"
	"slices"
	"time"

	"redrive/internal/fingerprint"
	"redrive/internal/job"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
	"redrive/internal/store/rows"
)

// Enqueue stores jobs, all or none of them, and returns each as it is stored,
// in the same order. A job that may not run before a time after now is
// scheduled, any other available. One that comes as discarded is a dead letter
// from the beginning, for the reason and the error that it brings. An empty id
// is filled in; an id that is taken is a *job.Conflict. The first job answers
// for a repeat: of its caller's idempotency key for as long as that job is kept,
// of an envelope with the same message id, type and payload in its queue until
// the first one has ended. A key that was used for something else is a
// *job.KeyReused, a new queue that would be one too many a *queues.Full. The jobs
// must be valid: nothing else is checked here.
func (s *Store) Enqueue(ctx context.Context, now time.Time, jobs []job.Job) ([]job.Enqueued, error) {
	r := s.request(now, jobs)
	done, err := db.WriteLarge(ctx, s.writer, sizeOf(jobs), func(t *db.Tx) ([]job.Enqueued, error) {
		// What can refuse the request is asked before it writes. Only an id that is taken is
		// found later, by the database.
		repeats, err := s.repeats(t, r)
		if err == nil {
			err = s.Counters.Admit(t, queuesOf(r.jobs, repeats))
		}

		if err != nil {
			return nil, err
		}

		// The jobs of the request are stored in their place. With repeats among them they are
		// kept as they are, because what they repeat can be rolled back: they are stored
		// themselves in the next run.
		done := r.jobs
		if !repeats.none() {
			done = slices.Clone(r.jobs)
		}

		for i := range done {
			if first, known := repeats.first(i, done); known {
				done[i] = job.Enqueued{Job: first, Repeat: true}
				continue
			}

			if err := s.enqueue(t, r, i, &done[i].Job); err != nil {
				return nil, err
			}
		}

		return done, nil
	})
	if s.engine.Taken(err) == "jobs.id" {
		return nil, &job.Conflict{Problem: "a job with this id exists already; nothing was enqueued"}
	}

	return done, err
}

// request is what one call enqueues, as far as that is known before its
// transaction.
type request struct {
	jobs     []job.Enqueued // as they are stored
	policies []rows.PolicyText
	messages []message                 // of those that came as envelopes; nil when none did
	causes   map[int]fingerprint.Cause // of those that come as dead letters
}

func (s *Store) request(now time.Time, jobs []job.Job) *request {
	r := &request{jobs: make([]job.Enqueued, len(jobs)), policies: s.policies.Texts(jobs)}
	for i := range r.jobs {
		j := &r.jobs[i].Job
		*j = jobs[i]
		fresh(j, now)

		if isMessage(j) {
			if r.messages == nil {
				r.messages = make([]message, len(jobs))
			}

			r.messages[i] = messageOf(j)
		}

		if j.State == job.Discarded { // they share a reason and not an error type
			if r.causes == nil {
				r.causes = map[int]fingerprint.Cause{}
			}

			r.causes[i] = fingerprint.Of(j.Type, string(j.Reason), j.Error.Message, "")
		}
	}

	return r
}

// sizeOf is how much new jobs are.
func sizeOf(jobs []job.Job) db.Size {
	size := db.Size{Rows: len(jobs)}
	for i := range jobs {
		size.Bytes += len(jobs[i].Payload) + len(jobs[i].Meta) + len(jobs[i].Envelope)
	}

	return size
}

// queuesOf names the queues of new jobs, some of them more than once.
func queuesOf(jobs []job.Enqueued, known repeats) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range jobs {
			if !known.is(i) && !yield(jobs[i].Job.Queue) {
				return
			}
		}
	}
}

// fresh fills in what every new job has, and makes its texts such that every
// database can keep them.
func fresh(j *job.Job, now time.Time) {
	for _, text := range []*string{&j.Type, &j.Key, &j.Caller, &j.TraceID, &j.MessageID, &j.Note, &j.Error.Type, &j.Error.Message} {
		*text = db.Clean(*text)
	}

	now = now.UTC().Truncate(time.Microsecond)

	if j.ID == "" {
		j.ID = job.NewID()
	}

	j.Run, j.Attempts, j.Execution = 1, 0, 0

	j.EnqueuedAt, j.ChangedAt = now, now
	j.RunAt, j.ExpiresAt = j.RunAt.UTC().Truncate(time.Microsecond), j.ExpiresAt.UTC().Truncate(time.Microsecond)
	switch {
	case j.State == job.Discarded:
		j.RunAt, j.FinishedAt, j.DeadLetter = now, now, job.DeadLetterStored
	case j.RunAt.After(now):
		j.State = job.Scheduled
	default:
		j.State, j.RunAt = job.Available, now
	}

	if j.Payload == nil {
		j.Payload = []byte{}
	}
}

// enqueue stores the job at a place of a request.
func (s *Store) enqueue(t *db.Tx, r *request, i int, j *job.Job) error {
	policy, err := s.policies.ID(t, r.policies[i])
	if err != nil {
		return err
	}

	err = s.core.Append(t, j, policy)
	if err != nil {
		return err
	}

	// The job may not be written yet: a later request of this transaction that repeats it finds
	// it here.
	named := s.named.In(t)
	if isMessage(j) {
		named.messages[r.messages[i]] = j
	}

	if j.Key != "" {
		named.keys[callerKey{j.Caller, j.Key}] = j
	}

	if j.State == job.Discarded {
		if err := s.quarantine(t, j, r.causes[i]); err != nil {
			return err
		}
	}

	s.core.Move(t, nil, j, stats.Totals{})

	return nil
}

// quarantine makes a new job a dead letter: it never ran.
func (s *Store) quarantine(t *db.Tx, j *job.Job, cause fingerprint.Cause) error {
	const update = `UPDATE jobs SET letter = 'stored', finished_at = $2, reason = $3, error_type = $4, error_message = $5,
			group_id = $6 WHERE seq = $1`

	if err := s.core.Fail(t, projection.Failure{Cause: cause, Job: j, Final: true}); err != nil {
		return err
	}

	err := t.ExecExactly(1, update, j.Seq, db.Micros(j.FinishedAt), string(j.Reason), j.Error.Type, j.Error.Message, j.Group)
	if err != nil {
		return err
	}

	return s.core.AddDeadLetter(t, j.Seq, job.DeadLetter{
		Run: j.Run, Reason: j.Reason, Error: j.Error.Message, Exception: j.Error.Type, FailedAt: j.FinishedAt, Queue: j.Queue,
	})
}
