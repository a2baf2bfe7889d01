package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// exchanged is the result of an Exchange.
type exchanged struct {
	claimed []job.Job
	stale   []job.Token
}

// Exchange ends executions and starts new ones in one transaction. It returns
// the jobs that were claimed, whose leases now run, in the order in which they
// should start and without what their workers do not need (their newest error,
// key, message id and note), and the tokens of settlements that changed nothing
// because the execution had lost its lease.
func (s *Store) Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) (claimed []job.Job, stale []job.Token, err error) {
	// The weight is roughly how many rows the transaction writes: one for each job that ends,
	// begins or is claimed.
	weight := len(settle) + len(claim.Began)
	for _, wanted := range []map[string]int{claim.Free, claim.Prefetch} {
		for _, n := range wanted {
			weight += n
		}
	}

	ended := cleaned(settle)
	done, err := db.Write(ctx, s.writer, weight, func(t *db.Tx) (exchanged, error) {
		stale, err := s.settleAll(t, ended)
		if err != nil {
			return exchanged{}, err
		}

		if err := s.noteBegun(t, claim.Began); err != nil {
			return exchanged{}, fmt.Errorf("note what has begun: %w", err)
		}

		claimed, err := s.claim(t, claim)

		return exchanged{claimed, stale}, err
	})

	return done.claimed, done.stale, err
}

// settlements end executions, many with one statement.
type settlements struct {
	completed db.Batch // those that succeeded
	failed    db.Batch
}

// newSettlements makes the batches. Nothing changes a completed job any more, so its row is
// the record of its last attempt too (see the view executions): one row less to write for
// each job that does its work.
func newSettlements() *settlements {
	return &settlements{
		completed: db.NewBatch(6, `UPDATE jobs SET state = 'completed', finished_at = s.column4, attempts = s.column5, started_at = s.column6,
			unbegun = 0, reason = '', error_type = '', error_message = '' FROM (VALUES `,
			`) AS s WHERE jobs.seq = s.column1 AND jobs.run = s.column2 AND jobs.execution = s.column3 AND `+isActive),
		failed: db.NewBatch(13, `UPDATE jobs SET changed_at = s.column4, state = s.column5,
			list_state = CASE s.column5 WHEN 'available' THEN '' ELSE s.column5 END, attempts = s.column6,
			finished_at = s.column7, run_at = s.column8, reason = s.column9, letter = s.column10, error_type = s.column11,
			error_message = s.column12, group_id = s.column13, unbegun = 0 FROM (VALUES `,
			`) AS s WHERE jobs.seq = s.column1 AND jobs.run = s.column2 AND jobs.execution = s.column3 AND `+isActive),
	}
}

// clear makes the batches empty for another transaction.
func (s *settlements) clear() {
	s.completed.Reset()
	s.failed.Reset()
}

// settleAll writes down how executions ended, and returns the tokens of those
// that had lost their lease: nothing is written for them.
func (s *Store) settleAll(t *db.Tx, all []job.Settlement) (stale []job.Token, err error) {
	var to job.Job // jobs are large: one after the other is here
	for i := range all {
		e := &all[i]

		from, ok, err := s.leases.execution(t, e.Token)
		if err != nil {
			return nil, err
		}

		if !ok {
			stale = append(stale, e.Token)
			continue
		}

		to = settled(*from, e)
		if err := s.settle(t, e, from, &to); err != nil {
			return nil, fmt.Errorf("settle job %s: %w", e.ID, err)
		}
	}

	return stale, db.Steps(t, s.settled.In(t).completed.Flush, s.settled.In(t).failed.Flush)
}

// settle writes down how one execution ended. from is the job as it ran, to as
// it is now.
func (s *Store) settle(t *db.Tx, e *job.Settlement, from, to *job.Job) error {
	// The failure comes first: it gives the job its error group, which is written with the job.
	if e.Cause.Fingerprint != "" {
		failure := projection.Failure{Cause: e.Cause, Job: to, Execution: e.Execution, Final: e.State != job.Retryable}
		if err := s.core.Fail(t, failure); err != nil {
			return err
		}
	}

	if err := s.end(t, e, from, to); err != nil {
		return err
	}

	// A success is recorded in the job's own row, and a job that was given back did not begin.
	if e.Attempt.Outcome != job.Succeeded && !e.GivenBack {
		if err := s.core.AddAttempt(t, to.Seq, e.Attempt); err != nil {
			return err
		}
	}

	if deadLetter, ok := e.NewDeadLetter(to.Queue); ok {
		if err := s.core.AddDeadLetter(t, to.Seq, deadLetter); err != nil {
			return err
		}
	}

	// A run that waits for a retry is not over.
	switch to.State {
	case job.Completed:
		s.core.End(t, to, operation.RunSucceeded, e.Attempt.FinishedAt)
	case job.Discarded:
		s.core.End(t, to, operation.RunRelapsed, e.Attempt.FinishedAt)
	}

	s.core.Move(t, from, to, stats.Of(*e))

	return nil
}

// cleaned are settlements whose texts every database can keep: in most cases the
// same ones.
func cleaned(all []job.Settlement) []job.Settlement {
	copied := false
	for i := range all {
		for n := range textsOf(&all[i]) {
			text := *textsOf(&all[i])[n]
			clean := db.Clean(text)
			if clean == text {
				continue
			}

			// The caller keeps the settlements as they came.
			if !copied {
				all, copied = slices.Clone(all), true
			}

			*textsOf(&all[i])[n] = clean
		}
	}

	return all
}

// textsOf are the texts that came with an execution.
func textsOf(e *job.Settlement) [8]*string {
	a := &e.Attempt
	return [...]*string{&a.Worker, &a.Error.Type, &a.Error.Message, &a.Trace, &a.DecidedBy, &a.Note, &e.Problem, &e.ForwardedTo}
}

// settled is the job after its settlement.
func settled(j job.Job, s *job.Settlement) job.Job {
	at := db.FromMicros(db.Micros(s.Attempt.FinishedAt))

	j.State, j.DeadLetter, j.ChangedAt = s.State, s.DeadLetter, at

	j.Worker, j.LeaseUntil = "", time.Time{}
	j.LastSeen, j.Unbegun = time.Time{}, s.Doubtful
	if !s.RunAt.IsZero() {
		j.RunAt = db.FromMicros(db.Micros(s.RunAt)) // as exact as the end with which it is compared
	}

	if j.State == job.Retryable && !j.RunAt.After(at) { // it waits for a worker, and not for its time
		j.State = job.Available
	}

	if s.Attempt.Outcome.Counted() {
		j.Attempts, j.Reason, j.Error = s.Attempt.Number, s.Reason, s.Attempt.Error
		if s.State != job.Retryable {
			j.FinishedAt = at
		}
	}

	return j
}

// token is the condition under which an execution may end. The writer knows
// that it holds, but the table has the last word.
const token = ` WHERE seq = $1 AND run = $2 AND execution = $3 AND ` + isActive

// isActive is written in such a way that no index of active jobs answers it: the number of the
// job finds its row, while such an index could have entries of all jobs that were active before.
const isActive = `jobs.state || '' = 'active'`

// worked corrects who ran a job that succeeded, where the attempt says otherwise
// than the claim.
func worked(t *db.Tx, claimed *job.Job, a job.Attempt) error {
	const update = `UPDATE jobs SET worker = $2 WHERE seq = $1`

	if a.Worker == claimed.Worker {
		return nil
	}

	return t.ExecExactly(1, update, claimed.Seq, a.Worker)
}

// end moves the job on.
func (s *Store) end(t *db.Tx, e *job.Settlement, from, to *job.Job) error {
	const release = `UPDATE jobs SET state = $5, changed_at = $4, run_at = $6, unbegun = $7` + token
	at := db.Micros(to.ChangedAt)
	switch {
	case to.State == job.Completed:
		if err := worked(t, from, e.Attempt); err != nil {
			return err
		}
		return s.settled.In(t).completed.Add(t, to.Seq, e.Run, e.Execution, at, to.Attempts, db.Micros(e.Attempt.StartedAt))

	// An execution that does not count leaves the attempts, the reason and the error as they
	// were.
	case !e.Attempt.Outcome.Counted():
		return t.ExecExactly(1, release, to.Seq, e.Run, e.Execution, at, string(to.State), db.Micros(to.RunAt), to.Unbegun)
	}

	return s.settled.In(t).failed.Add(t, to.Seq, e.Run, e.Execution, at, string(to.State), to.Attempts, db.Micros(to.FinishedAt),
		db.Micros(to.RunAt), string(to.Reason), string(to.DeadLetter), to.Error.Type, to.Error.Message, to.Group)
}

// Extend is the heartbeat: it moves the leases of executions to until. It
// returns the tokens of those that had lost theirs.
func (s *Store) Extend(ctx context.Context, now, until time.Time, tokens []job.Token) ([]job.Token, error) {
	const update = `UPDATE jobs SET lease_until = $4, last_seen = $5` + token

	return db.Write(ctx, s.writer, len(tokens), func(t *db.Tx) ([]job.Token, error) {
		var stale []job.Token
		for _, execution := range tokens {
			j, ok, err := s.leases.execution(t, execution)
			if err != nil {
				return nil, err
			}

			if !ok {
				stale = append(stale, execution)
				continue
			}

			err = t.ExecExactly(1, update, j.Seq, j.Run, j.Execution, db.Micros(until), db.Micros(now))
			if err != nil {
				return nil, fmt.Errorf("extend the lease of job %s: %w", execution.ID, err)
			}
		}

		return stale, nil
	})
}
