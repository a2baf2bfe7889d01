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
)

// Replay starts the next run of a job: same id, same payload, no attempts yet,
// available now. run is the run that the caller looked at, and only the first
// call for it has an effect; later ones get a *job.Conflict that names whoever
// was first. A job that cannot be replayed is a *job.Conflict too. One that lies
// in the trash leaves it.
func (s *Store) Replay(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return write(ctx, s.writer, 1, func(t *tx) (job.Job, error) {
		from, err := t.byID(id)
		if err != nil {
			return job.Job{}, err
		}
		if from.Run != run || !from.Replayable() {
			return job.Job{}, t.missed(from, run)
		}
		to, err := t.replay(from, now, by)
		if err != nil {
			return job.Job{}, err
		}
		return to, t.audit(about(from, to, "job.replay", now, by))
	})
}

func (t *tx) replay(from job.Job, now time.Time, by audit.Actor) (job.Job, error) {
	if err := t.replayAll([]job.Job{from}, now, by, 0); err != nil {
		return job.Job{}, fmt.Errorf("replay job %s: %w", from.ID, err)
	}
	return t.byID(from.ID)
}

// replayAll starts the next run of jobs that can be replayed, each as it is in
// this transaction. bulk is the operation whose items they are, or 0. OR FAIL spares SQLite
// a journal for each statement: after an error the whole transaction is rolled
// back anyway.
func (t *tx) replayAll(from []job.Job, now time.Time, by audit.Actor, bulk int64) error {
	const (
		record = `INSERT OR FAIL INTO replays (job_seq, run, state, reason, attempts, at, by, group_id, operation_id)
			SELECT seq, run, state, reason, attempts, $2, $3, group_id, $4 FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`
		letter = `UPDATE OR FAIL dead_letters SET open = 0, replayed_at = $2, replayed_by = $3, discarded_at = 0, discarded_by = ''
			WHERE job_seq IN (SELECT value FROM json_each($1)) AND replayed_at = 0` // those of the runs before were replayed
		update = `UPDATE OR FAIL jobs SET run = run + 1, attempts = 0, state = 'available', shelf = '', held = 0, letter = '', group_id = 0,
				run_at = $2, changed_at = $2, finished_at = 0, reason = '', error_type = '', error_message = ''
			WHERE seq IN (SELECT value FROM json_each($1))`
	)
	these, at := seqs(from), micros(now)
	n, err := t.exec(record, these, at, by.Name, bulk)
	if err := expect(int64(len(from)), n, err); err != nil {
		return fmt.Errorf("record the replay: %w", err)
	}
	if _, err := t.exec(letter, these, at, by.Name); err != nil {
		return fmt.Errorf("mark the dead letter: %w", err)
	}
	if err := t.leaveTrash(from...); err != nil {
		return err
	}
	n, err = t.exec(update, these, at)
	if err := expect(int64(len(from)), n, err); err != nil {
		return fmt.Errorf("start the next run: %w", err)
	}
	t.changes = slices.Grow(t.changes, len(from))
	for _, j := range from {
		t.resolved(j)
		t.ended(j, operation.RunDropped, now)
		t.moved(j, renewed(j, now))
		t.delta.count(j.Queue, j.Type, at, job.Totals{Replayed: 1})
		if j.Group != 0 {
			t.delta.group(j.Group).replayed++
		}
	}
	return nil
}

// renewed is a job at the beginning of its next run.
func renewed(j job.Job, now time.Time) job.Job {
	at := fromMicros(micros(now))
	j.Run, j.Attempts, j.State, j.Letter, j.Held = j.Run+1, 0, job.Available, job.NoLetter, false
	j.RunAt, j.ChangedAt, j.FinishedAt, j.Reason, j.Error = at, at, time.Time{}, "", job.ErrorInfo{}
	j.Group = 0
	return j
}

// change runs a statement that changes the job and returns it as it is then.
func (t *tx) change(j job.Job, update string, args ...any) (job.Job, error) {
	n, err := t.exec(update, args...)
	if err := expect(1, n, err); err != nil {
		return job.Job{}, err
	}
	return t.byID(j.ID)
}

// opened counts that the dead letter of a job is open, which has not changed since
// it failed.
func (t *tx) opened(j job.Job) { t.delta.letter(j, j.ChangedAt, 1) }

// resolved counts that a job's dead letter is no longer open.
func (t *tx) resolved(from job.Job) {
	if from.Letter == job.LetterStored {
		t.delta.letter(from, from.ChangedAt, -1)
	}
}

// missed says why the run that somebody looked at cannot be replayed, or is not
// the job's any more.
func (t *tx) missed(j job.Job, run int) error {
	c := &job.Conflict{Job: j}
	const query = `SELECT at, by FROM replays WHERE job_seq = $1 AND run = $2`
	var at int64
	err := t.query(query, func(rows *sql.Rows) error { return rows.Scan(&at, &c.ReplayedBy) }, j.Seq, run)
	if err != nil {
		return err
	}
	c.ReplayedAt = fromMicros(at)
	switch {
	case at != 0:
		c.Problem = fmt.Sprintf("run %d was replayed by %s at %s; the job is %s in run %d",
			run, name(c.ReplayedBy), c.ReplayedAt.Format("2006-01-02 15:04:05 UTC"), j.State, j.Run)
	case run != j.Run:
		c.Problem = fmt.Sprintf("the job has no run %d; it is %s in run %d", run, j.State, j.Run)
	default:
		c.Problem = fmt.Sprintf("run %d is %s; a job can be replayed once it is discarded, cancelled or waits for a retry", run, j.State)
	}
	return c
}

func name(by string) string {
	if by == "" {
		return "somebody"
	}
	return by
}

// Cancel takes a job back before it has ended, in the run that the caller looked
// at; another run, or one that has ended, is a *job.Conflict. An execution that is under way
// loses its lease: whatever it still reports is stale, and its attempt is
// recorded as cancelled.
func (s *Store) Cancel(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return write(ctx, s.writer, 1, func(t *tx) (job.Job, error) {
		from, err := t.byID(id)
		if err != nil {
			return job.Job{}, err
		}
		if from.Run != run {
			return job.Job{}, t.missed(from, run)
		}
		if !from.Cancellable() {
			return job.Job{}, &job.Conflict{Job: from, Problem: fmt.Sprintf("the job is %s; it can no longer be cancelled", from.State)}
		}
		if from.State == job.Active {
			err := t.addAttempt(from.Seq, job.Attempt{
				Run: from.Run, Execution: from.Execution, Worker: from.Worker, StartedAt: from.StartedAt,
				FinishedAt: now, Outcome: job.CancelledBy, DecidedBy: "manual:" + name(by.Name),
			})
			if err != nil {
				return job.Job{}, err
			}
		}
		to, err := t.finish(from, job.Cancelled, job.NoLetter, now)
		if err != nil {
			return job.Job{}, err
		}
		return to, t.audit(about(from, to, "job.cancel", now, by))
	})
}

// finish ends a job by a person's decision.
func (t *tx) finish(from job.Job, state job.State, letter job.Letter, now time.Time) (job.Job, error) {
	const update = `UPDATE jobs SET state = $2, shelf = $2, letter = $5, held = 0, reason = $3, changed_at = $4, finished_at = $4
		WHERE seq = $1`
	to, err := t.change(from, update, from.Seq, string(state), string(retry.Manual), micros(now), string(letter))
	if err != nil {
		return job.Job{}, fmt.Errorf("end job %s: %w", from.ID, err)
	}
	t.ended(from, operation.RunDropped, now)
	t.moved(from, to)
	return to, nil
}

// about is the entry of the audit log about one job.
func about(from, to job.Job, action string, now time.Time, by audit.Actor) audit.Entry {
	return audit.Entry{At: now, Actor: by, Action: action, Subject: to.ID, Count: 1, Before: standing(from), After: standing(to)}
}

// standing says in a few words where a job is.
func standing(j job.Job) string { return fmt.Sprintf("%s, run %d", j.Status(), j.Run) }

// Pause keeps claims away from a queue; what runs goes on. A queue that had no
// job yet can be paused too. Who paused first, and when, is kept.
func (s *Store) Pause(ctx context.Context, now time.Time, queue string, by audit.Actor) error {
	const upsert = `INSERT INTO queues (name, paused_at, paused_by) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at, paused_by = excluded.paused_by
		WHERE queues.paused_at = 0`
	_, err := write(ctx, s.writer, 1, func(t *tx) (struct{}, error) {
		n, err := t.exec(upsert, queue, micros(now), by.Name)
		if err != nil || n == 0 {
			return struct{}{}, err
		}
		t.paused[queue] = true
		return struct{}{}, t.audit(audit.Entry{At: now, Actor: by, Action: "queue.pause", Subject: queue, Count: 1})
	})
	return err
}

// Resume lets claims take from a queue again. It returns job.ErrNotFound for a
// queue that never had a job and was never paused.
func (s *Store) Resume(ctx context.Context, now time.Time, queue string, by audit.Actor) error {
	const update = `UPDATE queues SET paused_at = 0, paused_by = '' WHERE name = $1 AND paused_at <> 0`
	_, err := write(ctx, s.writer, 1, func(t *tx) (struct{}, error) {
		n, err := t.exec(update, queue)
		if err == nil && n == 0 && !t.rollup.queues[queue] {
			err = fmt.Errorf("queue %s: %w", queue, job.ErrNotFound)
		}
		if err != nil || n == 0 {
			return struct{}{}, err
		}
		t.paused[queue] = false
		return struct{}{}, t.audit(audit.Entry{At: now, Actor: by, Action: "queue.resume", Subject: queue, Count: 1})
	})
	return err
}
