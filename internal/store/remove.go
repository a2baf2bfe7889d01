package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
	"redrive/internal/store/rows"
)

// A job that a person discards goes to the trash: it ends as discarded, and a
// row of the table trash remembers where it was. Restoring takes the row and
// puts the job back there; a replay takes it too. What stays is purged, as the
// retention says. Jobs that their policy discarded have never been in it.

// Discard gives a job up: it ends, its dead letter is no longer open, and it
// is in the trash until it is purged. run is the one that the caller looked
// at; another run, a job that runs or one that is over is a *job.Conflict.
func (s *Store) Discard(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return s.act(ctx, about(id, "job.discard", now, by), func(t *db.Tx, from job.Job, _ *audit.Entry) (job.Job, error) {
		if from.Run != run {
			return job.Job{}, s.missed(t, from, run)
		}

		if !from.Discardable() {
			return refuse(from, "the job is %s; only waiting jobs and open dead letters can be discarded", from.Status())
		}

		if why := s.CheckAct(from, operation.Discard); why != "" {
			return refuse(from, "%s", why)
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
	const trash = `INSERT INTO trash (job_seq, at, by, state, letter, reason, changed_at, finished_at, operation_id)
		SELECT seq, $2, $3, state, letter, reason, changed_at, finished_at, $4 FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`
	const update = `UPDATE jobs SET state = 'discarded', list_state = 'discarded', letter = 'trashed', held = 0, reason = $3,
			changed_at = $2, finished_at = $2
		WHERE seq IN (SELECT value FROM json_each($1))`
	these, at := rows.Seqs(from), db.Micros(now)

	err := db.Steps(t, db.Exactly(len(from), trash, these, at, by.Name, bulk),
		db.Exactly(len(from), update, these, at, string(retry.Manual)))
	if err != nil {
		return fmt.Errorf("put jobs into the trash: %w", err)
	}

	for i := range from {
		s.in(t).ended(&from[i], operation.RunDropped, now)
	}

	s.moveAll(t, from, stats.Totals{}, func(j *job.Job) {
		j.State, j.DeadLetter = job.Discarded, job.DeadLetterTrashed
		j.Held, j.Reason = false, retry.Manual
		j.ChangedAt, j.FinishedAt = db.FromMicros(at), db.FromMicros(at)
	})

	return s.ask(t, projection.Ask{Kind: source.Discard, At: now, By: by, Operation: bulk}, from)
}

// Restore takes a job out of the trash and puts it back where it was: its dead
// letter is open again, and what waited waits for its old time. A job that was
// held for want of a handler is available, and held again where none is known.
// run is the one that the caller looked at; a job that is not in the trash in
// this run is a *job.Conflict.
func (s *Store) Restore(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return s.act(ctx, about(id, "job.restore", now, by), func(t *db.Tx, from job.Job, _ *audit.Entry) (job.Job, error) {
		if name := from.Source; name != "" && from.Status() == job.StatusTrashed {
			return refuse(from, "a job of a source cannot be restored; if %s still has it, the dead letter comes back", name)
		}

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
	const update = `UPDATE jobs SET state = trash.state,
			list_state = CASE WHEN trash.state IN ('available', 'active', 'completed') THEN '' ELSE trash.state END,
			letter = trash.letter, reason = trash.reason, changed_at = trash.changed_at, finished_at = trash.finished_at
		FROM trash WHERE trash.job_seq IN (SELECT value FROM json_each($1)) AND jobs.seq = trash.job_seq`
	if err := t.ExecExactly(len(from), update, rows.Seqs(from)); err != nil {
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
		s.moved(t, before[restored[i].Seq], &restored[i], stats.Totals{})
	}

	if err := s.runsResumed(t, from); err != nil {
		return err
	}

	return s.leaveTrash(t, from)
}

// leaveTrash forgets where the jobs in the trash were.
func (s *Store) leaveTrash(t *db.Tx, from []job.Job) error {
	var trashed []int64
	for _, j := range from {
		if j.DeadLetter == job.DeadLetterTrashed {
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
func (s *Store) Trashed(ctx context.Context, jobs []job.Job) (map[int64]history.Trashed, error) {
	return trashed(s.reader.In(ctx), jobs)
}

func trashed(src db.Source, jobs []job.Job) (map[int64]history.Trashed, error) {
	const query = `SELECT job_seq, at, by, operation_id, state, letter, reason FROM trash WHERE job_seq IN (SELECT value FROM json_each($1))`

	if len(jobs) == 0 {
		return nil, nil
	}
	type row struct {
		seq int64
		history.Trashed
	}

	found, err := db.All(src, query, func(r *row) []any {
		return []any{&r.seq, db.Time(&r.At), &r.By, &r.Bulk, &r.State, &r.DeadLetter, &r.Reason}
	}, rows.Seqs(jobs))
	all := make(map[int64]history.Trashed, len(found))
	for _, r := range found {
		all[r.seq] = r.Trashed
	}

	return all, err
}

// remove deletes jobs that are over, with everything that is known of them.
func (s *Store) remove(t *db.Tx, jobs []job.Job) error {
	these := rows.Seqs(jobs)
	for _, rows := range []string{
		"dead_letters WHERE job_seq", "attempts WHERE job_seq", "earlier_runs WHERE job_seq", "replays WHERE job_seq",
		"bodies WHERE job_seq", "job_keys WHERE job_seq", "trash WHERE job_seq", "jobs WHERE seq",
	} {
		if err := t.Run(`DELETE FROM `+rows+` IN (SELECT value FROM json_each($1))`, these); err != nil {
			return err
		}
	}

	for i := range jobs {
		s.projections.Moved(t, projection.Move{From: &jobs[i]})
	}

	t.Touch()

	return s.projections.Removed(t, jobs)
}

// purged is how far a purge has come in the trash, the oldest first.
type purged struct {
	at, seq int64 // of the job that was looked at last
	looked  int
	jobs    parts // that were removed
}

// purgeTrash removes the jobs in the trash that came there too long ago. Each
// transaction looks at a few.
func (p *sweep) purgeTrash(ctx context.Context) error {
	var last purged
	for p.limits.Trash > 0 {
		from := last // the write may still run when its caller no longer waits for it
		var err error

		last, err = db.Write(ctx, p.store.writer, pruneChunk, func(t *db.Tx) (purged, error) { return p.purge(t, from) })
		if err != nil {
			return fmt.Errorf("purge the trash: %w", err)
		}

		if p.count(last.jobs); last.looked < pruneChunk {
			break
		}
	}

	return nil
}

// purge removes the next jobs, but for those that an operation is about to bring
// back or to replay: what a person asked for comes first. Each has an entry in the
// audit log that says so, and who had discarded it: what a person did to a job
// stays known when the job is gone.
func (p *sweep) purge(t *db.Tx, last purged) (purged, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`

	next, old, err := oldTrash(t, p.now.Add(-p.limits.Trash), last)
	if err != nil || len(old) == 0 {
		return next, err
	}

	jobs, err := p.store.policies.Jobs(t, query, db.Numbers(old))
	if err != nil {
		return next, err
	}

	was, err := trashed(t, jobs)
	if err != nil {
		return next, err
	}

	if next.jobs, err = p.remove(t, retention.Trash, jobs); err != nil {
		return next, err
	}

	entries := make([]audit.Entry, len(jobs))
	for i, j := range jobs {
		entries[i] = about(j.ID, "job.purge", p.now, retentionActor())
		entries[i].Before, entries[i].After = describe(j), discardedBy(was[j.Seq])
	}

	return next, p.store.Accounts.Log(t, entries...)
}

// oldTrash looks at the jobs that came into the trash before a time, after the last ones
// it looked at, and names those that are no longer needed. A discard that its source has
// not answered is still needed: without it, the record would come back as a dead letter.
func oldTrash(t *db.Tx, before time.Time, last purged) (next purged, old []int64, err error) {
	const query = `SELECT at, job_seq, EXISTS (SELECT 1 FROM operation_items AS i JOIN operations AS o ON o.id = i.operation_id
			WHERE i.job_seq = trash.job_seq AND i.state = 'pending' AND o.kind IN ('restore', 'replay') AND o.state IN ('running', 'paused'))
			OR NOT ` + notAtSource + `
		FROM trash JOIN jobs ON jobs.seq = trash.job_seq WHERE at < $1 AND (at, job_seq) > ($2, $3) ORDER BY at, job_seq LIMIT $4 + 0`
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
