package mirror

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
	"redrive/internal/store/sources"
)

// What people ask of a source is written into the ledger in the transaction that moves its
// job. When the source has answered, its job moves again: the source took a replay, carried
// out a discard, said no, or said that a job has succeeded.

// SettleActs writes down how acts on a source ended, and moves their jobs. After a replay,
// the job
//
//   - is returned if the source took it, if the record had died again, and if it is unknown
//     what happened;
//   - has ended if the record was gone;
//   - is a dead letter again otherwise, in the run that the replay began, with what the
//     source said.
//
// After a discard, the job stays in the trash if the record is gone or its fate is unknown,
// and is a dead letter again otherwise. An act that had ended before changes nothing.
func (m *Mirror) SettleActs(ctx context.Context, now time.Time, results []source.Result) error {
	return m.writer.Do(ctx, 2*len(results), func(t *db.Tx) error {
		returned, err := m.settleReturned(t, now, results)
		if err != nil {
			return err
		}

		for _, r := range results {
			if returned[r.ID] {
				continue
			}

			err := m.settleAct(t, now, r)
			if err != nil {
				return fmt.Errorf("settle act %d: %w", r.ID, err)
			}
		}

		return nil
	})
}

// settleAct settles one act. The replays that a source took are settled by settleReturned.
func (m *Mirror) settleAct(t *db.Tx, now time.Time, r source.Result) error {
	act, seq, err := sources.ByID(t, r.ID)
	if err != nil {
		return err
	}

	// The act was read before it ended: its end can clear the payload, and what follows has to
	// know whether there was one.
	open, err := sources.End(t, now, r)
	if err != nil || !open {
		return err
	}

	t.Touch()

	from, err := rows.One(m.policies.Whole(t, rows.Whole+` WHERE seq = $1`, seq))
	if err != nil {
		return err
	}

	switch {
	case act.Kind == source.Replay && r.State == source.Unknown:
		return m.unsure(t, now, from)
	case act.Kind == source.Replay && r.State == source.Gone:
		return m.vanish(t, now, []job.Job{from})
	case act.Kind == source.Replay && r.State == source.Changed:
		return m.ranElsewhere(t, now, from, act)
	case act.Kind == source.Replay:
		act.State, act.Why = r.State, r.Why
		return m.comesBack(t, now, from, act)

	// What remains is a discard. If the record is gone, or its fate unknown, the job stays in
	// the trash.
	case r.State == source.Done || r.State == source.Gone || r.State == source.Unknown:
		return sources.Left(t, []int64{seq})
	}

	// The source did not discard the record: the job leaves the trash.
	return m.core.Restore(t, []job.Job{from})
}

// settleReturned ends the replays that a source carried out, all at once, and returns their acts.
// The source has their jobs again: from now on it is their worker.
func (m *Mirror) settleReturned(t *db.Tx, now time.Time, results []source.Result) (acts map[int64]bool, err error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`

	acts, seqs, err := sources.EndReplays(t, now, results)
	if err != nil || len(acts) == 0 {
		return nil, err
	}

	jobs, err := m.policies.Jobs(t, query, db.Numbers(seqs))
	if err == nil {
		err = m.markReturned(t, now, jobs)
	}

	if err == nil {
		err = sources.Left(t, seqs)
	}

	return acts, err
}

// markReturned leaves jobs to their source, which is their worker from now on.
func (m *Mirror) markReturned(t *db.Tx, now time.Time, jobs []job.Job) error {
	const update = `UPDATE jobs SET state = 'returned', list_state = 'returned', worker = source, changed_at = max(changed_at, $2)
		WHERE seq IN (SELECT value FROM json_each($1))`
	seqs, at := rows.Numbers(jobs), db.FromMicros(db.Micros(now))
	if err := t.ExecExactly(len(jobs), update, db.Numbers(seqs), db.Micros(now)); err != nil {
		return err
	}

	t.Touch()
	m.core.MoveAll(t, jobs, stats.Totals{}, func(j *job.Job) {
		j.State, j.Worker = job.Returned, j.Source
		if at.After(j.ChangedAt) {
			j.ChangedAt = at
		}
	})

	return nil
}

// unsure leaves a job to its source, of which it is unknown whether it took the job.
func (m *Mirror) unsure(t *db.Tx, now time.Time, j job.Job) error {
	m.core.End(t, &j, operation.RunUnknown, now)

	if err := m.markReturned(t, now, []job.Job{j}); err != nil {
		return err
	}

	// Of a returned job, unbegun says that its source may not have it.
	if err := t.ExecExactly(1, `UPDATE jobs SET unbegun = 1 WHERE seq = $1`, j.Seq); err != nil {
		return err
	}

	return sources.Left(t, []int64{j.Seq})
}

// ranElsewhere records that the run of a job, which a replay was to begin, was begun elsewhere.
// The job has died again: its record ends the run when it is read, and if the record has left
// by then, the job is gone.
func (m *Mirror) ranElsewhere(t *db.Tx, now time.Time, j job.Job, act source.Act) error {
	// The edited payload was for a replay that did not happen.
	if len(act.Payload) > 0 {
		if err := m.restorePayload(t, j); err != nil {
			return err
		}
	}

	m.core.End(t, &j, operation.RunDropped, now)

	return m.markReturned(t, now, []job.Job{j})
}

// comesBack puts a job back among the dead letters whose replay the source did not carry
// out, or whose replay is unknown and whose record is still there. The run did not fail
// itself, so the job has the failure of the run before, and its time.
func (m *Mirror) comesBack(t *db.Tx, now time.Time, from job.Job, act source.Act) error {
	const update = `UPDATE jobs SET state = 'discarded', list_state = 'discarded', letter = 'stored', unbegun = 0, changed_at = $2,
			finished_at = l.failed_at, attempts = l.attempts, reason = l.reason, error_type = l.exception, error_message = l.error,
			group_id = r.group_id
		FROM dead_letters AS l JOIN replays AS r ON r.job_seq = l.job_seq AND r.run = l.run
		WHERE jobs.seq = $1 AND l.job_seq = jobs.seq AND l.run = jobs.run - 1`

	to, err := m.core.Change(t, from, update, from.Seq, db.Micros(now))
	if err != nil {
		return err
	}

	// The payload was edited for the replay, and the job has the edited one by now.
	if len(act.Payload) > 0 {
		err := m.restorePayload(t, to)
		if err != nil {
			return err
		}
	}

	// The run that the replay began has a dead letter of its own, with what the source said.
	err = m.core.AddDeadLetter(t, to.Seq, deadLetterOf(&to, act.Why))
	if err != nil {
		return err
	}

	outcome := operation.RunDropped
	if act.State == source.Unknown {
		outcome = operation.RunUnknown
	}

	m.core.End(t, &to, outcome, now)
	m.core.Move(t, &from, &to, stats.Totals{})

	return nil
}

// restorePayload gives a job the payload of the run before, which the record at the source
// still has, in place of the one of a replay that did not happen.
func (m *Mirror) restorePayload(t *db.Tx, j job.Job) error {
	const restore = `UPDATE bodies SET payload = e.payload FROM earlier_runs AS e
		WHERE bodies.job_seq = $1 AND e.job_seq = $1 AND e.run = $2`
	const forget = `DELETE FROM earlier_runs WHERE job_seq = $1 AND run = $2`
	return db.Steps(t, db.Exactly(1, restore, j.Seq, j.Run-1), db.Exactly(1, forget, j.Seq, j.Run-1))
}
