package store

import (
	"context"
	"math"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/groups"
	"redrive/internal/store/operations"
	"redrive/internal/store/rows"
	"redrive/internal/store/sources"
)

// Job returns everything that is known of one job, with its newest attempts, as of one
// commit, or job.ErrNotFound.
func (s *Store) Job(ctx context.Context, id string) (history.Detail, error) {
	return s.JobBefore(ctx, id, math.MaxInt)
}

// JobBefore is Job with the newest attempts before an execution.
func (s *Store) JobBefore(ctx context.Context, id string, execution int) (history.Detail, error) {
	var d history.Detail
	err := s.reader.Consistently(ctx, func(src db.Source) (err error) {
		d.Job, err = s.policies.ByID(src, id)
		if err != nil {
			return err
		}

		d.AttemptPage, err = attempts(src, d.Job.Seq, execution)
		if err != nil {
			return err
		}

		d.DeadLetters, err = deadLetters(src, d.Job)
		if err != nil {
			return err
		}

		if d.Job.Group != 0 {
			d.Group, err = groups.One(src, `id = $1`, d.Job.Group)
			if err != nil {
				return err
			}
		}

		d.Replays, err = replays(src, d.Job.Seq)
		if err != nil {
			return err
		}

		d.Bulk, err = operations.ActsOn(src, d.Job.Seq)
		if err != nil {
			return err
		}

		// Only a job of a source has a record there, and acts that the source was asked for.
		if d.Job.Source != "" {
			d.Mirrored, err = sources.Of(src, d.Job.Seq)
			if err != nil {
				return err
			}
		}

		// A replay may have changed the job: each one says what the run before it had.
		return addEarlier(src, s.policies, d.Job.Seq, d.Replays)
	})

	return d, err
}

// attempts is the page of the newest attempts of a job before an execution.
func attempts(src db.Source, seq int64, before int) (page history.AttemptPage, err error) {
	const count = `SELECT count(*), count(*) FILTER (WHERE execution < $2) FROM executions WHERE job_seq = $1`

	page.Attempts, err = rows.Attempts(src, seq, before)
	if err != nil {
		return page, err
	}

	// Earlier counts the executions before this page or, where the page is empty, before the
	// one that was asked for.
	first := before
	if len(page.Attempts) > 0 {
		first = page.Attempts[0].Execution
	}

	_, err = db.Row(src, count, []any{&page.Total, &page.Earlier}, seq, first)
	if err != nil {
		return page, err
	}

	page.Following, err = rows.AttemptFrom(src, seq, before)

	return page, err
}

func deadLetters(src db.Source, j job.Job) ([]job.DeadLetter, error) {
	// Only the dead letter of the current run can be in the trash.
	const query = `SELECT l.run, l.reason, l.error, l.exception, l.failed_at, l.queue, l.attempts, l.refused,
			coalesce(r.at, 0), coalesce(r.by, ''), coalesce(w.at, 0), coalesce(w.by, ''), l.cause, l.forwarded_at, l.forwarded_to, l.problem
		FROM dead_letters AS l LEFT JOIN replays AS r ON r.job_seq = l.job_seq AND r.run = l.run
		LEFT JOIN trash AS w ON w.job_seq = l.job_seq AND l.run = $2 WHERE l.job_seq = $1 ORDER BY l.run`

	return db.All(src, query, func(l *job.DeadLetter) []any {
		l.JobID = j.ID

		return []any{
			&l.Run, &l.Reason, &l.Error, &l.Exception, db.Time(&l.FailedAt), &l.Queue, &l.Attempts, &l.Refused,
			db.Time(&l.ReplayedAt), &l.ReplayedBy, db.Time(&l.DiscardedAt), &l.DiscardedBy, &l.Cause,
			db.Time(&l.ForwardedAt), &l.ForwardedTo, &l.Problem,
		}
	}, j.Seq, j.Run)
}

func replays(src db.Source, seq int64) ([]history.Replay, error) {
	const query = `SELECT run, state, reason, attempts, at, by FROM replays WHERE job_seq = $1 ORDER BY run`
	return db.All(src, query, func(r *history.Replay) []any {
		return []any{&r.Run, &r.State, &r.Reason, &r.Attempts, db.Time(&r.At), &r.By}
	}, seq)
}
