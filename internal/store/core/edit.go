package core

import (
	"fmt"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
	"redrive/internal/store/rows"
)

// Edit changes a job that has ended, just before it is replayed, and returns the job as it is
// then. What the ended run had stays readable (see [Core.KeepEarlier]). An empty edit changes
// nothing.
func (c *Core) Edit(t *db.Tx, from job.Job, edit job.Edit) (job.Job, error) {
	if edit.Empty() {
		return from, nil
	}

	err := c.KeepEarlier(t, from, from.Run, edit)
	if err != nil {
		return job.Job{}, fmt.Errorf("keep what run %d of job %s had: %w", from.Run, from.ID, err)
	}

	return c.Apply(t, from, edit)
}

// Apply writes what an edit changes of a job, and returns the job as it is then. Unlike Edit,
// it does not keep what the job had before.
func (c *Core) Apply(t *db.Tx, from job.Job, edit job.Edit) (job.Job, error) {
	const body = `UPDATE bodies SET trace_id = $2, message_id = $3, meta = $4, payload = $5, envelope = $6 WHERE job_seq = $1`
	const update = `UPDATE jobs SET queue = $2, type = $3, priority = $4, policy_id = $5, ttr = $6 WHERE seq = $1`

	want := edit.Apply(from)

	policy, err := c.policies.ID(t, rows.TextOf(want))
	if err != nil {
		return job.Job{}, err
	}

	if b := edit.Body; b != nil {
		err := t.ExecExactly(1, body, from.Seq, b.TraceID, b.MessageID, []byte(b.Meta), b.Payload, b.Envelope)
		if err != nil {
			return job.Job{}, err
		}
	}

	to, err := c.Change(t, from, update, from.Seq, want.Queue, want.Type, want.Priority, policy, want.Timeout.Microseconds())
	if err != nil {
		return job.Job{}, err
	}

	// The job may be in another queue now. It counts there from here on.
	c.projections.Moved(t, projection.Move{From: &from, To: &to})

	return to, nil
}

// KeepEarlier copies what an edit is about to change of a job, as what this run of it had: its
// queue, type, priority, policy and time limit, and its body if the edit changes that.
func (c *Core) KeepEarlier(t *db.Tx, j job.Job, run int, edit job.Edit) error {
	const insert = `INSERT INTO earlier_runs
			(job_seq, run, queue, type, priority, policy_id, ttr, trace_id, message_id, meta, payload, envelope)
		SELECT seq, $3, queue, type, priority, policy_id, ttr,
			CASE WHEN $2 = 1 THEN trace_id END, CASE WHEN $2 = 1 THEN message_id END, CASE WHEN $2 = 1 THEN meta END,
			CASE WHEN $2 = 1 THEN payload END, CASE WHEN $2 = 1 THEN envelope END
		FROM jobs JOIN bodies ON job_seq = seq WHERE seq = $1`

	return t.ExecExactly(1, insert, j.Seq, edit.Body != nil, run)
}
