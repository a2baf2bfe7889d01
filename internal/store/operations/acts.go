package operations

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
)

// New writes down that a caller wants to act on many jobs. The scope of
// a filter is collected afterwards; jobs that are named become items here, and
// those that do not fit are skipped. A repeat under its caller's idempotency key
// returns the first operation; a key that was used for another one is a
// *job.KeyReused. What is asked for must be valid: nothing is checked here but what other operations say.
func (p *Projection) New(ctx context.Context, now time.Time, n operation.Request, by audit.Actor) (operation.Operation, error) {
	return db.Write(ctx, p.writer, 1+len(n.Named), func(t *db.Tx) (operation.Operation, error) {
		if first, ok, err := p.repeated(t, n); ok || err != nil {
			return first, err
		}

		if err := p.checkSource(t, n); err != nil {
			return operation.Operation{}, err
		}

		// Until bounds the scope: what fails from now on is not in it.
		o := operation.Operation{
			Kind: n.Kind, State: operation.Collecting, Source: n.Relapsed, Until: now, Start: n.Start, Pace: n.Pace,
			CreatedAt: now, CreatedBy: by.Name,
		}
		if !n.Filter.Zero() {
			o.Filter = n.Filter.String()
		}

		var err error

		o.ID, err = p.insert(t, o, n)
		if err != nil {
			return operation.Operation{}, err
		}

		if err := p.log.Log(t, entry(o, "operation.new", now, by)); err != nil || len(n.Named) == 0 {
			return o, err
		}

		return p.collectNamed(t, o, n.Named, now)
	})
}

// repeated is the operation that was made before with the key of a request. A key
// that was stored before callers were recorded counts as every caller's, and what it
// tells of its content is what the operation does.
func (p *Projection) repeated(t *db.Tx, n operation.Request) (first operation.Operation, ok bool, err error) {
	// The key of the caller comes before one that was stored without a caller.
	const query = `SELECT ` + columns + `, key_content FROM operations
		WHERE key = $1 AND key <> '' AND (key_caller = $2 OR key_caller IS NULL) ORDER BY key_caller IS NULL LIMIT 1`
	var content string

	ok, err = db.Row(t, query, append(fields(&first), &content), n.Key, n.Caller)
	if !ok || err != nil {
		return operation.Operation{}, false, err
	}

	// An earlier version kept no content: then what was asked for has to be the same.
	same := content == n.Content
	if content == "" || n.Content == "" {
		same = first.Kind == n.Kind && first.Source == n.Relapsed && (first.Filter == "") == n.Filter.Zero()
	}

	if !same {
		return operation.Operation{}, false, &job.KeyReused{First: strconv.FormatInt(first.ID, 10)}
	}

	first.Repeat = true

	return first, true, nil
}

// checkSource refuses the relapses of an operation that is not there or has
// none.
func (p *Projection) checkSource(t *db.Tx, n operation.Request) error {
	if n.Relapsed == 0 {
		return nil
	}

	// Its relapses are read from its items, which are removed after a time.
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

// insert stores a new operation, whose scope is not known yet, and returns its
// number.
func (p *Projection) insert(t *db.Tx, o operation.Operation, n operation.Request) (id int64, err error) {
	const insert = `INSERT INTO operations (kind, state, filter, source, until, cursor, start, rate, spread, canary, guard,
			created_at, created_by, key, key_caller, key_content)
		VALUES ($1, $2, $3, $4, $5, '', $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING id`
	id, err = db.Value[int64](t, insert, string(o.Kind), string(o.State), o.Filter, o.Source, db.Micros(o.Until), o.Start,
		o.Pace.Rate, o.Pace.Spread.Microseconds(), o.Pace.Canary, o.Pace.Guard, db.Micros(o.CreatedAt), o.CreatedBy, n.Key, n.Caller, n.Content)
	p.changed(t, "", o.State)

	return id, db.Wrap(err, "store the operation")
}

// save writes what changes of an operation that was in another state,
// or in the same.
func (p *Projection) save(t *db.Tx, was operation.State, o operation.Operation) error {
	const update = `UPDATE operations SET state = $2, why = $3, rate = $4, spread = $5, canary = $6, canary_at = $7, guard = $8,
		started_at = $9, started_by = $10, resumed_at = $11, finished_at = $12,
		position = $13, total = $14, pending = $15, done = $16, skipped = $17, failed = $18, guarded = $19, sift = $20 WHERE id = $1`
	err := t.ExecExactly(1, update, o.ID, string(o.State), o.Why, o.Pace.Rate, o.Pace.Spread.Microseconds(), o.Pace.Canary,
		db.Micros(o.CanaryAt), o.Pace.Guard, db.Micros(o.StartedAt), o.StartedBy, db.Micros(o.ResumedAt), db.Micros(o.FinishedAt),
		o.Position, o.Total, o.Pending, o.Done, o.Skipped, o.Failed, o.Guarded, o.Sift)
	p.changed(t, was, o.State)

	return db.Wrap(err, "write operation %d", o.ID)
}

// record saves an operation, and writes an entry of the audit log about it.
func (p *Projection) record(t *db.Tx, was operation.State, o operation.Operation, e audit.Entry) error {
	if err := p.save(t, was, o); err != nil {
		return err
	}
	return p.log.Log(t, e)
}

// entry is the line of the audit log about an operation.
func entry(o operation.Operation, action string, now time.Time, by audit.Actor) audit.Entry {
	return audit.Entry{
		At: now, Actor: by, Action: action, Subject: operation.Subject(o.ID), Filter: o.Filter, Count: o.Total, After: string(o.State),
	}
}

// changed counts the operations that are under way, and notes that one changed or ended.
func (p *Projection) changed(t *db.Tx, was, is operation.State) {
	underWay := func(s operation.State) int64 {
		if s == operation.Collecting || s == operation.Running || s == operation.Paused {
			return 1
		}
		return 0
	}

	changes := p.changes.In(t)
	changes.underWay += underWay(is) - underWay(was)
	if was == operation.Running || was == operation.Paused {
		changes.ended = changes.ended || is == operation.Finished || is == operation.Aborted
	}

	t.Touch()
}

// Start lets an operation run whose preview a person has seen.
func (p *Projection) Start(ctx context.Context, now time.Time, id int64, pace operation.Pace, by audit.Actor) (operation.Operation, error) {
	return p.change(ctx, id, "started", func(t *db.Tx, o operation.Operation) error { return p.start(t, o, pace, now, by) },
		operation.Preview)
}

// Pause stops an operation where it is, until a person resumes it.
func (p *Projection) Pause(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return p.change(ctx, id, "paused", func(t *db.Tx, o operation.Operation) error {
		_, err := p.pause(t, o, "paused by "+audit.Name(by.Name), now, by)
		return err
	}, operation.Running)
}

// Resume lets an operation go on. Its guard looks from here on.
func (p *Projection) Resume(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return p.change(ctx, id, "resumed", func(t *db.Tx, o operation.Operation) error {
		o.State, o.Why = operation.Running, ""
		o.ResumedAt, o.Guarded = now, false
		return p.record(t, operation.Paused, o, entry(o, "operation.resume", now, by))
	}, operation.Paused)
}

// SetRate changes how fast the rest of an operation goes.
func (p *Projection) SetRate(
	ctx context.Context, now time.Time, id int64, pace operation.Pace, by audit.Actor,
) (operation.Operation, error) {
	return p.change(ctx, id, "changed", func(t *db.Tx, o operation.Operation) error {
		if o.Sift > 0 && pace.Spread > 0 { // over how many is not known yet
			return &job.Conflict{Problem: fmt.Sprintf("operation %d is leaving out the causes that did not pass; try again when it has", id)}
		}

		before := o.Pace
		o.Pace.Rate, o.Pace.Spread = pace.Over(o.Pending), pace.Spread
		e := entry(o, "operation.rate", now, by)
		e.Before, e.After = before.String(), o.Pace.String()

		return p.record(t, o.State, o, e)
	}, operation.Preview, operation.Running, operation.Paused)
}

// Abort ends an operation: what is not done is left as it is.
func (p *Projection) Abort(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return p.change(ctx, id, "aborted", func(t *db.Tx, o operation.Operation) error {
		return p.abort(t, o, "aborted by "+audit.Name(by.Name), now, by)
	}, operation.Collecting, operation.Preview, operation.Running, operation.Paused)
}

// change does something to an operation that is in one of the states, and
// returns it as it is then. In another state it is a *job.Conflict.
func (p *Projection) change(
	ctx context.Context, id int64, done string, act func(*db.Tx, operation.Operation) error, in ...operation.State,
) (operation.Operation, error) {
	return db.Write(ctx, p.writer, 1, func(t *db.Tx) (operation.Operation, error) {
		o, err := byID(t, id)
		if err != nil {
			return o, err
		}

		if !slices.Contains(in, o.State) {
			return o, &job.Conflict{Problem: fmt.Sprintf("operation %d is %s; it can no longer be %s", id, o.State, done)}
		}

		if err := act(t, o); err != nil {
			return o, err
		}

		return byID(t, id)
	})
}

// start lets an operation run that has its scope. One without anything
// to do is finished.
func (p *Projection) start(t *db.Tx, o operation.Operation, pace operation.Pace, now time.Time, by audit.Actor) error {
	was := o.State

	o.Pace = pace.Settle(o.Kind, o.Pending, o.Causes)

	o.State, o.StartedAt = operation.Running, now
	o.ResumedAt, o.StartedBy = now, by.Name
	if err := p.bringForward(t, o); err != nil {
		return err
	}

	e := entry(o, "operation.start", now, by)
	e.After = o.Pace.String()
	if err := p.record(t, was, o, e); err != nil || o.Pending > 0 {
		return err
	}

	_, err := p.worked(t, o, now)

	return err
}

// pause stops a running operation for a reason, which the audit log repeats.
func (p *Projection) pause(t *db.Tx, o operation.Operation, why string, now time.Time, by audit.Actor) (operation.Operation, error) {
	o.State, o.Why = operation.Paused, why
	e := entry(o, "operation.pause", now, by)
	e.After = why
	return o, p.record(t, operation.Running, o, e)
}

// abort ends an operation for a reason. Its pending items stay as they are.
func (p *Projection) abort(t *db.Tx, o operation.Operation, why string, now time.Time, by audit.Actor) error {
	was := o.State
	o.State, o.Why = operation.Aborted, why
	o.FinishedAt, o.Guarded = now, false
	e := entry(o, "operation.abort", now, by)
	e.Before, e.After = string(was), why

	return p.record(t, was, o, e)
}

// Expire ends previews that no one started within an hour: their scope says
// less and less about the jobs as they are. It returns when the next one ends,
// zero when there is none.
func (p *Projection) Expire(ctx context.Context, now time.Time) (next time.Time, err error) {
	const query = `SELECT ` + columns + ` FROM operations
		WHERE state IN ('collecting', 'preview', 'running', 'paused') AND state = 'preview' ORDER BY created_at`

	waiting, err := selectOperations(p.reader.In(ctx), query)
	if err != nil {
		return time.Time{}, err
	}

	for _, o := range waiting {
		// The oldest come first: the first one that still has time is the next to end.
		if at := o.CreatedAt.Add(operation.PreviewFor); at.After(now) {
			return at, nil
		}

		err := p.writer.Do(ctx, 1, func(t *db.Tx) error {
			// Read again: a person may have started it meanwhile.
			o, err := byID(t, o.ID)
			if err != nil || o.State != operation.Preview {
				return err
			}

			return p.abort(t, o, "never started", now, audit.Actor{Name: "the clock"})
		})
		if err != nil {
			return time.Time{}, err
		}
	}

	return time.Time{}, nil
}

// FailItem gives the next item of a running operation up, because its step
// fails for its own fault, so that the others can go on.
func (p *Projection) FailItem(ctx context.Context, now time.Time, id int64, why string) error {
	const update = `UPDATE operation_items SET state = 'failed', why = $3, at = $4 WHERE operation_id = $1 AND n = $2 AND state = 'pending'`

	return p.writer.Do(ctx, 1, func(t *db.Tx) error {
		// A person may have paused or aborted the operation meanwhile.
		o, err := byID(t, id)
		if err != nil || o.State != operation.Running || o.Sift > 0 {
			return err
		}

		items, err := p.nextItems(t, o, 1)
		if err != nil || len(items) == 0 {
			return err
		}

		if err := t.ExecExactly(1, update, id, items[0].n, clip.Text(why, job.MaxNote), db.Micros(now)); err != nil {
			return err
		}

		o.Position = items[0].n
		o.Pending--
		o.Failed++
		_, err = p.worked(t, o, now)

		return err
	})
}
