package store

import (
	"context"
	"database/sql"
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
// should start, and the tokens of settlements that changed nothing because the
// execution had lost its lease.
func (s *Store) Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) (claimed []job.Job, stale []job.Token, err error) {
	rows := len(settle)
	for _, n := range claim.Free {
		rows += n
	}
	done, err := write(ctx, s.writer, rows, func(t *tx) (exchanged, error) {
		var done exchanged
		for i := range settle {
			ok, err := t.settle(&settle[i])
			if err != nil {
				return exchanged{}, fmt.Errorf("settle job %s: %w", settle[i].ID, err)
			}
			if !ok {
				done.stale = append(done.stale, settle[i].Token)
			}
		}
		var err error
		done.claimed, err = t.claim(claim)
		return done, err
	})
	return done.claimed, done.stale, err
}

// settle writes down how one execution ended; ok is false when it had lost its
// lease, and then nothing is written.
func (t *tx) settle(s *job.Settlement) (ok bool, err error) {
	to, ok, err := t.end(s)
	if err != nil || !ok {
		return false, err
	}
	if err := t.addAttempt(to.Seq, s.Attempt); err != nil {
		return false, err
	}
	if letter, ok := s.DeadLetter(to.Queue); ok {
		if err := t.addLetter(to.Seq, letter); err != nil {
			return false, err
		}
	}
	from := to
	from.State, from.Letter, from.Held = job.Active, job.NoLetter, false
	t.moved(from, to)
	totals := s.Totals()
	t.changes[len(t.changes)-1].Failed = totals.Failed > 0
	t.delta.count(to.Queue, to.Type, micros(s.Attempt.FinishedAt), totals)
	return true, nil
}

// end moves the job on, if the token still holds, and returns what its change
// tells.
func (t *tx) end(s *job.Settlement) (j job.Job, ok bool, err error) {
	const (
		returning = ` WHERE id = $1 AND run = $2 AND execution = $3 AND state = 'active' RETURNING seq, queue, type, policy_id, attempts, run_at`
		idle      = `worker = '', lease_until = 0, last_seen = 0`
		complete  = `UPDATE jobs SET state = 'completed', changed_at = $4, finished_at = $4, attempts = $5,
			reason = '', error_type = '', error_message = '', ` + idle + returning
		release = `UPDATE jobs SET state = $5, changed_at = $4, run_at = $6, ` + idle + returning
		failed  = `UPDATE jobs SET state = $5, changed_at = $4, attempts = $6, finished_at = $7,
			run_at = CASE WHEN $8 = 0 THEN run_at ELSE $8 END,
			reason = $9, letter = $10, error_type = $11, error_message = $12, ` + idle + returning
	)
	at := micros(s.Attempt.FinishedAt)
	args := []any{s.ID, s.Run, s.Execution, at}
	query := failed
	switch {
	case s.State == job.Completed:
		query, args = complete, append(args, s.Attempt.Number)
	case !s.Attempt.Outcome.Counted():
		query, args = release, append(args, string(s.State), micros(s.RunAt))
	default:
		var finished int64
		if s.State != job.Retryable {
			finished = at
		}
		args = append(args, string(s.State), s.Attempt.Number, finished, micros(s.RunAt),
			string(s.Reason), string(s.Letter), s.Attempt.Error.Type, s.Attempt.Error.Message)
	}
	return t.ended(s, query, args)
}

func (t *tx) ended(s *job.Settlement, query string, args []any) (j job.Job, ok bool, err error) {
	j = job.Job{Token: s.Token, State: s.State, Letter: s.Letter, ChangedAt: fromMicros(micros(s.Attempt.FinishedAt))}
	var policy, runAt int64
	err = t.query(query, func(rows *sql.Rows) error {
		ok = true
		return rows.Scan(&j.Seq, &j.Queue, &j.Type, &policy, &j.Attempts, &runAt)
	}, args...)
	if err != nil || !ok {
		return j, false, err
	}
	j.RunAt = fromMicros(runAt)
	j.Policy, err = t.store.policies.get(t, policy)
	return j, true, err
}

func (t *tx) addAttempt(seq int64, a job.Attempt) error {
	const insert = `INSERT INTO attempts (job_seq, execution, run, number, worker, started_at, finished_at,
		outcome, error_type, error_message, action, decided_by, delay, trace)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`
	delay, err := encodeDelay(a.Delay)
	if err != nil {
		return err
	}
	_, err = t.exec(insert, seq, a.Execution, a.Run, a.Number, a.Worker, micros(a.StartedAt), micros(a.FinishedAt),
		string(a.Outcome), a.Error.Type, a.Error.Message, string(a.Action), a.DecidedBy, delay, a.Trace)
	if err != nil {
		return fmt.Errorf("store the attempt: %w", err)
	}
	return nil
}

// encodeDelay writes the calculation of a delay down, ” when there is none.
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

func (t *tx) addLetter(seq int64, l job.DeadLetter) error {
	const insert = `INSERT INTO dead_letters (job_seq, run, open, refused, reason, exception, failed_at, queue, attempts, error)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	open, no := 1, 0
	if l.Refused {
		open, no = 0, 1
	} else {
		t.delta.reasons[l.Reason]++
	}
	_, err := t.exec(insert, seq, l.Run, open, no, string(l.Reason), l.Exception, micros(l.FailedAt), l.Queue, l.Attempts, l.Error)
	if err != nil {
		return fmt.Errorf("store the dead letter: %w", err)
	}
	return nil
}

// Extend is the heartbeat: it moves the leases of executions to until. It
// returns the tokens of those that had lost theirs.
func (s *Store) Extend(ctx context.Context, now, until time.Time, tokens []job.Token) ([]job.Token, error) {
	const update = `UPDATE jobs SET lease_until = $4, last_seen = $5
		WHERE id = $1 AND run = $2 AND execution = $3 AND state = 'active'`
	return write(ctx, s.writer, len(tokens), func(t *tx) ([]job.Token, error) {
		var stale []job.Token
		for _, token := range tokens {
			n, err := t.exec(update, token.ID, token.Run, token.Execution, micros(until), micros(now))
			if err != nil {
				return nil, fmt.Errorf("extend the lease of job %s: %w", token.ID, err)
			}
			if n == 0 {
				stale = append(stale, token)
			}
		}
		return stale, nil
	})
}
