package operations

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
)

// workItem is an item on its way through a transaction.
type workItem struct {
	n     int64
	seq   int64
	run   int
	id    string   // as it was named, when it was
	job   *job.Job // as it was read; nil: not yet, or there is none
	code  operation.Skip
	why   string
	other int64
}

// A step has as many items as it may when no other caller waits for the writer: items
// share the pages that a commit writes. It takes them in chunks, and once another
// caller waits it ends with the chunk in which its time is over.
const (
	itemRows = 4 // that an item writes

	chunk      = 100 // items
	othersWait = 5 * time.Millisecond
)

// Work takes the next items of a running operation, at most n, as far as its
// canary, its guard and others who wait let it, and says how many it worked
// through. An item whose job is no longer what the person saw is skipped, and says
// why. The clock is read when the step has its turn.
func (p *Projection) Work(ctx context.Context, clock func() time.Time, id int64, n int) (operation.Step, error) {
	n = min(n, operation.MaxStep)

	return db.Write(ctx, p.writer, itemRows*min(n, chunk), func(t *db.Tx) (done operation.Step, err error) {
		done.At = clock()
		over := func() bool { return p.writer.Waited() && clock().Sub(done.At) >= othersWait }
		done.Operation, done.Items, err = p.work(t, id, n, done.At, over)
		t.Grew(max(0, done.Items-chunk)) // in the same pages

		return done, err
	})
}

func (p *Projection) work(t *db.Tx, id int64, n int, now time.Time, over func() bool) (o operation.Operation, worked int, err error) {
	o, err = byID(t, id)
	if err != nil || o.State != operation.Running || o.Sift > 0 {
		return o, 0, err
	}

	// A guard that objects pauses the operation before the next item.
	if why, err := p.guarded(t, o); why != "" || err != nil {
		if err == nil {
			o.Guarded = true
			o, err = p.pause(t, o, why, now, audit.Actor{Name: "the guard"})
		}

		return o, 0, err
	}

	// A canary ends a step, so that it can be looked at.
	if o.Pace.Canary > 0 && o.CanaryAt.IsZero() {
		n = min(n, int(o.Pace.Canary-o.Done))
	}

	// Chunk by chunk, as long as no other caller has waited too long.
	for more := true; more && worked < n; more = more && !over() {
		items, err := p.nextItems(t, o, min(chunk, n-worked))
		if err == nil {
			o, err = p.workThrough(t, o, items, now)
		}

		if err != nil {
			return o, 0, fmt.Errorf("operation %d: %w", id, err)
		}

		worked, more = worked+len(items), len(items) == chunk
	}

	o, err = p.worked(t, o, now)

	return o, worked, err
}

// nextItems reads pending items in processing order.
func (p *Projection) nextItems(t *db.Tx, o operation.Operation, n int) ([]workItem, error) {
	const query = `SELECT n, job_seq, run FROM operation_items
		WHERE operation_id = $1 AND n > $2 AND state = 'pending' ORDER BY n LIMIT $3 + 0`
	return db.All(t, query, func(it *workItem) []any { return []any{&it.n, &it.seq, &it.run} }, o.ID, o.Position, n)
}

// workThrough does what the operation is for, and counts it.
func (p *Projection) workThrough(t *db.Tx, o operation.Operation, items []workItem, now time.Time) (operation.Operation, error) {
	if err := p.judge(t, o, items); err != nil {
		return o, err
	}

	// Those that do not fit are skipped; all others are acted on together.
	fit := make([]job.Job, 0, len(items))
	skips := map[operation.Skip]int64{}
	for _, it := range items {
		o.Position = it.n
		o.Pending--
		if it.code != "" {
			skips[it.code]++
			o.Skipped++
			continue
		}

		o.Done++

		fit = append(fit, *it.job)
	}

	return o, db.Steps(t,
		func(t *db.Tx) error { return p.actOn(t, o, fit, now) },
		func(t *db.Tx) error { return p.markItems(t, o.ID, items, now) },
		func(t *db.Tx) error { return p.countPace(t, o, len(fit), now) },
		func(t *db.Tx) error { return p.countScope(t, o.ID, nil, skips) })
}

// actOn does to the jobs what the operation is for. They fit: nothing can have
// changed since they were read in this transaction.
func (p *Projection) actOn(t *db.Tx, o operation.Operation, jobs []job.Job, now time.Time) (err error) {
	if len(jobs) == 0 {
		return nil
	}

	by := audit.Actor{Name: o.StartedBy}
	switch o.Kind {
	case operation.Replay:
		err = p.acts.ReplayAll(t, jobs, now, by, o.ID)
	case operation.Discard:
		err = p.acts.DiscardAll(t, jobs, now, by, o.ID)
	case operation.Restore:
		err = p.acts.RestoreAll(t, jobs)
	default: // unreachable: Kind.Check has refused it
		err = fmt.Errorf("%q is no kind of operation", o.Kind)
	}

	return err
}

// markItems writes down what became of the pending items from the first to the
// last of these: some were skipped, all others are done.
func (p *Projection) markItems(t *db.Tx, id int64, items []workItem, now time.Time) error {
	const skip = `UPDATE operation_items SET state = 'skipped', code = $3, why = $4, other = $5, at = $6
		WHERE operation_id = $1 AND n = $2 AND state = 'pending'`
	const done = `UPDATE OR FAIL operation_items SET state = 'done', at = $4
		WHERE operation_id = $1 AND n BETWEEN $2 AND $3 AND state = 'pending'`

	if len(items) == 0 {
		return nil
	}

	left := len(items)
	for _, it := range items {
		if it.code == "" {
			continue
		}

		if err := t.ExecExactly(1, skip, id, it.n, string(it.code), it.why, it.other, db.Micros(now)); err != nil {
			return err
		}

		left--
	}

	return t.ExecExactly(left, done, id, items[0].n, items[len(items)-1].n, db.Micros(now))
}

// countPace counts items that are done by the step of the operation's time in
// which they were.
func (p *Projection) countPace(t *db.Tx, o operation.Operation, n int, now time.Time) error {
	const count = `INSERT INTO operation_pace (operation_id, second, n) VALUES ($1, $2, $3)
		ON CONFLICT (operation_id, second) DO UPDATE SET n = operation_pace.n + excluded.n`

	if n == 0 {
		return nil
	}

	r := o.Pacing(now)
	begin := time.Duration(len(r.Done)-1) * r.Step

	return t.Run(count, o.ID, int64(begin/time.Second), n)
}

// worked is the operation after a step: it goes on, pauses after its canary, or
// is finished.
func (p *Projection) worked(t *db.Tx, o operation.Operation, now time.Time) (operation.Operation, error) {
	if o.Pending == 0 {
		o.State, o.Why, o.FinishedAt = operation.Finished, "", now
		return o, p.record(t, operation.Running, o, entry(o, "operation.finish", now, audit.Actor{Name: o.StartedBy}))
	}

	if o.Pace.Canary > 0 && o.CanaryAt.IsZero() && o.Done >= o.Pace.Canary {
		o.CanaryAt = now
		why := fmt.Sprintf("the canary of %d is enqueued", o.Pace.Canary)
		return p.pause(t, o, why, now, audit.Actor{Name: "the canary"})
	}

	return o, p.save(t, operation.Running, o)
}
