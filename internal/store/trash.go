package store

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// A job that a person discards goes to the trash: it ends as discarded, and a
// row of the table trash remembers where it was. Restoring takes the row and
// puts the job back there; a replay takes it too. What stays is purged, as the
// retention says. Jobs that their policy discarded have never been in it.

// Discard gives a job up: it ends, its dead letter is no longer open, and it
// lies in the trash until it is purged. run is the one that the caller looked
// at; another run, a job that runs or one that is over is a *job.Conflict.
func (s *Store) Discard(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return s.act(ctx, about(id, "job.discard", now, by), func(t *db.Tx, from job.Job, _ *audit.Entry) (job.Job, error) {
		if from.Run != run {
			return job.Job{}, s.missed(t, from, run)
		}
		if !from.Discardable() {
			return refuse(from, "the job is %s; only a job that waits, or whose dead letter is open, can be discarded", from.Status())
		}
		if err := s.DiscardAll(t, []job.Job{from}, now, by, 0); err != nil {
			return job.Job{}, fmt.Errorf("discard job %s: %w", id, err)
		}
		return s.policies.ByID(t, id)
	})
}

// DiscardAll puts jobs that can be discarded into the trash, each as it is in
// this transaction; bulk is the operation that did so, or 0.
func (s *Store) DiscardAll(t *db.Tx, from []job.Job, now time.Time, by audit.Actor, bulk int64) error {
	const letter = `UPDATE dead_letters SET open = 0, discarded_at = $2, discarded_by = $3
		WHERE job_seq IN (SELECT value FROM json_each($1)) AND replayed_at = 0` // those of the runs before were replayed
	const trash = `INSERT INTO trash (job_seq, at, by, state, letter, reason, changed_at, finished_at, operation_id)
		SELECT seq, $2, $3, state, letter, reason, changed_at, finished_at, $4 FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`
	const update = `UPDATE jobs SET state = 'discarded', list_state = 'discarded', letter = 'trashed', held = 0, reason = $3,
			changed_at = $2, finished_at = $2
		WHERE seq IN (SELECT value FROM json_each($1))`
	these, at := rows.Seqs(from), db.Micros(now)
	err := db.Steps(t, db.Any(letter, these, at, by.Name), db.Exactly(len(from), trash, these, at, by.Name, bulk),
		db.Exactly(len(from), update, these, at, string(retry.Manual)))
	if err != nil {
		return fmt.Errorf("put jobs into the trash: %w", err)
	}
	for i := range from {
		s.tx.ended(&from[i], operation.RunDropped, now)
	}
	s.moveAll(from, job.Totals{}, func(j *job.Job) {
		j.State, j.Letter, j.Held, j.Reason = job.Discarded, job.LetterTrashed, false, retry.Manual
		j.ChangedAt, j.FinishedAt = db.FromMicros(at), db.FromMicros(at)
	})
	return nil
}

// Restore takes a job out of the trash and puts it back where it was: its dead
// letter is open again, and what waited waits for its old time. A job that was
// held for want of a handler is available, and held again where none is known.
// run is the one that the caller looked at; a job that is not in the trash in
// this run is a *job.Conflict.
func (s *Store) Restore(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return s.act(ctx, about(id, "job.restore", now, by), func(t *db.Tx, from job.Job, _ *audit.Entry) (job.Job, error) {
		if from.Run != run || !from.Restorable() {
			return refuse(from, "run %d is not in the trash; the job is %s in run %d", run, from.Status(), from.Run)
		}
		if err := s.RestoreAll(t, []job.Job{from}); err != nil {
			return job.Job{}, fmt.Errorf("restore job %s: %w", id, err)
		}
		return s.policies.ByID(t, id)
	})
}

// RestoreAll puts jobs back that can be restored.
func (s *Store) RestoreAll(t *db.Tx, from []job.Job) error {
	const letter = `UPDATE dead_letters SET open = 1 - refused, discarded_at = 0, discarded_by = ''
		WHERE job_seq IN (SELECT value FROM json_each($1)) AND discarded_at <> 0`
	const update = `UPDATE jobs SET state = trash.state,
			list_state = CASE WHEN trash.state IN ('available', 'active', 'completed') THEN '' ELSE trash.state END,
			letter = trash.letter, reason = trash.reason, changed_at = trash.changed_at, finished_at = trash.finished_at
		FROM trash WHERE trash.job_seq IN (SELECT value FROM json_each($1)) AND jobs.seq = trash.job_seq`
	these := rows.Seqs(from)
	if err := db.Steps(t, db.Any(letter, these), db.Exactly(len(from), update, these)); err != nil {
		return fmt.Errorf("put jobs back where they were: %w", err)
	}
	restored, err := s.policies.ToActOn(t, rows.Numbers(from))
	if err != nil {
		return err
	}
	before := make(map[int64]*job.Job, len(from))
	for i := range from {
		before[from[i].Seq] = &from[i]
	}
	for i := range restored {
		s.moved(before[restored[i].Seq], &restored[i], job.Totals{})
	}
	if err := s.runsResumed(t, from); err != nil {
		return err
	}
	return s.leaveTrash(t, from)
}

// leaveTrash forgets where jobs were that lay in the trash.
func (s *Store) leaveTrash(t *db.Tx, from []job.Job) error {
	var trashed []int64
	for _, j := range from {
		if j.Restorable() {
			trashed = append(trashed, j.Seq)
		}
	}
	if len(trashed) == 0 {
		return nil
	}
	const remove = `DELETE FROM trash WHERE job_seq IN (SELECT value FROM json_each($1))`
	return db.Wrap(t.ExecExactly(len(trashed), remove, db.Numbers(trashed)), "take jobs out of the trash")
}

// Trashed says of jobs in the trash when they came there and where they were,
// by the job's own number.
func (s *Store) Trashed(ctx context.Context, jobs []job.Job) (map[int64]job.Trashed, error) {
	return trashed(s.reader.In(ctx), jobs)
}

func trashed(src db.Source, jobs []job.Job) (map[int64]job.Trashed, error) {
	const query = `SELECT job_seq, at, by, operation_id, state, letter, reason FROM trash WHERE job_seq IN (SELECT value FROM json_each($1))`
	type row struct {
		seq int64
		job.Trashed
	}
	found, err := db.All(src, query, func(r *row) []any {
		return []any{&r.seq, db.Time(&r.At), &r.By, &r.Bulk, &r.State, &r.Letter, &r.Reason}
	}, rows.Seqs(jobs))
	all := make(map[int64]job.Trashed, len(found))
	for _, r := range found {
		all[r.seq] = r.Trashed
	}
	return all, err
}
