package operations

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
)

// Start lets an operation run whose preview a person has seen.
func (b *Book) Start(ctx context.Context, now time.Time, id int64, pace operation.Pace, by audit.Actor) (operation.Operation, error) {
	return b.change(ctx, id, "started", []operation.State{operation.Preview}, func(t *db.Tx, o operation.Operation) error {
		return b.start(t, o, pace, now, by)
	})
}

// Pause stops an operation where it is, until somebody resumes it.
func (b *Book) Pause(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return b.change(ctx, id, "paused", []operation.State{operation.Running}, func(t *db.Tx, o operation.Operation) error {
		_, err := b.pause(t, o, "paused by "+audit.Name(by.Name), now, by)
		return err
	})
}

// Resume lets an operation go on. Its guard looks from here on.
func (b *Book) Resume(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return b.change(ctx, id, "resumed", []operation.State{operation.Paused}, func(t *db.Tx, o operation.Operation) error {
		o.State, o.Why, o.ResumedAt = operation.Running, "", now
		if err := b.save(t, operation.Paused, o); err != nil {
			return err
		}
		return b.log.Log(t, entry(o, "operation.resume", now, by))
	})
}

// SetRate changes how fast the rest of an operation goes.
func (b *Book) SetRate(ctx context.Context, now time.Time, id int64, pace operation.Pace, by audit.Actor) (operation.Operation, error) {
	open := []operation.State{operation.Preview, operation.Running, operation.Paused}
	return b.change(ctx, id, "changed", open, func(t *db.Tx, o operation.Operation) error {
		before := o.Pace
		o.Pace.Rate, o.Pace.Spread = pace.Over(o.Pending), pace.Spread
		if err := b.save(t, o.State, o); err != nil {
			return err
		}
		e := entry(o, "operation.rate", now, by)
		e.Before, e.After = before.String(), o.Pace.String()
		return b.log.Log(t, e)
	})
}

// Abort ends an operation: what is not done is left as it is.
func (b *Book) Abort(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	open := []operation.State{operation.Collecting, operation.Preview, operation.Running, operation.Paused}
	return b.change(ctx, id, "aborted", open, func(t *db.Tx, o operation.Operation) error {
		return b.abort(t, o, "aborted by "+audit.Name(by.Name), now, by)
	})
}

// change does something to an operation that is in one of the states,
// and returns it as it is then. In another state it is a *job.Conflict.
func (b *Book) change(ctx context.Context, id int64, done string, in []operation.State, act func(*db.Tx, operation.Operation) error) (operation.Operation, error) {
	return db.Write(ctx, b.writer, 1, func(t *db.Tx) (operation.Operation, error) {
		o, err := byID(t, id)
		if err != nil {
			return o, err
		}
		for _, state := range in {
			if o.State == state {
				if err := act(t, o); err != nil {
					return o, err
				}
				return byID(t, id)
			}
		}
		return o, &job.Conflict{Problem: fmt.Sprintf("operation %d is %s; it can no longer be %s", id, o.State, done)}
	})
}

// start lets an operation run that has its scope. One without anything
// to do is finished.
func (b *Book) start(t *db.Tx, o operation.Operation, pace operation.Pace, now time.Time, by audit.Actor) error {
	was := o.State
	o.Pace = pace.Settle(o.Kind, o.Pending)
	o.State, o.StartedAt, o.ResumedAt, o.StartedBy = operation.Running, now, now, by.Name
	if err := b.save(t, was, o); err != nil {
		return err
	}
	e := entry(o, "operation.start", now, by)
	e.After = o.Pace.String()
	if err := b.log.Log(t, e); err != nil || o.Pending > 0 {
		return err
	}
	_, err := b.worked(t, o, now)
	return err
}

func (b *Book) pause(t *db.Tx, o operation.Operation, why string, now time.Time, by audit.Actor) (operation.Operation, error) {
	o.State, o.Why = operation.Paused, why
	if err := b.save(t, operation.Running, o); err != nil {
		return o, err
	}
	e := entry(o, "operation.pause", now, by)
	e.After = why
	return o, b.log.Log(t, e)
}

func (b *Book) abort(t *db.Tx, o operation.Operation, why string, now time.Time, by audit.Actor) error {
	was := o.State
	o.State, o.Why, o.FinishedAt = operation.Aborted, why, now
	if err := b.save(t, was, o); err != nil {
		return err
	}
	e := entry(o, "operation.abort", now, by)
	e.Before, e.After = string(was), why
	return b.log.Log(t, e)
}

// Expire ends previews that nobody started within an hour: their
// scope says less and less about what is. It returns when the next one ends,
// zero when there is none.
func (b *Book) Expire(ctx context.Context, now time.Time) (next time.Time, err error) {
	const query = `SELECT ` + columns + ` FROM operations
		WHERE state IN ('collecting', 'preview', 'running', 'paused') AND state = 'preview' ORDER BY created_at`
	waiting, err := list(b.reader.In(ctx), query)
	if err != nil {
		return time.Time{}, err
	}
	for _, o := range waiting {
		if at := o.CreatedAt.Add(operation.PreviewFor); at.After(now) {
			return at, nil
		}
		err := b.writer.Do(ctx, 1, func(t *db.Tx) error {
			o, err := byID(t, o.ID)
			if err != nil || o.State != operation.Preview {
				return err
			}
			return b.abort(t, o, "never started", now, audit.Actor{Name: "the clock"})
		})
		if err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, nil
}

// FailItem gives the next item of a running operation up, because its step
// fails for its own fault, so that the others can go on.
func (b *Book) FailItem(ctx context.Context, now time.Time, id int64, why string) error {
	const update = `UPDATE operation_items SET state = 'failed', why = $3, at = $4 WHERE operation_id = $1 AND n = $2 AND state = 'pending'`
	return b.writer.Do(ctx, 1, func(t *db.Tx) error {
		o, err := byID(t, id)
		if err != nil || o.State != operation.Running {
			return err
		}
		items, err := b.nextItems(t, id, 1)
		if err != nil || len(items) == 0 {
			return err
		}
		if err := t.ExecExactly(1, update, id, items[0].n, clip.Text(why, job.MaxNote), db.Micros(now)); err != nil {
			return err
		}
		o.Pending--
		o.Failed++
		_, err = b.worked(t, o, now)
		return err
	})
}

// Breakdown tells what an operation's scope is made of.
func (b *Book) Breakdown(ctx context.Context, id int64) (made operation.Breakdown, err error) {
	const (
		scope = `SELECT queue, type, n FROM operation_scope WHERE operation_id = $1 ORDER BY n DESC, queue, type LIMIT 50`
		skips = `SELECT code, n FROM operation_skips WHERE operation_id = $1 ORDER BY n DESC, code`
	)
	src := b.reader.In(ctx)
	err = src.Query(scope, func(rows *sql.Rows) error {
		var p operation.ScopePart
		err := rows.Scan(&p.Queue, &p.Type, &p.Count)
		made.Scope = append(made.Scope, p)
		return err
	}, id)
	if err != nil {
		return made, err
	}
	err = src.Query(skips, func(rows *sql.Rows) error {
		var c operation.SkipCount
		err := rows.Scan(&c.Code, &c.Count)
		made.Skips = append(made.Skips, c)
		return err
	}, id)
	if err != nil {
		return made, err
	}
	first, err := b.Items(ctx, id, operation.ItemFilter{State: operation.ItemSkipped}, 0, previewedSkips)
	made.Skipped = first.Items
	return made, err
}

// previewedSkips is how many of the jobs that are skipped a preview names.
const previewedSkips = 25
