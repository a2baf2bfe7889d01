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

// New makes an operation, which acts on many jobs, and writes the audit log. The caller has
// checked the request, apart from what the database says about other operations.
//
// The jobs of a filter, or the relapses of another operation, are collected afterwards (see
// Collect). Jobs that the request names become items at once, and those that do not fit are
// skipped; the operation is then a preview, or runs if the request says so.
//
// A request that repeats the idempotency key of its caller returns the operation that was made
// first. If that was made by a different request, the error is a *job.KeyReused.
func (p *Projection) New(ctx context.Context, now time.Time, n operation.Request, by audit.Actor) (operation.Operation, error) {
	return db.Write(ctx, p.writer, 1+len(n.Named), func(t *db.Tx) (operation.Operation, error) {
		if first, ok, err := p.repeated(t, n); ok || err != nil {
			return first, err
		}

		if err := p.checkRelapsed(t, n); err != nil {
			return operation.Operation{}, err
		}

		// Store the operation. Until bounds its scope: a job that fails from now on is not in it.
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

		// The scope of named jobs is known already.
		return p.collectNamed(t, o, n.Named, now)
	})
}

// repeated returns the operation that was made before with the key of a request, and whether
// there is one. If that was made by a different request, the error is a *job.KeyReused. A key
// that was stored by a version that did not record callers counts as that of every caller.
func (p *Projection) repeated(t *db.Tx, n operation.Request) (first operation.Operation, ok bool, err error) {
	// The key of the caller comes before one that was stored without a caller.
	const query = `SELECT ` + columns + `, key_content FROM operations
		WHERE key = $1 AND key <> '' AND (key_caller = $2 OR key_caller IS NULL) ORDER BY key_caller IS NULL LIMIT 1`
	var content string

	ok, err = db.Row(t, query, append(fields(&first), &content), n.Key, n.Caller)
	if !ok || err != nil {
		return operation.Operation{}, false, err
	}

	// An earlier version did not store the content of a request. Compare what it asked for.
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

// checkRelapsed checks that the operation whose relapses the request is about exists, has
// relapses, and still has the items that tell which these are. If not, the error is
// job.ErrNotFound or a *job.Conflict.
func (p *Projection) checkRelapsed(t *db.Tx, n operation.Request) error {
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

	// The relapses are read from items, which retention removes in time.
	pruned, err := hasNoItems(t, source.ID)
	if err == nil && pruned {
		err = &job.Conflict{Problem: fmt.Sprintf("operation %d ended so long ago that its items were removed; use a filter", source.ID)}
	}

	return err
}

// insert stores a new operation, which has no items yet, and returns its number.
func (p *Projection) insert(t *db.Tx, o operation.Operation, n operation.Request) (id int64, err error) {
	const insert = `INSERT INTO operations (kind, state, filter, source, until, cursor, start, rate, spread, canary, guard,
			created_at, created_by, key, key_caller, key_content)
		VALUES ($1, $2, $3, $4, $5, '', $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING id`
	id, err = db.Value[int64](t, insert, string(o.Kind), string(o.State), o.Filter, o.Source, db.Micros(o.Until), o.Start,
		o.Pace.Rate, o.Pace.Spread.Microseconds(), o.Pace.Canary, o.Pace.Guard, db.Micros(o.CreatedAt), o.CreatedBy, n.Key, n.Caller, n.Content)
	p.changed(t, "", o.State)

	return id, db.Wrap(err, "store the operation")
}

// save writes the columns of an operation that can change. was is the state that it had before,
// which can be the same.
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

// record saves an operation like save, and adds an entry to the audit log.
func (p *Projection) record(t *db.Tx, was operation.State, o operation.Operation, e audit.Entry) error {
	if err := p.save(t, was, o); err != nil {
		return err
	}
	return p.log.Log(t, e)
}

// entry returns an entry of the audit log about an operation. Its After is the state of the
// operation, which callers replace where something else has changed.
func entry(o operation.Operation, action string, now time.Time, by audit.Actor) audit.Entry {
	return audit.Entry{
		At: now, Actor: by, Action: action, Subject: operation.Subject(o.ID), Filter: o.Filter, Count: o.Total, After: string(o.State),
	}
}

// changed records that an operation went from one state to another: for the count of operations
// that are under way, and for Ended.
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

// Start, Pause, Resume, SetRate, Abort and ResumePassed are what a person does to an operation.
// Each is allowed in certain states, and otherwise returns a *job.Conflict; each writes the audit
// log, and returns the operation as it is then, or job.ErrNotFound.

// Start lets an operation run at a pace after its preview.
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

// Resume lets a paused operation go on. The guard counts only runs that end from now on.
func (p *Projection) Resume(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return p.change(ctx, id, "resumed", func(t *db.Tx, o operation.Operation) error {
		o.State, o.Why = operation.Running, ""
		o.ResumedAt, o.Guarded = now, false
		return p.record(t, operation.Paused, o, entry(o, "operation.resume", now, by))
	}, operation.Paused)
}

// SetRate changes how fast the rest of an operation goes: to a rate, or to a time over which the
// pending items are spread. The canary and the guard in pace are ignored.
func (p *Projection) SetRate(
	ctx context.Context, now time.Time, id int64, pace operation.Pace, by audit.Actor,
) (operation.Operation, error) {
	return p.change(ctx, id, "changed", func(t *db.Tx, o operation.Operation) error {
		// While items are being left out, it is not known over how many to spread.
		if o.Sift > 0 && pace.Spread > 0 {
			return &job.Conflict{Problem: fmt.Sprintf("operation %d is leaving out the causes that did not pass; try again when it has", id)}
		}

		before := o.Pace
		o.Pace.Rate, o.Pace.Spread = pace.Over(o.Pending), pace.Spread
		e := entry(o, "operation.rate", now, by)
		e.Before, e.After = before.String(), o.Pace.String()

		return p.record(t, o.State, o, e)
	}, operation.Preview, operation.Running, operation.Paused)
}

// Abort ends an operation. The jobs whose turn has not come stay as they are.
func (p *Projection) Abort(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return p.change(ctx, id, "aborted", func(t *db.Tx, o operation.Operation) error {
		return p.abort(t, o, "aborted by "+audit.Name(by.Name), now, by)
	}, operation.Collecting, operation.Preview, operation.Running, operation.Paused)
}

// change runs act on an operation that is in one of the states in, and returns the operation as
// it is then. In another state, the error is a *job.Conflict, in which done is the participle of
// the act, such as "paused".
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

// start lets an operation run that has all its items. An operation without pending items is
// finished at once.
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

	_, err := p.endStep(t, o, now)

	return err
}

// pause stops a running operation for a reason, which is also written to the audit log. It
// returns the operation as it is then.
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

// Expire aborts previews that no one has started within operation.PreviewFor, because the jobs
// differ more and more from what the preview shows. It returns when the next preview will
// expire, or zero if there is none.
func (p *Projection) Expire(ctx context.Context, now time.Time) (next time.Time, err error) {
	const query = `SELECT ` + columns + ` FROM operations
		WHERE state IN ('collecting', 'preview', 'running', 'paused') AND state = 'preview' ORDER BY created_at`

	waiting, err := selectOperations(p.reader.In(ctx), query)
	if err != nil {
		return time.Time{}, err
	}

	for _, o := range waiting {
		// The oldest come first, so the first one that still has time is the next to expire.
		if at := o.CreatedAt.Add(operation.PreviewFor); at.After(now) {
			return at, nil
		}

		err := p.writer.Do(ctx, 1, func(t *db.Tx) error {
			// Read the operation again: a person may have started it meanwhile.
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

// FailItem marks the next item of a running operation as failed, so that the operation can go on
// with the others. The caller has found that the item itself is why the step fails. It does
// nothing if the operation is not running or is skipping items (see Sift).
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
		_, err = p.endStep(t, o, now)

		return err
	})
}
