package mirror

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
	"redrive/internal/store/sources"
)

// Succeeded records that runs have succeeded, as their source reports. A job that is no longer
// in that run, or that the source does not have, is left as it is. It returns how many jobs
// changed.
func (m *Mirror) Succeeded(ctx context.Context, now time.Time, name string, all []source.Success) (int, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`

	bySeq, seqs := make(map[int64]source.Success, len(all)), make([]int64, len(all))
	for i, success := range all {
		bySeq[success.Seq], seqs[i] = success, success.Seq
	}

	return db.Write(ctx, m.writer, 2*len(all), func(t *db.Tx) (n int, err error) {
		jobs, err := m.policies.Jobs(t, query, db.Numbers(seqs))
		if err != nil {
			return 0, err
		}

		for i := range jobs {
			// The source speaks of a run: the job may have been replayed since, or have died.
			from := &jobs[i]
			success := bySeq[from.Seq]
			if from.Source != name || from.Run != success.Run || from.State != job.Returned {
				continue
			}

			if err := m.succeed(t, now, from, success); err != nil {
				return 0, fmt.Errorf("job %s succeeded at its source: %w", from.ID, err)
			}

			n++
		}

		return n, nil
	})
}

// succeed ends the run of a job that has succeeded at its source. When that was is told by
// another clock: not before the source took the job, and not later than now.
func (m *Mirror) succeed(t *db.Tx, now time.Time, from *job.Job, success source.Success) error {
	const update = `UPDATE jobs SET state = 'completed', list_state = '', unbegun = 0, attempts = $2, execution = $3,
			changed_at = $4, finished_at = $4
		WHERE seq = $1`

	at := success.At
	if at.IsZero() || at.After(now) {
		at = now
	}

	if at.Before(from.ChangedAt) {
		at = from.ChangedAt
	}

	at = db.FromMicros(db.Micros(at))
	to := *from
	to.State, to.Worker = job.Completed, ""
	to.Attempts, to.ChangedAt, to.FinishedAt = success.Attempts, at, at
	to.Unbegun = false
	to.Execution++

	// It was unknown whether the source took the replay that began this run. It did.
	if from.Unbegun {
		if err := sources.Happened(t, from.Seq, from.Run, "The source has said since that the job succeeded."); err != nil {
			return err
		}
	}

	// The row of a completed job that Redrive ran records the last attempt too. A job of a
	// source needs a row for the attempt (see the view executions).
	err := m.core.AddAttempt(t, to.Seq, job.Attempt{
		Run: to.Run, Execution: to.Execution, Number: to.Attempts, FinishedAt: at,
		Outcome: job.Succeeded, Action: retry.Complete, DecidedBy: "source",
	})
	if err != nil {
		return err
	}

	if err := t.ExecExactly(1, update, to.Seq, to.Attempts, to.Execution, db.Micros(at)); err != nil {
		return err
	}

	m.core.End(t, &to, operation.RunSucceeded, at)
	m.core.Move(t, from, &to, stats.Totals{Succeeded: 1})

	return nil
}

// Vanished ends the jobs whose records have left their source: they were replayed or
// discarded there, or the source removed them. It skips jobs on which an act is under way.
// The jobs are kept for as long as other discarded jobs. It returns how many jobs it ended.
func (m *Mirror) Vanished(ctx context.Context, now time.Time, name string, seqs []int64) (int, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE (letter = 'stored' OR state = 'returned') AND seq IN (
		SELECT job_seq FROM mirrored WHERE source = $1 AND present = 1 AND job_seq IN (SELECT value FROM json_each($2)))
		AND seq NOT IN (SELECT job_seq FROM source_acts WHERE source = $1 AND state IN ('asked', 'begun'))`

	return db.Write(ctx, m.writer, len(seqs), func(t *db.Tx) (int, error) {
		jobs, err := m.policies.Jobs(t, query, name, db.Numbers(seqs))
		if err != nil || len(jobs) == 0 {
			return 0, err
		}

		return len(jobs), m.vanish(t, now, jobs)
	})
}

// vanish ends jobs whose records are gone.
func (m *Mirror) vanish(t *db.Tx, now time.Time, jobs []job.Job) error {
	const update = `UPDATE jobs SET state = 'discarded', list_state = 'discarded', letter = '', unbegun = 0, reason = $2,
			changed_at = $3, finished_at = $3
		WHERE seq IN (SELECT value FROM json_each($1))`
	at := db.FromMicros(db.Micros(now))
	if err := t.ExecExactly(len(jobs), update, rows.Seqs(jobs), string(retry.GoneAtSource), db.Micros(now)); err != nil {
		return err
	}

	for i := range jobs {
		m.core.End(t, &jobs[i], operation.RunDropped, now)
	}

	numbers := rows.Numbers(jobs)
	m.core.MoveAll(t, jobs, stats.Totals{}, func(j *job.Job) {
		j.State, j.DeadLetter = job.Discarded, job.NoDeadLetter
		j.Reason, j.ChangedAt, j.FinishedAt = retry.GoneAtSource, at, at
		j.Unbegun = false
	})

	return sources.Left(t, numbers)
}
