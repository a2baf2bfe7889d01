package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"redrive/internal/audit"
	"redrive/internal/history"
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
	return db.Write(ctx, s.writer, 1, func(t *db.Tx) (job.Job, error) {
		from, err := s.byID(t, id)
		if err != nil {
			return job.Job{}, err
		}
		if from.Run != run {
			return job.Job{}, s.missed(t, from, run)
		}
		if !from.Discardable() {
			return job.Job{}, &job.Conflict{Job: from, Problem: fmt.Sprintf(
				"the job is %s; only a job that waits, or whose dead letter is open, can be discarded", from.Status())}
		}
		if err := s.DiscardAll(t, []job.Job{from}, now, by, 0); err != nil {
			return job.Job{}, fmt.Errorf("discard job %s: %w", from.ID, err)
		}
		to, err := s.byID(t, from.ID)
		if err != nil {
			return job.Job{}, err
		}
		return to, s.Accounts.Log(t, about(from, to, "job.discard", now, by))
	})
}

// DiscardAll puts jobs that can be discarded into the trash, each as it is in
// this transaction; bulk is the operation that did so, or 0.
func (s *Store) DiscardAll(t *db.Tx, from []job.Job, now time.Time, by audit.Actor, bulk int64) error {
	const (
		letter = `UPDATE dead_letters SET open = 0, discarded_at = $2, discarded_by = $3
			WHERE job_seq IN (SELECT value FROM json_each($1)) AND replayed_at = 0` // those of the runs before were replayed
		trash = `INSERT INTO trash (job_seq, at, by, state, letter, reason, changed_at, finished_at, operation_id)
			SELECT seq, $2, $3, state, letter, reason, changed_at, finished_at, $4 FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`
		update = `UPDATE jobs SET state = 'discarded', shelf = 'discarded', letter = 'trashed', held = 0, reason = $3, changed_at = $2, finished_at = $2
			WHERE seq IN (SELECT value FROM json_each($1))`
	)
	these, at := rows.Seqs(from), db.Micros(now)
	if _, err := t.Exec(letter, these, at, by.Name); err != nil {
		return fmt.Errorf("mark the dead letters: %w", err)
	}
	if err := t.ExecExactly(len(from), trash, these, at, by.Name, bulk); err != nil {
		return fmt.Errorf("put jobs into the trash: %w", err)
	}
	if err := t.ExecExactly(len(from), update, these, at, string(retry.Manual)); err != nil {
		return fmt.Errorf("end discarded jobs: %w", err)
	}
	after := slices.Clone(from)
	for i := range after {
		to := &after[i]
		to.State, to.Letter, to.Held, to.Reason = job.Discarded, job.LetterTrashed, false, retry.Manual
		to.ChangedAt, to.FinishedAt = db.FromMicros(at), db.FromMicros(at)
		s.tx.ended(&from[i], operation.RunDropped, now)
		s.moved(&from[i], to, job.Totals{})
	}
	return nil
}

// Restore takes a job out of the trash and puts it back where it was: its dead
// letter is open again, and what waited waits for its old time. A job that was
// held for want of a handler is available, and held again where none is known.
// run is the one that the caller looked at; a job that is not in the trash in
// this run is a *job.Conflict.
func (s *Store) Restore(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return db.Write(ctx, s.writer, 1, func(t *db.Tx) (job.Job, error) {
		from, err := s.byID(t, id)
		if err != nil {
			return job.Job{}, err
		}
		if from.Run != run || !from.Restorable() {
			return job.Job{}, &job.Conflict{Job: from, Problem: fmt.Sprintf(
				"run %d is not in the trash; the job is %s in run %d", run, from.Status(), from.Run)}
		}
		if err := s.RestoreAll(t, []job.Job{from}); err != nil {
			return job.Job{}, fmt.Errorf("restore job %s: %w", from.ID, err)
		}
		to, err := s.byID(t, from.ID)
		if err != nil {
			return job.Job{}, err
		}
		return to, s.Accounts.Log(t, about(from, to, "job.restore", now, by))
	})
}

// RestoreAll puts jobs back that can be restored.
func (s *Store) RestoreAll(t *db.Tx, from []job.Job) error {
	const (
		letter = `UPDATE dead_letters SET open = 1 - refused, discarded_at = 0, discarded_by = ''
			WHERE job_seq IN (SELECT value FROM json_each($1)) AND discarded_at <> 0`
		update = `UPDATE jobs SET state = trash.state, shelf = CASE WHEN trash.state IN ('available', 'active', 'completed') THEN '' ELSE trash.state END,
				letter = trash.letter, reason = trash.reason, changed_at = trash.changed_at, finished_at = trash.finished_at
			FROM trash WHERE trash.job_seq IN (SELECT value FROM json_each($1)) AND jobs.seq = trash.job_seq`
	)
	these := rows.Seqs(from)
	if _, err := t.Exec(letter, these); err != nil {
		return fmt.Errorf("open the dead letters again: %w", err)
	}
	if err := t.ExecExactly(len(from), update, these); err != nil {
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
	return s.leaveTrash(t, from...)
}

// leaveTrash forgets where jobs were that lay in the trash.
func (s *Store) leaveTrash(t *db.Tx, from ...job.Job) error {
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
	if err := t.ExecExactly(len(trashed), remove, db.Numbers(trashed)); err != nil {
		return fmt.Errorf("take jobs out of the trash: %w", err)
	}
	return nil
}

// Trashed says of jobs in the trash when they came there and where they were,
// by the job's own number.
func (s *Store) Trashed(ctx context.Context, jobs []job.Job) (map[int64]history.Trashed, error) {
	return trashed(s.reader.In(ctx), jobs)
}

func trashed(src db.Source, jobs []job.Job) (map[int64]history.Trashed, error) {
	const query = `SELECT job_seq, at, by, operation_id, state, letter, reason FROM trash WHERE job_seq IN (SELECT value FROM json_each($1))`
	all := map[int64]history.Trashed{}
	if len(jobs) == 0 {
		return all, nil
	}
	err := src.Query(query, func(rows *sql.Rows) error {
		var seq, at int64
		var was history.Trashed
		err := rows.Scan(&seq, &at, &was.By, &was.Bulk, &was.State, &was.Letter, &was.Reason)
		was.At = db.FromMicros(at)
		all[seq] = was
		return err
	}, rows.Seqs(jobs))
	return all, err
}

// purged is how far a purge has come in the trash, the oldest first.
type purged struct {
	at, seq         int64 // of the job that was looked at last
	looked, removed int
}

// purgeTrash removes the jobs in the trash that came there before a time. Each
// transaction looks at a few.
func (s *Store) purgeTrash(ctx context.Context, now, before time.Time) (total int, err error) {
	var last purged
	for {
		from := last // the write may still run when nobody waits for it any more
		last, err = db.Write(ctx, s.writer, pruneChunk, func(t *db.Tx) (purged, error) { return s.purge(t, now, before, from) })
		if err != nil {
			return total, fmt.Errorf("purge the trash: %w", err)
		}
		if total += last.removed; last.looked < pruneChunk {
			return total, nil
		}
	}
}

// purge removes the next jobs, but for those that an operation is about to bring
// back or to replay: what a person asked for comes first. Each has an entry in the
// audit log that says so, and who had discarded it: what a person did to a job
// stays known when the job is gone.
func (s *Store) purge(t *db.Tx, now, before time.Time, last purged) (purged, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`
	next, old, err := s.oldTrash(t, before, last)
	if err != nil || len(old) == 0 {
		return next, err
	}
	jobs, err := s.policies.Jobs(t, query, db.Numbers(old))
	if err != nil {
		return next, err
	}
	was, err := trashed(t, jobs)
	if err != nil {
		return next, err
	}
	if err := s.remove(t, jobs); err != nil {
		return next, err
	}
	for _, j := range jobs {
		gone := audit.Entry{
			At: now, Actor: retentionActor(), Action: "job.purge", Subject: j.ID, Count: 1, Before: standing(j), After: discardedBy(was[j.Seq]),
		}
		if err := s.Accounts.Log(t, gone); err != nil {
			return next, err
		}
	}
	next.removed = len(jobs)
	return next, nil
}

// oldTrash looks at the jobs in the trash after the last ones that came there
// before a time, and names those that nobody needs.
func (s *Store) oldTrash(t *db.Tx, before time.Time, last purged) (next purged, old []int64, err error) {
	const query = `SELECT at, job_seq, EXISTS (SELECT 1 FROM operation_items AS i JOIN operations AS o ON o.id = i.operation_id
			WHERE i.job_seq = trash.job_seq AND i.state = 'pending' AND o.kind IN ('restore', 'replay') AND o.state IN ('running', 'paused'))
		FROM trash WHERE at < $1 AND (at, job_seq) > ($2, $3) ORDER BY at, job_seq LIMIT $4 + 0`
	next = purged{at: last.at, seq: last.seq}
	err = t.Query(query, func(rows *sql.Rows) error {
		var held bool
		err := rows.Scan(&next.at, &next.seq, &held)
		if next.looked++; !held {
			old = append(old, next.seq)
		}
		return err
	}, db.Micros(before), last.at, last.seq, pruneChunk)
	return next, old, err
}

// discardedBy says who put a job into the trash, and when.
func discardedBy(was history.Trashed) string {
	words := "discarded by " + audit.Name(was.By)
	if was.Bulk != 0 {
		words += fmt.Sprintf(" with operation %d", was.Bulk)
	}
	return words + " at " + was.At.Format("2006-01-02 15:04:05 UTC")
}

// retentionActor is who removes what is kept for its time only: no user has a
// name of two words.
func retentionActor() audit.Actor { return audit.Actor{Name: "the retention"} }
