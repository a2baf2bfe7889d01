package store

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
	"redrive/internal/store/projection"
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
func (s *Store) SettleActs(ctx context.Context, now time.Time, results []source.Result) error {
	return s.writer.Do(ctx, 2*len(results), func(t *db.Tx) error {
		handed, err := s.handOver(t, now, results)
		if err != nil {
			return err
		}

		for _, r := range results {
			if handed[r.ID] {
				continue
			}

			err := s.settleAct(t, now, r)
			if err != nil {
				return fmt.Errorf("settle act %d: %w", r.ID, err)
			}
		}

		return nil
	})
}

// settleAct settles one act. The replays that a source took are settled by handOver.
func (s *Store) settleAct(t *db.Tx, now time.Time, r source.Result) error {
	act, seq, err := sources.ByID(t, r.ID)
	if err != nil {
		return err
	}

	open, err := sources.End(t, now, r)
	if err != nil || !open {
		return err
	}

	t.Touch()

	from, err := rows.One(s.policies.Whole(t, rows.Whole+` WHERE seq = $1`, seq))
	if err != nil {
		return err
	}

	switch {
	case act.Kind == source.Replay && r.State == source.Unknown:
		return s.unsure(t, now, from)
	case act.Kind == source.Replay && r.State == source.Gone:
		return s.vanish(t, now, []job.Job{from})
	case act.Kind == source.Replay && r.State == source.Changed:
		return s.ranElsewhere(t, now, from, act)
	case act.Kind == source.Replay:
		act.State, act.Why = r.State, r.Why
		return s.comesBack(t, now, from, act)
	case r.State == source.Done || r.State == source.Gone || r.State == source.Unknown:
		return sources.Left(t, []int64{seq})
	}

	return s.RestoreAll(t, []job.Job{from})
}

// handOver ends the replays that a source carried out, all at once, and returns their acts.
// The source has their jobs again: from now on it is their worker.
func (s *Store) handOver(t *db.Tx, now time.Time, results []source.Result) (acts map[int64]bool, err error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`

	acts, seqs, err := sources.EndReplays(t, now, results)
	if err != nil || len(acts) == 0 {
		return nil, err
	}

	jobs, err := s.policies.Jobs(t, query, db.Numbers(seqs))
	if err == nil {
		err = s.hand(t, now, jobs)
	}

	if err == nil {
		err = sources.Left(t, seqs)
	}

	return acts, err
}

// hand leaves jobs to their source, which is their worker from now on.
func (s *Store) hand(t *db.Tx, now time.Time, jobs []job.Job) error {
	const update = `UPDATE jobs SET state = 'returned', list_state = 'returned', worker = source, changed_at = max(changed_at, $2)
		WHERE seq IN (SELECT value FROM json_each($1))`
	seqs, at := rows.Numbers(jobs), db.FromMicros(db.Micros(now))
	if err := t.ExecExactly(len(jobs), update, db.Numbers(seqs), db.Micros(now)); err != nil {
		return err
	}

	t.Touch()
	s.moveAll(t, jobs, stats.Totals{}, func(j *job.Job) {
		j.State, j.Worker = job.Returned, j.Source
		if at.After(j.ChangedAt) {
			j.ChangedAt = at
		}
	})

	return nil
}

// unsure leaves a job to its source, of which it is unknown whether it took the job.
func (s *Store) unsure(t *db.Tx, now time.Time, j job.Job) error {
	s.in(t).ended(&j, operation.RunUnknown, now)

	if err := s.hand(t, now, []job.Job{j}); err != nil {
		return err
	}

	if err := t.ExecExactly(1, `UPDATE jobs SET unbegun = 1 WHERE seq = $1`, j.Seq); err != nil {
		return err
	}

	return sources.Left(t, []int64{j.Seq})
}

// ranElsewhere records that the run of a job, which a replay was to begin, was begun elsewhere.
// The job has died again: its record ends the run when it is read, and if the record has left
// by then, the job is gone.
func (s *Store) ranElsewhere(t *db.Tx, now time.Time, j job.Job, act source.Act) error {
	if len(act.Payload) > 0 {
		if err := s.restorePayload(t, j); err != nil {
			return err
		}
	}

	s.in(t).ended(&j, operation.RunDropped, now)

	return s.hand(t, now, []job.Job{j})
}

// Succeeded records that runs have succeeded, as their source reports. A job that is no longer
// in that run, or that the source does not have, is left as it is. It returns how many jobs
// changed.
func (s *Store) Succeeded(ctx context.Context, now time.Time, name string, all []source.Success) (int, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`

	bySeq, seqs := make(map[int64]source.Success, len(all)), make([]int64, len(all))
	for i, success := range all {
		bySeq[success.Seq], seqs[i] = success, success.Seq
	}

	return db.Write(ctx, s.writer, 2*len(all), func(t *db.Tx) (n int, err error) {
		jobs, err := s.policies.Jobs(t, query, db.Numbers(seqs))
		if err != nil {
			return 0, err
		}

		for i := range jobs {
			from := &jobs[i]
			success := bySeq[from.Seq]
			if from.Source != name || from.Run != success.Run || from.State != job.Returned {
				continue
			}

			if err := s.succeed(t, now, from, success); err != nil {
				return 0, fmt.Errorf("job %s succeeded at its source: %w", from.ID, err)
			}

			n++
		}

		return n, nil
	})
}

// succeed ends the run of a job that has succeeded at its source. When that was is told by
// another clock: not before the source took the job, and not later than now.
func (s *Store) succeed(t *db.Tx, now time.Time, from *job.Job, success source.Success) error {
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

	if from.Unbegun {
		if err := sources.Happened(t, from.Seq, from.Run, "The source has said since that the job succeeded."); err != nil {
			return err
		}
	}

	err := rows.AddAttempt(t, &s.in(t).attempts, to.Seq, job.Attempt{
		Run: to.Run, Execution: to.Execution, Number: to.Attempts, FinishedAt: at,
		Outcome: job.Succeeded, Action: retry.Complete, DecidedBy: "source",
	})
	if err != nil {
		return err
	}

	if err := t.ExecExactly(1, update, to.Seq, to.Attempts, to.Execution, db.Micros(at)); err != nil {
		return err
	}

	s.in(t).ended(&to, operation.RunSucceeded, at)
	s.moved(t, from, &to, stats.Totals{Succeeded: 1})

	return nil
}

// comesBack puts a job back among the dead letters whose replay the source did not carry
// out, or whose replay is unknown and whose record is still there. The run did not fail
// itself, so the job has the failure of the run before, and its time.
func (s *Store) comesBack(t *db.Tx, now time.Time, from job.Job, act source.Act) error {
	const update = `UPDATE jobs SET state = 'discarded', list_state = 'discarded', letter = 'stored', unbegun = 0, changed_at = $2,
			finished_at = l.failed_at, attempts = l.attempts, reason = l.reason, error_type = l.exception, error_message = l.error,
			group_id = r.group_id
		FROM dead_letters AS l JOIN replays AS r ON r.job_seq = l.job_seq AND r.run = l.run
		WHERE jobs.seq = $1 AND l.job_seq = jobs.seq AND l.run = jobs.run - 1`

	to, err := s.change(t, from, update, from.Seq, db.Micros(now))
	if err != nil {
		return err
	}

	if len(act.Payload) > 0 {
		err := s.restorePayload(t, to)
		if err != nil {
			return err
		}
	}

	err = addLetter(t, to.Seq, job.DeadLetter{
		Run: to.Run, Reason: to.Reason, Error: to.Error.Message, Exception: to.Error.Type, FailedAt: to.FinishedAt,
		Queue: to.Queue, Attempts: to.Attempts, Problem: act.Why,
	})
	if err != nil {
		return err
	}

	outcome := operation.RunDropped
	if act.State == source.Unknown {
		outcome = operation.RunUnknown
	}

	s.in(t).ended(&to, outcome, now)
	s.moved(t, &from, &to, stats.Totals{})

	return nil
}

// restorePayload gives a job the payload of the run before, which the record at the source
// still has, in place of the one of a replay that did not happen.
func (s *Store) restorePayload(t *db.Tx, j job.Job) error {
	const restore = `UPDATE bodies SET payload = e.payload FROM earlier_runs AS e
		WHERE bodies.job_seq = $1 AND e.job_seq = $1 AND e.run = $2`
	const forget = `DELETE FROM earlier_runs WHERE job_seq = $1 AND run = $2`
	return db.Steps(t, db.Exactly(1, restore, j.Seq, j.Run-1), db.Exactly(1, forget, j.Seq, j.Run-1))
}

// CheckAct says why an act on a job is not allowed at its source. It is empty if the act is
// allowed, and for jobs that have no source.
func (s *Store) CheckAct(j job.Job, kind operation.Kind) string {
	return s.refusesWish(j, source.Request{Kind: source.Kind(kind)})
}

func (s *Store) refusesWish(j job.Job, w source.Request) string {
	if j.Source == "" || s.refuses == nil {
		return ""
	}
	return s.refuses(j.Source, w)
}

// ask writes into the ledger what the sources of jobs are to do. The jobs are as they are
// after the act, and those without a source are left out. A source that is not attached is
// never told, so the act on its record ends at once.
func (s *Store) ask(t *db.Tx, ask projection.Ask, jobs []job.Job) error {
	var attached, unattached []job.Job
	for _, j := range jobs {
		switch name := j.Source; {
		case name == "":
		case s.attached != nil && !s.attached(name):
			unattached = append(unattached, j)
		default:
			attached = append(attached, j)
		}
	}

	aside := ask
	aside.Jobs, aside.Unattached = unattached, true
	ask.Jobs = attached

	return db.Steps(t, s.tell(ask), s.tell(aside))
}

// tell tells the projections what sources are asked to do, if it is anything.
func (s *Store) tell(ask projection.Ask) func(*db.Tx) error {
	return func(t *db.Tx) error {
		if len(ask.Jobs) == 0 {
			return nil
		}
		return s.projections.Asked(t, ask)
	}
}
