package store

import (
	"context"
	"database/sql"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/groups"
	"redrive/internal/store/operations"
	"redrive/internal/store/rows"
)

// Job returns everything that is known of one job, as of one commit, or
// job.ErrNotFound.
func (s *Store) Job(ctx context.Context, id string) (history.Detail, error) {
	var d history.Detail
	err := s.reader.Consistently(ctx, func(src db.Source) (err error) {
		if d.Job, err = s.policies.ByID(src, id); err != nil {
			return err
		}
		if d.Attempts, err = rows.Attempts(src, d.Job.Seq); err != nil {
			return err
		}
		if d.Letters, err = letters(src, d.Job); err != nil {
			return err
		}
		if d.Job.Group != 0 {
			if d.Group, err = groups.One(src, `id = $1`, d.Job.Group); err != nil {
				return err
			}
		}
		if d.Replays, err = replays(src, d.Job.Seq); err != nil {
			return err
		}
		if d.Bulk, err = operations.ActsOn(src, d.Job.Seq); err != nil {
			return err
		}
		return addEarlier(src, s.policies, d.Job.Seq, d.Replays)
	})
	return d, err
}

func letters(src db.Source, j job.Job) ([]job.DeadLetter, error) {
	const query = `SELECT run, reason, error, exception, failed_at, queue, attempts, refused,
		replayed_at, replayed_by, discarded_at, discarded_by, cause, forwarded_at, forwarded_to, problem
		FROM dead_letters WHERE job_seq = $1 ORDER BY run`
	var all []job.DeadLetter
	err := src.Query(query, func(rows *sql.Rows) error {
		l := job.DeadLetter{JobID: j.ID}
		var failed, replayed, discarded, forwarded int64
		err := rows.Scan(&l.Run, &l.Reason, &l.Error, &l.Exception, &failed, &l.Queue, &l.Attempts, &l.Refused,
			&replayed, &l.ReplayedBy, &discarded, &l.DiscardedBy, &l.Cause, &forwarded, &l.ForwardedTo, &l.Problem)
		l.FailedAt, l.ReplayedAt, l.DiscardedAt, l.ForwardedAt = db.FromMicros(failed), db.FromMicros(replayed), db.FromMicros(discarded), db.FromMicros(forwarded)
		all = append(all, l)
		return err
	}, j.Seq)
	return all, err
}

func replays(src db.Source, seq int64) ([]history.Replay, error) {
	const query = `SELECT run, state, reason, attempts, at, by FROM replays WHERE job_seq = $1 ORDER BY run`
	var all []history.Replay
	err := src.Query(query, func(rows *sql.Rows) error {
		var r history.Replay
		var at int64
		err := rows.Scan(&r.Run, &r.State, &r.Reason, &r.Attempts, &at, &r.By)
		r.At = db.FromMicros(at)
		all = append(all, r)
		return err
	}, seq)
	return all, err
}

// Changes tells where jobs stand, for whoever missed what was told. Unknown ids
// are left out.
func (s *Store) Changes(ctx context.Context, ids []string) ([]job.Change, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE id IN (SELECT value FROM json_each($1)) ORDER BY seq`
	list, err := db.Rows(ids)
	if err != nil {
		return nil, err
	}
	jobs, err := s.policies.Jobs(s.reader.In(ctx), query, list)
	changes := make([]job.Change, len(jobs))
	for i, j := range jobs {
		changes[i] = j.Changed()
	}
	return changes, err
}

// recentAmong is among how many of the newest jobs those of a type are looked
// for: reading so many rows takes no time that a person notices.
const recentAmong = 10_000

// Recent returns the newest jobs of a type, the newest first: at most limit of
// those that are among the newest ten thousand of all. Of each it says how it
// stands, since when, and when its newest execution was.
func (s *Store) Recent(ctx context.Context, typ string, limit int) ([]job.Job, error) {
	const query = `SELECT seq, id, state, letter, held, started_at, finished_at, changed_at FROM jobs
		WHERE seq > coalesce((SELECT max(seq) FROM jobs), 0) - $2 AND type = $1 ORDER BY seq DESC LIMIT $3 + 0`
	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()
	var all []job.Job
	err := s.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		j := job.Job{Type: typ}
		var state, letter string
		var started, finished, changed int64
		err := rows.Scan(&j.Seq, &j.ID, &state, &letter, &j.Held, &started, &finished, &changed)
		j.State, j.Letter = job.State(state), job.Letter(letter)
		j.StartedAt, j.FinishedAt, j.ChangedAt = db.FromMicros(started), db.FromMicros(finished), db.FromMicros(changed)
		all = append(all, j)
		return err
	}, typ, recentAmong, limit)
	return all, db.TimedOut(ctx, err)
}
