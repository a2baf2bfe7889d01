package store

import (
	"database/sql"

	"redrive/internal/job"
)

// workColumns are what has to be known of a job to act on it together with many
// others, in the order in which scanWork reads them.
const workColumns = `seq, id, queue, type, state, letter, held, run, attempts, execution, policy_id, run_at, changed_at, reason, group_id`

// scanWork appends the job of a row that has workColumns.
func (r *jobRows) scanWork(rows *sql.Rows) error {
	r.jobs, r.policies = append(r.jobs, job.Job{}), append(r.policies, 0)
	last := len(r.jobs) - 1
	j := &r.jobs[last]
	var runAt, changed int64
	err := rows.Scan(&j.Seq, &j.ID, &j.Queue, &j.Type, (*string)(&j.State), (*string)(&j.Letter), &j.Held, &j.Run, &j.Attempts, &j.Execution,
		&r.policies[last], &runAt, &changed, (*string)(&j.Reason), &j.Group)
	j.RunAt, j.ChangedAt = fromMicros(runAt), fromMicros(changed)
	return err
}

// toWork runs a query that selects workColumns of about n jobs.
func (p *policies) toWork(src source, n int, query string, args ...any) ([]job.Job, error) {
	found := jobRows{jobs: make([]job.Job, 0, n), policies: make([]int64, 0, n)}
	err := src.query(query, found.scanWork, args...)
	return p.complete(src, found, err)
}
