package store

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/internal/store/core"
	"redrive/internal/store/db"
	"redrive/internal/wire"
)

// act is what a person does to one job. do gets the job as it is in the
// transaction, refuses or acts, and returns the job as it is then. The audit log
// says where the job was before and after; do can add to that in its entry.
func (s *Store) act(
	ctx context.Context, e audit.Entry, do func(t *db.Tx, from job.Job, e *audit.Entry) (job.Job, error),
) (job.Job, error) {
	return db.Write(ctx, s.writer, 1, func(t *db.Tx) (job.Job, error) {
		from, err := s.policies.ByID(t, e.Subject)
		if err != nil {
			return job.Job{}, err
		}

		e := e // of this run

		to, err := do(t, from, &e)
		if err != nil {
			return job.Job{}, err
		}

		e.Before, e.After = core.Describe(from)+e.Before, core.Describe(to)+e.After

		return to, s.Accounts.Log(t, e)
	})
}

// about is the beginning of the entry of the audit log about one job.
func about(id, action string, now time.Time, by audit.Actor) audit.Entry {
	return audit.Entry{At: now, Actor: by, Action: action, Subject: id, Count: 1}
}

// refuse is the *job.Conflict of a job that an act does not fit.
func refuse(j job.Job, problem string, args ...any) (job.Job, error) {
	return job.Job{}, &job.Conflict{Job: j, Problem: fmt.Sprintf(problem, args...)}
}

// missed says why the run that a caller looked at cannot be replayed, or is no
// longer the job's current run.
func (s *Store) missed(t *db.Tx, j job.Job, run int) error {
	c := &job.Conflict{Job: j}
	const query = `SELECT at, by FROM replays WHERE job_seq = $1 AND run = $2`
	if _, err := db.Row(t, query, []any{db.Time(&c.ReplayedAt), &c.ReplayedBy}, j.Seq, run); err != nil {
		return err
	}

	switch {
	case !c.ReplayedAt.IsZero():
		c.Problem = fmt.Sprintf("run %d was replayed by %s at %s; the job is %s in run %d",
			run, audit.Name(c.ReplayedBy), c.ReplayedAt.Format("2006-01-02 15:04:05 UTC"), j.State, j.Run)
	case run != j.Run:
		c.Problem = fmt.Sprintf("the job has no run %d; it is %s in run %d", run, j.State, j.Run)
	default:
		c.Problem = fmt.Sprintf("run %d is %s; only a dead letter, a job that was cancelled or discarded, "+
			"or one that waits for a retry can be replayed", run, j.State)
	}

	return c
}

// Cancel takes a job back before it has ended, in the run that the caller looked
// at; another run, or one that has ended, is a *job.Conflict. An execution that is
// under way loses its lease: whatever it still reports is stale, and its attempt
// is recorded as cancelled.
func (s *Store) Cancel(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	const update = `UPDATE jobs SET state = 'cancelled', list_state = 'cancelled', letter = '', held = 0, unbegun = 0, reason = $2,
		changed_at = $3, finished_at = $3 WHERE seq = $1`

	return s.act(ctx, about(id, "job.cancel", now, by), func(t *db.Tx, from job.Job, _ *audit.Entry) (job.Job, error) {
		if from.Run != run {
			return job.Job{}, s.missed(t, from, run)
		}

		if !from.Cancellable() {
			return refuse(from, "the job is %s; it can no longer be cancelled", from.State)
		}

		// The worker can no longer record its attempt, so it is recorded here.
		if from.State == job.Active {
			err := s.core.AddAttempt(t, from.Seq, job.Attempt{
				Run: from.Run, Execution: from.Execution, Worker: from.Worker, StartedAt: from.StartedAt,
				FinishedAt: now, Outcome: job.CancelledBy, DecidedBy: "manual:" + audit.Name(by.Name),
			})
			if err != nil {
				return job.Job{}, err
			}
		}

		to, err := s.core.Change(t, from, update, from.Seq, string(retry.Manual), db.Micros(now))
		if err == nil {
			s.core.End(t, &from, operation.RunDropped, now)
			s.core.Move(t, &from, &to, stats.Totals{})
		}

		return to, err
	})
}

// Reschedule moves a job that waits for its time to another one, in the run that the
// caller looked at; a time that is not to come lets it run now. Nothing else changes:
// no attempt is charged, the job stays in its state since it came there, and the delay
// that its policy chose stays with the attempt that failed. A job in another run or
// state is a *job.Conflict; so is one that would expire before it runs.
func (s *Store) Reschedule(ctx context.Context, now time.Time, id string, run int, at time.Time, by audit.Actor) (job.Job, error) {
	const update = `UPDATE jobs SET run_at = $2 WHERE seq = $1`

	if at.Before(now) {
		at = now
	}

	return s.act(ctx, about(id, "job.reschedule", now, by), func(t *db.Tx, from job.Job, e *audit.Entry) (job.Job, error) {
		if from.Run != run {
			return job.Job{}, s.missed(t, from, run)
		}

		if from.State != job.Scheduled && from.State != job.Retryable {
			return refuse(from, "the job is %s; only a job that is scheduled or waits for a retry can be rescheduled", from.State)
		}

		if from.Expired(at) {
			return refuse(from, "the job expires at %s; at %s it could no longer run", wire.FormatTime(from.ExpiresAt), wire.FormatTime(at))
		}

		to, err := s.core.Change(t, from, update, from.Seq, db.Micros(at))
		if err == nil {
			s.core.Move(t, &from, &to, stats.Totals{})
		}

		e.Before, e.After = notBefore(from), notBefore(to)

		return to, err
	})
}

// notBefore tells, for the audit log, from when on a job may run.
func notBefore(j job.Job) string { return "; not before " + wire.FormatTime(j.RunAt) }

// Forwarded writes down what became of a refused dead letter that was sent once
// more: it is stored as any other dead letter, or its problem is a newer one. A run
// whose dead letter is not refused (any more) is a *job.Conflict.
func (s *Store) Forwarded(ctx context.Context, now time.Time, id string, run int, d job.Delivery, by audit.Actor) (job.Job, error) {
	return s.act(ctx, about(id, "job.forward", now, by), func(t *db.Tx, from job.Job, _ *audit.Entry) (job.Job, error) {
		if from.Run != run || from.DeadLetter != job.DeadLetterRefused {
			return refuse(from, "the dead letter of run %d is not refused; the job is %s in run %d", run, from.Status(), from.Run)
		}

		if d.Problem == "" {
			return s.accepted(t, from, d)
		}

		const still = `UPDATE dead_letters SET problem = $3 WHERE job_seq = $1 AND run = $2`

		// No job moves, but pages show the problem.
		t.Touch()

		return from, t.ExecExactly(1, still, from.Seq, run, clip.Text(d.Problem, job.MaxNote))
	})
}

// accepted moves a refused dead letter into the dead-letter queue. Its job failed when
// it failed: the list of dead letters and the scope of an operation both go by that.
func (s *Store) accepted(t *db.Tx, from job.Job, d job.Delivery) (job.Job, error) {
	const accept = `UPDATE dead_letters SET refused = 0, problem = '', forwarded_to = $3, forwarded_at = $4
		WHERE job_seq = $1 AND run = $2 AND refused = 1`
	const update = `UPDATE jobs SET letter = 'stored' WHERE seq = $1`

	if err := t.ExecExactly(1, accept, from.Seq, from.Run, d.ForwardedTo, db.Micros(d.ForwardedAt)); err != nil {
		return job.Job{}, err
	}

	to, err := s.core.Change(t, from, update, from.Seq)
	if err == nil {
		s.core.Move(t, &from, &to, stats.Totals{})
	}

	return to, err
}
