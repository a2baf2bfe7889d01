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

// A job that a person discards goes to the trash: its state becomes discarded, and a row of
// the table trash remembers the state that it had. Restoring the job gives it that state back
// and deletes the row. A replay deletes the row as well. Retention removes what stays in the
// trash for longer than its limit. A job that is discarded by its policy never enters the
// trash.

// Discard puts jobs into the trash. The caller has read them in this transaction, and knows
// that they can be discarded. Discard changes the elements of the slice accordingly. bulk is
// the operation that discards them, or 0.
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

	// A run that a replay started ends here.
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

// Restore takes jobs out of the trash, and gives each the state that it had before it was
// discarded. The caller has read them in this transaction, and knows that they can be
// restored. Unlike Discard, it leaves the elements of the slice as they are.
func (c *Core) Restore(t *db.Tx, jobs []job.Job) error {
	const update = `UPDATE jobs SET state = trash.state,
			list_state = CASE WHEN trash.state IN ('available', 'active', 'completed') THEN '' ELSE trash.state END,
			letter = trash.letter, reason = trash.reason, changed_at = trash.changed_at, finished_at = trash.finished_at
		FROM trash WHERE trash.job_seq IN (SELECT value FROM json_each($1)) AND jobs.seq = trash.job_seq`

	err := t.ExecExactly(len(jobs), update, rows.Seqs(jobs))
	if err != nil {
		return fmt.Errorf("put jobs back where they were: %w", err)
	}

	// Tell what the jobs were before and what they are now.
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

// LeaveTrash deletes the rows that remember the earlier state of jobs in the trash. It ignores
// jobs that are not in the trash.
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

// Trashed returns, by the number of the job, when each of these jobs was discarded, by whom,
// and the state that it had before. Jobs that are not in the trash are missing from the map.
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

// Describe returns the state and the run of a job, and the source that it belongs to, in the
// words of the audit log: "dead_letter, run 2, source shop".
func Describe(j job.Job) string {
	text := fmt.Sprintf("%s, run %d", j.Status(), j.Run)
	if j.Source != "" {
		text += ", source " + j.Source
	}

	return text
}
