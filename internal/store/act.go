package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// Replay starts the next run of a job: same id, same payload, no attempts yet,
// available now. run is the run that the caller looked at, and only the first
// call for it has an effect; later ones get a *job.Conflict that names whoever
// was first. A job that cannot be replayed is a *job.Conflict too. One that lies
// in the trash leaves it.
func (s *Store) Replay(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return db.Write(ctx, s.writer, 1, func(t *db.Tx) (job.Job, error) {
		from, err := s.byID(t, id)
		if err != nil {
			return job.Job{}, err
		}
		if from.Run != run || !from.Replayable() {
			return job.Job{}, s.missed(t, from, run)
		}
		to, err := s.replay(t, from, now, by)
		if err != nil {
			return job.Job{}, err
		}
		return to, s.Accounts.Log(t, about(from, to, "job.replay", now, by))
	})
}

func (s *Store) replay(t *db.Tx, from job.Job, now time.Time, by audit.Actor) (job.Job, error) {
	if err := s.ReplayAll(t, []job.Job{from}, now, by, 0); err != nil {
		return job.Job{}, fmt.Errorf("replay job %s: %w", from.ID, err)
	}
	return s.byID(t, from.ID)
}

// byID returns the job as this transaction sees it.
func (s *Store) byID(t *db.Tx, id string) (job.Job, error) { return s.policies.ByID(t, id) }

// ReplayAll starts the next run of jobs that can be replayed, each as it is in
// this transaction. bulk is the operation whose items they are, or 0. OR FAIL spares SQLite
// a journal for each statement: after an error the whole transaction is rolled
// back anyway.
func (s *Store) ReplayAll(t *db.Tx, from []job.Job, now time.Time, by audit.Actor, bulk int64) error {
	const (
		record = `INSERT OR FAIL INTO replays (job_seq, run, state, reason, attempts, at, by, group_id, operation_id)
			SELECT seq, run, state, reason, attempts, $2, $3, group_id, $4 FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`
		letter = `UPDATE OR FAIL dead_letters SET open = 0, replayed_at = $2, replayed_by = $3, discarded_at = 0, discarded_by = ''
			WHERE job_seq IN (SELECT value FROM json_each($1)) AND replayed_at = 0` // those of the runs before were replayed
		update = `UPDATE OR FAIL jobs SET run = run + 1, attempts = 0, state = 'available', shelf = '', held = 0, letter = '', group_id = 0,
				run_at = $2, changed_at = $2, finished_at = 0, reason = '', error_type = '', error_message = ''
			WHERE seq IN (SELECT value FROM json_each($1))`
	)
	these, at := rows.Seqs(from), db.Micros(now)
	if err := t.ExecExactly(len(from), record, these, at, by.Name, bulk); err != nil {
		return fmt.Errorf("record the replay: %w", err)
	}
	if _, err := t.Exec(letter, these, at, by.Name); err != nil {
		return fmt.Errorf("mark the dead letter: %w", err)
	}
	if err := s.leaveTrash(t, from...); err != nil {
		return err
	}
	if err := t.ExecExactly(len(from), update, these, at); err != nil {
		return fmt.Errorf("start the next run: %w", err)
	}
	s.tx.changes = slices.Grow(s.tx.changes, len(from))
	next := make([]job.Job, len(from))
	for i := range from {
		next[i] = renewed(from[i], now)
		s.tx.ended(&from[i], operation.RunDropped, now)
		s.moved(&from[i], &next[i], job.Totals{Replayed: 1})
	}
	return nil
}

// renewed is a job at the beginning of its next run.
func renewed(j job.Job, now time.Time) job.Job {
	at := db.FromMicros(db.Micros(now))
	j.Run, j.Attempts, j.State, j.Letter, j.Held = j.Run+1, 0, job.Available, job.NoLetter, false
	j.RunAt, j.ChangedAt, j.FinishedAt, j.Reason, j.Error = at, at, time.Time{}, "", job.ErrorInfo{}
	j.Group = 0
	return j
}

// change runs a statement that changes the job and returns it as it is then.
func (s *Store) change(t *db.Tx, j job.Job, update string, args ...any) (job.Job, error) {
	if err := t.ExecExactly(1, update, args...); err != nil {
		return job.Job{}, err
	}
	return s.byID(t, j.ID)
}

// missed says why the run that somebody looked at cannot be replayed, or is not
// the job's any more.
func (s *Store) missed(t *db.Tx, j job.Job, run int) error {
	c := &job.Conflict{Job: j}
	const query = `SELECT at, by FROM replays WHERE job_seq = $1 AND run = $2`
	var at int64
	err := t.Query(query, func(rows *sql.Rows) error { return rows.Scan(&at, &c.ReplayedBy) }, j.Seq, run)
	if err != nil {
		return err
	}
	c.ReplayedAt = db.FromMicros(at)
	switch {
	case at != 0:
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
// at; another run, or one that has ended, is a *job.Conflict. An execution that is under way
// loses its lease: whatever it still reports is stale, and its attempt is
// recorded as cancelled.
func (s *Store) Cancel(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return db.Write(ctx, s.writer, 1, func(t *db.Tx) (job.Job, error) {
		from, err := s.byID(t, id)
		if err != nil {
			return job.Job{}, err
		}
		if from.Run != run {
			return job.Job{}, s.missed(t, from, run)
		}
		if !from.Cancellable() {
			return job.Job{}, &job.Conflict{Job: from, Problem: fmt.Sprintf("the job is %s; it can no longer be cancelled", from.State)}
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
		to, err := s.finish(t, from, job.Cancelled, job.NoLetter, now)
		if err != nil {
			return job.Job{}, err
		}
		return to, s.Accounts.Log(t, about(from, to, "job.cancel", now, by))
	})
}

// finish ends a job by a person's decision.
func (s *Store) finish(t *db.Tx, from job.Job, state job.State, letter job.Letter, now time.Time) (job.Job, error) {
	const update = `UPDATE jobs SET state = $2, shelf = $2, letter = $5, held = 0, reason = $3, changed_at = $4, finished_at = $4
		WHERE seq = $1`
	to, err := s.change(t, from, update, from.Seq, string(state), string(retry.Manual), db.Micros(now), string(letter))
	if err != nil {
		return job.Job{}, fmt.Errorf("end job %s: %w", from.ID, err)
	}
	s.tx.ended(&from, operation.RunDropped, now)
	s.moved(&from, &to, job.Totals{})
	return to, nil
}

// about is the entry of the audit log about one job.
func about(from, to job.Job, action string, now time.Time, by audit.Actor) audit.Entry {
	return audit.Entry{At: now, Actor: by, Action: action, Subject: to.ID, Count: 1, Before: standing(from), After: standing(to)}
}

// standing says in a few words where a job is.
func standing(j job.Job) string { return fmt.Sprintf("%s, run %d", j.Status(), j.Run) }
