package core

import (
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// A job that a person discards goes to the trash: it ends as discarded, and a
// row of the table trash remembers where it was. Restoring takes the row and
// puts the job back there; a replay takes it too. What stays is purged, as the
// retention says. Jobs that their policy discarded have never been in it.

// Discard puts jobs that can be discarded into the trash, each as it is in this
// transaction, and changes them accordingly; bulk is the operation that did so, or 0.
func (c *Core) Discard(t *db.Tx, jobs []job.Job, now time.Time, by audit.Actor, bulk int64) error {
	const trash = `INSERT INTO trash (job_seq, at, by, state, letter, reason, changed_at, finished_at, operation_id)
		SELECT seq, $2, $3, state, letter, reason, changed_at, finished_at, $4 FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`
	const update = `UPDATE jobs SET state = 'discarded', list_state = 'discarded', letter = 'trashed', held = 0, reason = $3,
			changed_at = $2, finished_at = $2
		WHERE seq IN (SELECT value FROM json_each($1))`
	these, at := rows.Seqs(jobs), db.Micros(now)

	err := db.Steps(t, db.Exactly(len(jobs), trash, these, at, by.Name, bulk),
		db.Exactly(len(jobs), update, these, at, string(retry.Manual)))
	if err != nil {
		return fmt.Errorf("put jobs into the trash: %w", err)
	}

	for i := range jobs {
		c.End(t, &jobs[i], operation.RunDropped, now)
	}

	c.MoveAll(t, jobs, stats.Totals{}, func(j *job.Job) {
		j.State, j.DeadLetter = job.Discarded, job.DeadLetterTrashed
		j.Held, j.Reason = false, retry.Manual
		j.ChangedAt, j.FinishedAt = db.FromMicros(at), db.FromMicros(at)
	})

	return nil
}

// Restore puts jobs back that can be restored, each where it was before it was discarded.
func (c *Core) Restore(t *db.Tx, jobs []job.Job) error {
	const update = `UPDATE jobs SET state = trash.state,
			list_state = CASE WHEN trash.state IN ('available', 'active', 'completed') THEN '' ELSE trash.state END,
			letter = trash.letter, reason = trash.reason, changed_at = trash.changed_at, finished_at = trash.finished_at
		FROM trash WHERE trash.job_seq IN (SELECT value FROM json_each($1)) AND jobs.seq = trash.job_seq`

	err := t.ExecExactly(len(jobs), update, rows.Seqs(jobs))
	if err != nil {
		return fmt.Errorf("put jobs back where they were: %w", err)
	}

	restored, err := c.policies.ToActOn(t, rows.Numbers(jobs))
	if err != nil {
		return err
	}

	before := make(map[int64]*job.Job, len(jobs))
	for i := range jobs {
		before[jobs[i].Seq] = &jobs[i]
	}

	for i := range restored {
		c.Move(t, before[restored[i].Seq], &restored[i], stats.Totals{})
	}

	// The runs that the discard had dropped go on.
	err = c.runsResumed(t, jobs)
	if err != nil {
		return err
	}

	return c.LeaveTrash(t, jobs)
}

// LeaveTrash forgets where those of the jobs were that are in the trash.
func (c *Core) LeaveTrash(t *db.Tx, jobs []job.Job) error {
	const remove = `DELETE FROM trash WHERE job_seq IN (SELECT value FROM json_each($1))`

	var trashed []int64
	for _, j := range jobs {
		if j.DeadLetter == job.DeadLetterTrashed {
			trashed = append(trashed, j.Seq)
		}
	}

	if len(trashed) == 0 {
		return nil
	}

	return db.Wrap(t.ExecExactly(len(trashed), remove, db.Numbers(trashed)), "take jobs out of the trash")
}

// Trashed says of jobs in the trash when they came there and where they were,
// by the job's own number.
func Trashed(src db.Source, jobs []job.Job) (map[int64]history.Trashed, error) {
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

// Describe says in a few words, for the audit log, what state a job is in and which source
// it belongs to.
func Describe(j job.Job) string {
	text := fmt.Sprintf("%s, run %d", j.Status(), j.Run)
	if j.Source != "" {
		text += ", source " + j.Source
	}

	return text
}
