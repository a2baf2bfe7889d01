package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"slices"
	"time"

	"redrive/internal/fingerprint"
	"redrive/internal/job"
	"redrive/internal/store/book"
	"redrive/internal/store/db"
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
	jobs = slices.Clone(jobs)
	texts := rows.TextsOf(jobs)
	causes := map[int]fingerprint.Cause{} // of those that come as dead letters, which share a reason and not an error type
	for i := range jobs {
		if fresh(&jobs[i], now); jobs[i].State == job.Discarded {
			causes[i] = fingerprint.Of(jobs[i].Type, string(jobs[i].Reason), jobs[i].Error.Message, "")
		}
	}
	done, err := db.WriteLarge(ctx, s.writer, sizeOf(jobs), func(t *db.Tx) ([]job.Enqueued, error) {
		first, beside, err := s.repeats(t, jobs)
		if err == nil {
			err = s.Counters.Admit(queuesOf(jobs, first)...)
		}
		if err != nil {
			return nil, err
		}
		done := make([]job.Enqueued, len(jobs))
		for i, j := range jobs {
			if k, again := beside[i]; again {
				done[i] = job.Enqueued{Job: done[k].Job, Repeat: true}
			} else if f, known := first[i]; known {
				done[i] = job.Enqueued{Job: f, Repeat: true}
			} else if done[i], err = s.enqueue(t, &j, texts[i], causes[i]); err != nil {
				return nil, err
			}
		}
		return done, s.tx.flushJobs(t)
	})
	if s.engine.Taken(err) {
		return nil, &job.Conflict{Problem: "a job with this id exists already; nothing was enqueued"}
	}
	return done, err
}

// sizeOf is how much new jobs are.
func sizeOf(jobs []job.Job) db.Size {
	size := db.Size{Rows: len(jobs)}
	for i := range jobs {
		size.Bytes += len(jobs[i].Payload) + len(jobs[i].Meta) + len(jobs[i].Envelope)
	}
	return size
}

// queuesOf names the queues of new jobs, each once.
func queuesOf(jobs []job.Job, repeats map[int]job.Job) (all []string) {
	seen := map[string]bool{}
	for i, j := range jobs {
		if _, again := repeats[i]; !again && !seen[j.Queue] {
			seen[j.Queue] = true
			all = append(all, j.Queue)
		}
	}
	return all
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

// flushJobs writes the new jobs that wait.
func (g *gathered) flushJobs(t *db.Tx) error {
	return db.Steps(t, g.jobs.Flush, g.bodies.Flush, g.keys.Flush)
}

// enqueue stores a job, unless its message id names one already.
func (s *Store) enqueue(t *db.Tx, j *job.Job, text rows.PolicyText, cause fingerprint.Cause) (job.Enqueued, error) {
	if first, err := s.first(t, j); !errors.Is(err, sql.ErrNoRows) {
		return job.Enqueued{Job: first, Repeat: true}, err
	}
	policy, err := s.policies.ID(t, text)
	if err != nil {
		return job.Enqueued{}, err
	}
	j.Seq = s.known.number()
	err = s.tx.jobs.Add(t, j.Seq, j.ID, j.Queue, j.Type, string(j.State), rows.ListState(j.State), j.Priority, policy,
		j.Timeout.Microseconds(), db.Micros(j.RunAt), db.Micros(j.EnqueuedAt), db.Micros(j.ChangedAt), j.Key)
	if err == nil {
		err = s.tx.bodies.Add(t, j.Seq, db.Micros(j.ExpiresAt), j.TraceID, j.MessageID, j.Note, []byte(j.Meta), j.Payload, j.Envelope)
	}
	if err == nil && j.Key != "" {
		err = s.tx.keys.Add(t, j.Seq, j.Caller, j.Key, j.Content)
	}
	if err == nil && j.State == job.Discarded {
		err = s.quarantine(t, j, cause)
	}
	s.moved(nil, j, job.Totals{})
	if j.MessageID != "" && j.State != job.Discarded {
		s.tx.messages[messageOf(j)] = *j
	}
	return job.Enqueued{Job: *j}, err
}

// quarantine makes a new job a dead letter: it never ran.
func (s *Store) quarantine(t *db.Tx, j *job.Job, cause fingerprint.Cause) error {
	const update = `UPDATE jobs SET letter = 'stored', finished_at = $2, reason = $3, error_type = $4, error_message = $5,
			group_id = $6 WHERE seq = $1`
	if err := s.tx.flushJobs(t); err != nil {
		return err
	}
	if err := s.books.Failed(t, book.Failure{Cause: cause, Job: j, Final: true}); err != nil {
		return err
	}
	err := t.ExecExactly(1, update, j.Seq, db.Micros(j.FinishedAt), string(j.Reason), j.Error.Type, j.Error.Message, j.Group)
	if err != nil {
		return err
	}
	return addLetter(t, j.Seq, job.DeadLetter{
		Run: j.Run, Reason: j.Reason, Error: j.Error.Message, Exception: j.Error.Type, FailedAt: j.FinishedAt, Queue: j.Queue,
	})
}

// message names an envelope with what it asks for.
type message struct {
	queue, id, typ string
	payload        [sha256.Size]byte
}

func messageOf(j *job.Job) message {
	return message{j.Queue, j.MessageID, j.Type, sha256.Sum256(j.Payload)}
}

// first returns the job that answers for a repeated envelope, or sql.ErrNoRows.
// An id alone makes no repeat: a second envelope that asks for something else is
// a job of its own, whoever chose its id.
func (s *Store) first(t *db.Tx, j *job.Job) (job.Job, error) {
	if j.MessageID == "" || j.State == job.Discarded {
		return job.Job{}, sql.ErrNoRows
	}
	if first, ok := s.tx.messages[messageOf(j)]; ok {
		return first, nil
	}
	const query = rows.Whole + ` WHERE message_id = $1 AND message_id <> '' AND queue = $2 AND (type = $3 AND payload = $4
			OR EXISTS (SELECT 1 FROM earlier_runs AS e WHERE e.job_seq = seq AND e.type = $3 AND e.payload = $4))
		AND state NOT IN ('completed', 'discarded', 'cancelled') ORDER BY seq LIMIT 1`
	return rows.One(s.policies.Whole(t, query, j.MessageID, j.Queue, j.Type, j.Payload)) // a replay may have changed it since
}
