package operations

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
)

// columns are those of an operation in the order in which scan
// reads them.
const columns = `id, kind, state, why, filter, source, until, start, rate, spread, canary, canary_at, guard,
	created_at, created_by, started_at, started_by, resumed_at, finished_at,
	total, pending, done, skipped, failed, succeeded, relapsed, dropped, key`

func scan(rows *sql.Rows, extra ...any) (o operation.Operation, err error) {
	var until, spread, canaryAt, created, started, resumed, finished int64
	err = rows.Scan(append([]any{&o.ID, &o.Kind, &o.State, &o.Why, &o.Filter, &o.Source, &until, &o.Start, &o.Pace.Rate, &spread,
		&o.Pace.Canary, &canaryAt, &o.Pace.Guard, &created, &o.CreatedBy, &started, &o.StartedBy, &resumed, &finished,
		&o.Total, &o.Pending, &o.Done, &o.Skipped, &o.Failed, &o.Succeeded, &o.Relapsed, &o.Dropped, &o.Key}, extra...)...)
	o.Until, o.Pace.Spread, o.CanaryAt = db.FromMicros(until), time.Duration(spread)*time.Microsecond, db.FromMicros(canaryAt)
	o.CreatedAt, o.StartedAt, o.ResumedAt = db.FromMicros(created), db.FromMicros(started), db.FromMicros(resumed)
	o.FinishedAt = db.FromMicros(finished)
	return o, err
}

func list(src db.Source, query string, args ...any) (all []operation.Operation, err error) {
	err = src.Query(query, func(rows *sql.Rows) error {
		o, err := scan(rows)
		all = append(all, o)
		return err
	}, args...)
	return all, err
}

func byID(src db.Source, id int64) (operation.Operation, error) {
	const query = `SELECT ` + columns + ` FROM operations WHERE id = $1`
	all, err := list(src, query, id)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("operation %d: %w", id, job.ErrNotFound)
	}
	if err != nil {
		return operation.Operation{}, err
	}
	return all[0], nil
}

// Get returns an operation, or job.ErrNotFound.
func (b *Book) Get(ctx context.Context, id int64) (operation.Operation, error) {
	return byID(b.reader.In(ctx), id)
}

// List returns a page of operations, the newest first, from the one with
// the number before on; 0 is the beginning.
func (b *Book) List(ctx context.Context, before int64, limit int) (operation.List, error) {
	const query = `SELECT ` + columns + ` FROM operations WHERE CAST($1 AS BIGINT) = 0 OR id < $1 ORDER BY id DESC LIMIT $2 + 0`
	all, err := list(b.reader.In(ctx), query, before, limit+1)
	list := operation.List{Operations: all}
	if err == nil && len(all) > limit {
		list.Operations = all[:limit]
		list.Next = all[limit-1].ID
	}
	return list, err
}

// Unfinished returns the operations that have not ended, the oldest first.
func (b *Book) Unfinished(ctx context.Context) ([]operation.Operation, error) {
	const query = `SELECT ` + columns + ` FROM operations
		WHERE state IN ('collecting', 'preview', 'running', 'paused') ORDER BY id`
	return list(b.reader.In(ctx), query)
}

// New writes down that somebody wants to act on many jobs. The scope of
// a filter is collected afterwards; jobs that are named become items here, and
// those that do not fit are skipped. A repeat of an idempotency key returns the
// first operation, of a key for another kind of operation a *job.Conflict. What is
// asked for must be valid: nothing is checked here but what other operations say.
func (b *Book) New(ctx context.Context, now time.Time, n operation.Request, by audit.Actor) (operation.Operation, error) {
	return db.Write(ctx, b.writer, 1+len(n.Named), func(t *db.Tx) (operation.Operation, error) {
		if first, ok, err := b.repeated(t, n.Key); ok || err != nil {
			if err == nil && (first.Kind != n.Kind || first.Source != n.Relapsed || (first.Filter == "") != n.Filter.Zero()) {
				err = &job.Conflict{Problem: fmt.Sprintf("the idempotency key was used for operation %d, which is another; send a new key", first.ID)}
			}
			return first, err
		}
		if err := b.checkSource(t, n); err != nil {
			return operation.Operation{}, err
		}
		o := operation.Operation{
			Kind: n.Kind, State: operation.Collecting, Source: n.Relapsed, Until: now, Start: n.Start, Pace: n.Pace,
			CreatedAt: now, CreatedBy: by.Name, Key: n.Key,
		}
		if !n.Filter.Zero() {
			o.Filter = n.Filter.String()
		}
		var err error
		if o.ID, err = b.insert(t, o); err != nil {
			return operation.Operation{}, err
		}
		if err := b.log.Log(t, entry(o, "operation.new", now, by)); err != nil || len(n.Named) == 0 {
			return o, err
		}
		return b.collectNamed(t, o, n.Named, now)
	})
}

// repeated is the operation that was made with the key before.
func (b *Book) repeated(t *db.Tx, key string) (o operation.Operation, ok bool, err error) {
	const query = `SELECT ` + columns + ` FROM operations WHERE key = $1 AND key <> ''`
	all, err := list(t, query, key)
	if err != nil || len(all) == 0 {
		return operation.Operation{}, false, err
	}
	all[0].Repeat = true
	return all[0], true, nil
}

// checkSource refuses the relapses of an operation that is not there or has
// none.
func (b *Book) checkSource(t *db.Tx, n operation.Request) error {
	if n.Relapsed == 0 {
		return nil
	}
	source, err := byID(t, n.Relapsed)
	if err != nil {
		return err
	}
	if source.Relapsed == 0 {
		return &job.Conflict{Problem: fmt.Sprintf("no job that operation %d replayed has failed again", source.ID)}
	}
	pruned, err := itemless(t, source.ID)
	if err == nil && pruned {
		err = &job.Conflict{Problem: fmt.Sprintf("operation %d ended so long ago that its items were removed; use a filter", source.ID)}
	}
	return err
}

func (b *Book) insert(t *db.Tx, o operation.Operation) (id int64, err error) {
	const insert = `INSERT INTO operations (kind, state, filter, source, until, cursor, start, rate, spread, canary, guard,
			created_at, created_by, key)
		VALUES ($1, $2, $3, $4, $5, '', $6, $7, $8, $9, $10, $11, $12, $13) RETURNING id`
	err = t.Query(insert, func(rows *sql.Rows) error { return rows.Scan(&id) },
		string(o.Kind), string(o.State), o.Filter, o.Source, db.Micros(o.Until), o.Start, o.Pace.Rate, o.Pace.Spread.Microseconds(),
		o.Pace.Canary, o.Pace.Guard, db.Micros(o.CreatedAt), o.CreatedBy, o.Key)
	if err != nil {
		return 0, fmt.Errorf("store the operation: %w", err)
	}
	b.changed(t, "", o.State)
	return id, nil
}

// save writes what changes of an operation that was in another state,
// or in the same.
func (b *Book) save(t *db.Tx, was operation.State, o operation.Operation) error {
	const update = `UPDATE operations SET state = $2, why = $3, rate = $4, spread = $5, canary = $6, canary_at = $7, guard = $8,
		started_at = $9, started_by = $10, resumed_at = $11, finished_at = $12,
		total = $13, pending = $14, done = $15, skipped = $16, failed = $17 WHERE id = $1`
	err := t.ExecExactly(1, update, o.ID, string(o.State), o.Why, o.Pace.Rate, o.Pace.Spread.Microseconds(), o.Pace.Canary,
		db.Micros(o.CanaryAt), o.Pace.Guard, db.Micros(o.StartedAt), o.StartedBy, db.Micros(o.ResumedAt), db.Micros(o.FinishedAt),
		o.Total, o.Pending, o.Done, o.Skipped, o.Failed)
	if err != nil {
		return fmt.Errorf("write operation %d: %w", o.ID, err)
	}
	b.changed(t, was, o.State)
	return nil
}

// entry is the line of the audit log about an operation.
func entry(o operation.Operation, action string, now time.Time, by audit.Actor) audit.Entry {
	return audit.Entry{
		At: now, Actor: by, Action: action, Subject: operation.Subject(o.ID), Filter: o.Filter, Count: o.Total, After: string(o.State),
	}
}

// Log is what was written about an operation in the audit log, the
// newest first.
func (b *Book) Log(ctx context.Context, id int64) (all []audit.Entry, err error) {
	const query = `SELECT seq, at, actor, address, action, filter, count, before, after FROM audit
		WHERE subject = $1 ORDER BY seq DESC LIMIT 50`
	err = b.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		e := audit.Entry{Subject: operation.Subject(id)}
		var at int64
		err := rows.Scan(&e.Seq, &at, &e.Actor.Name, &e.Actor.Address, &e.Action, &e.Filter, &e.Count, &e.Before, &e.After)
		e.At = db.FromMicros(at)
		all = append(all, e)
		return err
	}, operation.Subject(id))
	return all, err
}
