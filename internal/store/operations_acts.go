package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/operation"
)

// StartOperation lets an operation run whose preview a person has seen.
func (s *Store) StartOperation(ctx context.Context, now time.Time, id int64, pace operation.Pace, by audit.Actor) (operation.Operation, error) {
	return s.actOnOperation(ctx, id, "started", []operation.State{operation.Preview}, func(t *tx, o operation.Operation) error {
		return t.startOperation(o, pace, now, by)
	})
}

// PauseOperation stops an operation where it is, until somebody resumes it.
func (s *Store) PauseOperation(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return s.actOnOperation(ctx, id, "paused", []operation.State{operation.Running}, func(t *tx, o operation.Operation) error {
		_, err := t.pauseOperation(o, "paused by "+name(by.Name), now, by)
		return err
	})
}

// ResumeOperation lets an operation go on. Its guard looks from here on.
func (s *Store) ResumeOperation(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return s.actOnOperation(ctx, id, "resumed", []operation.State{operation.Paused}, func(t *tx, o operation.Operation) error {
		o.State, o.Why, o.ResumedAt = operation.Running, "", now
		if err := t.saveOperation(operation.Paused, o); err != nil {
			return err
		}
		return t.audit(bulkEntry(o, "operation.resume", now, by))
	})
}

// SetRate changes how fast the rest of an operation goes.
func (s *Store) SetRate(ctx context.Context, now time.Time, id int64, pace operation.Pace, by audit.Actor) (operation.Operation, error) {
	open := []operation.State{operation.Preview, operation.Running, operation.Paused}
	return s.actOnOperation(ctx, id, "changed", open, func(t *tx, o operation.Operation) error {
		before := o.Pace
		o.Pace.Rate, o.Pace.Spread = pace.Over(o.Pending), pace.Spread
		if err := t.saveOperation(o.State, o); err != nil {
			return err
		}
		e := bulkEntry(o, "operation.rate", now, by)
		e.Before, e.After = before.String(), o.Pace.String()
		return t.audit(e)
	})
}

// AbortOperation ends an operation: what is not done is left as it is.
func (s *Store) AbortOperation(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	open := []operation.State{operation.Collecting, operation.Preview, operation.Running, operation.Paused}
	return s.actOnOperation(ctx, id, "aborted", open, func(t *tx, o operation.Operation) error {
		return t.abortOperation(o, "aborted by "+name(by.Name), now, by)
	})
}

// actOnOperation does something to an operation that is in one of the states,
// and returns it as it is then. In another state it is a *job.Conflict.
func (s *Store) actOnOperation(ctx context.Context, id int64, done string, in []operation.State, act func(*tx, operation.Operation) error) (operation.Operation, error) {
	return write(ctx, s.writer, 1, func(t *tx) (operation.Operation, error) {
		o, err := operationByID(t, id)
		if err != nil {
			return o, err
		}
		for _, state := range in {
			if o.State == state {
				if err := act(t, o); err != nil {
					return o, err
				}
				return operationByID(t, id)
			}
		}
		return o, &job.Conflict{Problem: fmt.Sprintf("operation %d is %s; it can no longer be %s", id, o.State, done)}
	})
}

// startOperation lets an operation run that has its scope. One without anything
// to do is finished.
func (t *tx) startOperation(o operation.Operation, pace operation.Pace, now time.Time, by audit.Actor) error {
	was := o.State
	o.Pace = pace.Settle(o.Kind, o.Pending)
	o.State, o.StartedAt, o.ResumedAt, o.StartedBy = operation.Running, now, now, by.Name
	if err := t.saveOperation(was, o); err != nil {
		return err
	}
	e := bulkEntry(o, "operation.start", now, by)
	e.After = o.Pace.String()
	if err := t.audit(e); err != nil || o.Pending > 0 {
		return err
	}
	_, err := t.worked(o, now)
	return err
}

func (t *tx) pauseOperation(o operation.Operation, why string, now time.Time, by audit.Actor) (operation.Operation, error) {
	o.State, o.Why = operation.Paused, why
	if err := t.saveOperation(operation.Running, o); err != nil {
		return o, err
	}
	e := bulkEntry(o, "operation.pause", now, by)
	e.After = why
	return o, t.audit(e)
}

func (t *tx) abortOperation(o operation.Operation, why string, now time.Time, by audit.Actor) error {
	was := o.State
	o.State, o.Why, o.FinishedAt = operation.Aborted, why, now
	if err := t.saveOperation(was, o); err != nil {
		return err
	}
	e := bulkEntry(o, "operation.abort", now, by)
	e.Before, e.After = string(was), why
	return t.audit(e)
}

// ExpireOperations ends previews that nobody started within an hour: their
// scope says less and less about what is. It returns when the next one ends,
// zero when there is none.
func (s *Store) ExpireOperations(ctx context.Context, now time.Time) (next time.Time, err error) {
	const query = `SELECT ` + operationColumns + ` FROM operations
		WHERE state IN ('collecting', 'preview', 'running', 'paused') AND state = 'preview' ORDER BY created_at`
	waiting, err := operations(s.reading(ctx), query)
	if err != nil {
		return time.Time{}, err
	}
	for _, o := range waiting {
		if at := o.CreatedAt.Add(operation.PreviewFor); at.After(now) {
			return at, nil
		}
		_, err := write(ctx, s.writer, 1, func(t *tx) (struct{}, error) {
			o, err := operationByID(t, o.ID)
			if err != nil || o.State != operation.Preview {
				return struct{}{}, err
			}
			return struct{}{}, t.abortOperation(o, "never started", now, audit.Actor{Name: "the clock"})
		})
		if err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, nil
}

// FailItem gives the next item of a running operation up, because its step
// fails for its own fault, so that the others can go on.
func (s *Store) FailItem(ctx context.Context, now time.Time, id int64, why string) error {
	const update = `UPDATE operation_items SET state = 'failed', why = $3, at = $4 WHERE operation_id = $1 AND n = $2 AND state = 'pending'`
	_, err := write(ctx, s.writer, 1, func(t *tx) (struct{}, error) {
		o, err := operationByID(t, id)
		if err != nil || o.State != operation.Running {
			return struct{}{}, err
		}
		items, err := t.nextItems(id, 1)
		if err != nil || len(items) == 0 {
			return struct{}{}, err
		}
		n, err := t.exec(update, id, items[0].n, clip.Text(why, job.MaxNote), micros(now))
		if err := expect(1, n, err); err != nil {
			return struct{}{}, err
		}
		o.Pending--
		o.Failed++
		_, err = t.worked(o, now)
		return struct{}{}, err
	})
	return err
}

// Breakdown tells what an operation's scope is made of.
func (s *Store) Breakdown(ctx context.Context, id int64) (b operation.Breakdown, err error) {
	const (
		scope = `SELECT queue, type, n FROM operation_scope WHERE operation_id = $1 ORDER BY n DESC, queue, type LIMIT 50`
		skips = `SELECT code, n FROM operation_skips WHERE operation_id = $1 ORDER BY n DESC, code`
	)
	src := s.reading(ctx)
	err = src.query(scope, func(rows *sql.Rows) error {
		var p operation.ScopePart
		err := rows.Scan(&p.Queue, &p.Type, &p.Count)
		b.Scope = append(b.Scope, p)
		return err
	}, id)
	if err != nil {
		return b, err
	}
	err = src.query(skips, func(rows *sql.Rows) error {
		var c operation.SkipCount
		err := rows.Scan(&c.Code, &c.Count)
		b.Skips = append(b.Skips, c)
		return err
	}, id)
	if err != nil {
		return b, err
	}
	first, err := s.Items(ctx, id, operation.ItemFilter{State: operation.ItemSkipped}, 0, previewedSkips)
	b.Skipped = first.Items
	return b, err
}

// previewedSkips is how many of the jobs that are skipped a preview names.
const previewedSkips = 25
