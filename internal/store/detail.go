package store

import (
	"context"
	"database/sql"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
)

// Job returns everything that is known of one job, as of one commit, or
// job.ErrNotFound.
func (s *Store) Job(ctx context.Context, id string) (history.Detail, error) {
	var d history.Detail
	err := s.consistently(ctx, func(src source) (err error) {
		if d.Job, err = s.policies.byID(src, id); err != nil {
			return err
		}
		if d.Attempts, err = attempts(src, d.Job.Seq); err != nil {
			return err
		}
		if d.Letters, err = letters(src, d.Job); err != nil {
			return err
		}
		if d.Job.Group != 0 {
			if d.Group, err = oneGroup(src, `id = $1`, d.Job.Group); err != nil {
				return err
			}
		}
		if d.Replays, err = replays(src, d.Job.Seq); err != nil {
			return err
		}
		if d.Bulk, err = bulkActs(src, d.Job.Seq); err != nil {
			return err
		}
		return s.policies.addEarlier(src, d.Job.Seq, d.Replays)
	})
	return d, err
}

func attempts(src source, seq int64) ([]job.Attempt, error) {
	const query = `SELECT execution, run, number, worker, started_at, finished_at, outcome, error_type, error_message,
		action, decided_by, delay, note, trace FROM executions WHERE job_seq = $1 ORDER BY execution`
	var all []job.Attempt
	err := src.query(query, func(rows *sql.Rows) error {
		var a job.Attempt
		var started, finished int64
		var delay string
		err := rows.Scan(&a.Execution, &a.Run, &a.Number, &a.Worker, &started, &finished, &a.Outcome,
			&a.Error.Type, &a.Error.Message, &a.Action, &a.DecidedBy, &delay, &a.Note, &a.Trace)
		if err != nil {
			return err
		}
		a.StartedAt, a.FinishedAt = fromMicros(started), fromMicros(finished)
		a.Delay, err = decodeDelay(delay)
		all = append(all, a)
		return err
	}, seq)
	return all, err
}

func letters(src source, j job.Job) ([]job.DeadLetter, error) {
	const query = `SELECT run, reason, error, exception, failed_at, queue, attempts, refused,
		replayed_at, replayed_by, discarded_at, discarded_by, cause, forwarded_at, forwarded_to, problem
		FROM dead_letters WHERE job_seq = $1 ORDER BY run`
	var all []job.DeadLetter
	err := src.query(query, func(rows *sql.Rows) error {
		l := job.DeadLetter{JobID: j.ID}
		var failed, replayed, discarded, forwarded int64
		err := rows.Scan(&l.Run, &l.Reason, &l.Error, &l.Exception, &failed, &l.Queue, &l.Attempts, &l.Refused,
			&replayed, &l.ReplayedBy, &discarded, &l.DiscardedBy, &l.Cause, &forwarded, &l.ForwardedTo, &l.Problem)
		l.FailedAt, l.ReplayedAt, l.DiscardedAt, l.ForwardedAt = fromMicros(failed), fromMicros(replayed), fromMicros(discarded), fromMicros(forwarded)
		all = append(all, l)
		return err
	}, j.Seq)
	return all, err
}

func replays(src source, seq int64) ([]job.Replay, error) {
	const query = `SELECT run, state, reason, attempts, at, by FROM replays WHERE job_seq = $1 ORDER BY run`
	var all []job.Replay
	err := src.query(query, func(rows *sql.Rows) error {
		var r job.Replay
		var at int64
		err := rows.Scan(&r.Run, &r.State, &r.Reason, &r.Attempts, &at, &r.By)
		r.At = fromMicros(at)
		all = append(all, r)
		return err
	}, seq)
	return all, err
}

// maxBulkActs bounds what is read of the operations of one job, the newest first.
const maxBulkActs = 200

func bulkActs(src source, seq int64) ([]operation.Act, error) {
	const query = `SELECT i.operation_id, o.kind, i.run, i.at, o.started_by FROM operation_items AS i JOIN operations AS o ON o.id = i.operation_id
		WHERE i.job_seq = $1 AND i.state = 'done' ORDER BY i.operation_id DESC LIMIT $2 + 0`
	var all []operation.Act
	err := src.query(query, func(rows *sql.Rows) error {
		var a operation.Act
		var at int64
		err := rows.Scan(&a.Operation, &a.Kind, &a.Run, &at, &a.By)
		a.At = fromMicros(at)
		all = append(all, a)
		return err
	}, seq, maxBulkActs)
	return all, err
}

// Changes tells where jobs stand, for whoever missed what was told. Unknown ids
// are left out.
func (s *Store) Changes(ctx context.Context, ids []string) ([]job.Change, error) {
	const query = `SELECT ` + jobColumns + ` FROM jobs WHERE id IN (SELECT value FROM json_each($1)) ORDER BY seq`
	list, err := encodeRows(ids)
	if err != nil {
		return nil, err
	}
	jobs, err := s.policies.jobs(s.reading(ctx), query, list)
	changes := make([]job.Change, len(jobs))
	for i, j := range jobs {
		changes[i] = j.Changed()
	}
	return changes, err
}
