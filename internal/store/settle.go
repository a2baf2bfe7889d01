package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
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
	rows := len(settle)
	for _, n := range claim.Free {
		rows += n
	}
	done, err := write(ctx, s.writer, rows, func(t *tx) (exchanged, error) {
		stale, err := t.settleAll(settle)
		if err != nil {
			return exchanged{}, err
		}
		claimed, err := t.claim(claim)
		return exchanged{claimed, stale}, err
	})
	return done.claimed, done.stale, err
}

// settleAll writes down how executions ended, and returns the tokens of those
// that had lost their lease: nothing is written for them.
func (t *tx) settleAll(all []job.Settlement) (stale []job.Token, err error) {
	for i := range all {
		s := &all[i]
		from, ok := t.execution(s.Token)
		if !ok {
			stale = append(stale, s.Token)
			continue
		}
		if err := t.settle(s, *from); err != nil {
			return nil, fmt.Errorf("settle job %s: %w", s.ID, err)
		}
	}
	return stale, t.completed.flush(t, 1)
}

func (t *tx) settle(s *job.Settlement, from job.Job) error {
	to := settled(from, s)
	if s.Cause.Fingerprint != "" {
		var err error
		to.Group, err = t.failed(s.Cause, from, s.Execution, micros(s.Attempt.FinishedAt), s.State != job.Retryable)
		if err != nil {
			return err
		}
	}
	if err := t.end(s, from, &to); err != nil {
		return err
	}
	if s.Attempt.Outcome != job.Succeeded {
		if err := t.addAttempt(to.Seq, s.Attempt); err != nil {
			return err
		}
		if err := t.unsearchable(to.Seq, s.Attempt); err != nil {
			return err
		}
	}
	if letter, ok := s.DeadLetter(to.Queue); ok {
		if err := t.addLetter(to, letter); err != nil {
			return err
		}
	}
	t.endedBy(s, to)
	t.moved(from, to)
	totals := s.Totals()
	t.changes[len(t.changes)-1].Failed = totals.Failed > 0
	t.delta.count(to.Queue, to.Type, micros(s.Attempt.FinishedAt), totals)
	return nil
}

// settled is the job after its settlement.
func settled(j job.Job, s *job.Settlement) job.Job {
	at := fromMicros(micros(s.Attempt.FinishedAt))
	j.State, j.Letter, j.ChangedAt = s.State, s.Letter, at
	j.Worker, j.LeaseUntil, j.LastSeen = "", time.Time{}, time.Time{}
	if !s.RunAt.IsZero() {
		j.RunAt = s.RunAt
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
const token = ` WHERE seq = $1 AND run = $2 AND execution = $3 AND state = 'active'`

// started corrects who ran a job that succeeded, and since when, where the
// attempt says otherwise than the claim.
func (t *tx) started(claimed job.Job, a job.Attempt) error {
	const update = `UPDATE jobs SET worker = $2, started_at = $3 WHERE seq = $1`
	if a.Worker == claimed.Worker && micros(a.StartedAt) == micros(claimed.StartedAt) {
		return nil
	}
	n, err := t.exec(update, claimed.Seq, a.Worker, micros(a.StartedAt))
	return expect(1, n, err)
}

// end moves the job on.
func (t *tx) end(s *job.Settlement, from job.Job, to *job.Job) (err error) {
	const (
		release = `UPDATE jobs SET state = $5, changed_at = $4, run_at = $6` + token
		failed  = `UPDATE jobs SET state = $5, shelf = $5, changed_at = $4, attempts = $6, finished_at = $7, run_at = $8,
			reason = $9, letter = $10, error_type = $11, error_message = $12, group_id = $13` + token
	)
	var n int64
	at := micros(to.ChangedAt)
	switch {
	case to.State == job.Completed:
		if err := t.started(from, s.Attempt); err != nil {
			return err
		}
		return t.completed.add(t, to.Seq, s.Run, s.Execution, at, to.Attempts)
	case !s.Attempt.Outcome.Counted():
		n, err = t.exec(release, to.Seq, s.Run, s.Execution, at, string(to.State), micros(to.RunAt))
	default:
		n, err = t.exec(failed, to.Seq, s.Run, s.Execution, at, string(to.State), to.Attempts, micros(to.FinishedAt),
			micros(to.RunAt), string(to.Reason), string(to.Letter), to.Error.Type, to.Error.Message, to.Group)
	}
	return expect(1, n, err)
}

// expect checks that a statement changed as many rows as the writer knows to be
// there. Anything else means that the file was changed behind its back, and
// only a restart reads it again.
func expect(want, got int64, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("%w: %d rows changed instead of %d: another program wrote to the file", job.ErrBroken, got, want)
	}
	return err
}

// completing ends executions that succeeded, many at once. Nothing changes a
// completed job any more, so its row is the record of its last attempt too (see
// the view executions): one row less to write for each job that does its work.
func completing() batch {
	return batch{
		head: `UPDATE jobs SET state = 'completed', finished_at = s.column4, attempts = s.column5,
			reason = '', error_type = '', error_message = '' FROM (VALUES `,
		row: `(?, ?, ?, ?, ?)`, columns: 5,
		tail: `) AS s WHERE jobs.seq = s.column1 AND jobs.run = s.column2 AND jobs.execution = s.column3 AND jobs.state = 'active'`,
	}
}

// recording appends attempts that did not succeed.
func recording() batch {
	return batch{
		head: `INSERT INTO attempts (job_seq, execution, run, number, worker, started_at, finished_at,
			outcome, error_type, error_message, action, decided_by, delay, note, trace) VALUES `,
		row: `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, columns: 15,
	}
}

func (t *tx) addAttempt(seq int64, a job.Attempt) error {
	delay, err := encodeDelay(a.Delay)
	if err != nil {
		return err
	}
	return t.attempts.add(t, seq, a.Execution, a.Run, a.Number, a.Worker, micros(a.StartedAt), micros(a.FinishedAt),
		string(a.Outcome), a.Error.Type, a.Error.Message, string(a.Action), a.DecidedBy, delay, a.Note, a.Trace)
}

// encodeDelay writes the calculation of a delay down, nothing when there is none.
func encodeDelay(d *retry.Delay) (string, error) {
	if d == nil {
		return "", nil
	}
	text, err := json.Marshal(d)
	return string(text), err
}

func decodeDelay(text string) (*retry.Delay, error) {
	if text == "" {
		return nil, nil
	}
	d := new(retry.Delay)
	return d, json.Unmarshal([]byte(text), d)
}

func (t *tx) addLetter(j job.Job, l job.DeadLetter) error {
	const insert = `INSERT INTO dead_letters (job_seq, run, open, refused, reason, exception, failed_at, queue, attempts, error,
			cause, forwarded_at, forwarded_to, problem)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`
	open, no := 1, 0
	if l.Refused {
		open, no = 0, 1
	} else {
		t.delta.letter(j, l.FailedAt, 1)
	}
	_, err := t.exec(insert, j.Seq, l.Run, open, no, string(l.Reason), l.Exception, micros(l.FailedAt), l.Queue, l.Attempts, l.Error,
		string(l.Cause), micros(l.ForwardedAt), l.ForwardedTo, l.Problem)
	if err != nil {
		return fmt.Errorf("store the dead letter: %w", err)
	}
	return nil
}

// Extend is the heartbeat: it moves the leases of executions to until. It
// returns the tokens of those that had lost theirs.
func (s *Store) Extend(ctx context.Context, now, until time.Time, tokens []job.Token) ([]job.Token, error) {
	const update = `UPDATE jobs SET lease_until = $4, last_seen = $5` + token
	return write(ctx, s.writer, len(tokens), func(t *tx) ([]job.Token, error) {
		var stale []job.Token
		for _, execution := range tokens {
			j, ok := t.execution(execution)
			if !ok {
				stale = append(stale, execution)
				continue
			}
			n, err := t.exec(update, j.Seq, j.Run, j.Execution, micros(until), micros(now))
			if err := expect(1, n, err); err != nil {
				return nil, fmt.Errorf("extend the lease of job %s: %w", execution.ID, err)
			}
		}
		return stale, nil
	})
}
