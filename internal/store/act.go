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
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
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
		e.Before, e.After = standing(from)+e.Before, standing(to)+e.After
		return to, s.Accounts.Log(t, e)
	})
}

// about is the beginning of the entry of the audit log about one job.
func about(id, action string, now time.Time, by audit.Actor) audit.Entry {
	return audit.Entry{At: now, Actor: by, Action: action, Subject: id, Count: 1}
}

// standing says in a few words where a job is.
func standing(j job.Job) string { return fmt.Sprintf("%s, run %d", j.Status(), j.Run) }

// change runs a statement that changes the job and returns it as it is then.
func (s *Store) change(t *db.Tx, j job.Job, update string, args ...any) (job.Job, error) {
	if err := t.ExecExactly(1, update, args...); err != nil {
		return job.Job{}, fmt.Errorf("change job %s: %w", j.ID, err)
	}
	return s.policies.ByID(t, j.ID)
}

// refuse is the *job.Conflict of a job that an act does not fit.
func refuse(j job.Job, problem string, args ...any) (job.Job, error) {
	return job.Job{}, &job.Conflict{Job: j, Problem: fmt.Sprintf(problem, args...)}
}

// missed says why the run that somebody looked at cannot be replayed, or is not
// the job's any more.
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
		c.Problem = fmt.Sprintf("run %d is %s; a job can be replayed once it is discarded, cancelled or waits for a retry", run, j.State)
	}
	return c
}

// Cancel takes a job back before it has ended, in the run that the caller looked
// at; another run, or one that has ended, is a *job.Conflict. An execution that is
// under way loses its lease: whatever it still reports is stale, and its attempt
// is recorded as cancelled.
func (s *Store) Cancel(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	const update = `UPDATE jobs SET state = 'cancelled', list_state = 'cancelled', letter = '', held = 0, reason = $2,
		changed_at = $3, finished_at = $3 WHERE seq = $1`
	return s.act(ctx, about(id, "job.cancel", now, by), func(t *db.Tx, from job.Job, _ *audit.Entry) (job.Job, error) {
		if from.Run != run {
			return job.Job{}, s.missed(t, from, run)
		}
		if !from.Cancellable() {
			return refuse(from, "the job is %s; it can no longer be cancelled", from.State)
		}
		if from.State == job.Active {
			err := rows.AddAttempt(t, &s.tx.attempts, from.Seq, job.Attempt{
				Run: from.Run, Execution: from.Execution, Worker: from.Worker, StartedAt: from.StartedAt,
				FinishedAt: now, Outcome: job.CancelledBy, DecidedBy: "manual:" + audit.Name(by.Name),
			})
			if err != nil {
				return job.Job{}, err
			}
		}
		to, err := s.change(t, from, update, from.Seq, string(retry.Manual), db.Micros(now))
		if err == nil {
			s.tx.ended(&from, operation.RunDropped, now)
			s.moved(&from, &to, job.Totals{})
		}
		return to, err
	})
}

// Forwarded writes down what became of a refused dead letter that was sent once
// more: it is stored as any other letter, or its problem is a newer one. A run
// whose letter is not refused (any more) is a *job.Conflict.
func (s *Store) Forwarded(ctx context.Context, now time.Time, id string, run int, d job.Delivery, by audit.Actor) (job.Job, error) {
	return s.act(ctx, about(id, "job.forward", now, by), func(t *db.Tx, from job.Job, _ *audit.Entry) (job.Job, error) {
		if from.Run != run || from.Letter != job.LetterRefused {
			return refuse(from, "the dead letter of run %d is not refused; the job is %s in run %d", run, from.Status(), from.Run)
		}
		if d.Problem == "" {
			return s.accepted(t, from, d)
		}
		const still = `UPDATE dead_letters SET problem = $3 WHERE job_seq = $1 AND run = $2`
		t.Touch()
		return from, t.ExecExactly(1, still, from.Seq, run, clip.Text(d.Problem, job.MaxNote))
	})
}

// accepted moves a refused letter into the dead-letter queue. Its job failed when
// it failed: the list of letters and the scope of an operation both go by that.
func (s *Store) accepted(t *db.Tx, from job.Job, d job.Delivery) (job.Job, error) {
	const letter = `UPDATE dead_letters SET open = 1, refused = 0, problem = '', forwarded_to = $3, forwarded_at = $4
		WHERE job_seq = $1 AND run = $2 AND refused = 1`
	const update = `UPDATE jobs SET letter = 'stored' WHERE seq = $1`
	if err := t.ExecExactly(1, letter, from.Seq, from.Run, d.ForwardedTo, db.Micros(d.ForwardedAt)); err != nil {
		return job.Job{}, err
	}
	to, err := s.change(t, from, update, from.Seq)
	if err == nil {
		s.moved(&from, &to, job.Totals{})
	}
	return to, err
}
