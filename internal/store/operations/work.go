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

// workItem is an item of an operation while it is collected or processed.
type workItem struct {
	n     int64          // its number within the operation
	seq   int64          // the number of its job; 0: there is no such job
	run   int            // the run of the job on which to act
	id    string         // the id of the job, if the request named it
	job   *job.Job       // nil: not read yet, or it does not exist
	code  operation.Skip // why it is skipped; "": it is not
	why   string         // the same in words
	other int64          // the operation that was first, if the run was replayed already; 0: none
}

// A step is one transaction of Work. While no other caller waits for the writer, it processes
// as many items as it may, because a commit is cheaper the more items share its pages. It
// processes them in chunks. If another caller waits, it ends after the first chunk that ends
// later than othersWait after the step began.
const (
	itemRows = 4 // how many rows an item writes

	chunk      = 100 // items
	othersWait = 5 * time.Millisecond
)

// Work processes the next items of a running operation, at most n of them, and returns the
// operation and how many items were processed or skipped. There can be fewer: after the last
// item of the canary the operation is paused, the guard may pause it, and other callers may
// wait for the writer. The clock is read when the transaction begins.
func (p *Projection) Work(ctx context.Context, clock func() time.Time, id int64, n int) (operation.Step, error) {
	n = min(n, operation.MaxStep)

	return db.Write(ctx, p.writer, itemRows*min(n, chunk), func(t *db.Tx) (done operation.Step, err error) {
		done.At = clock()
		mustStop := func() bool { return p.writer.Waited() && clock().Sub(done.At) >= othersWait }
		done.Operation, done.Items, err = p.work(t, id, n, done.At, mustStop)

		// Tell the writer how many rows were written beyond those announced. They share pages, so
		// each item counts as one.
		t.Grew(max(0, done.Items-chunk))

		return done, err
	})
}

// work is Work within its transaction. It ends after the chunk at whose end mustStop is true.
func (p *Projection) work(t *db.Tx, id int64, n int, now time.Time, mustStop func() bool) (o operation.Operation, worked int, err error) {
	o, err = byID(t, id)
	if err != nil || o.State != operation.Running || o.Sift > 0 {
		return o, 0, err
	}

	// The guard can pause the operation.
	if why, err := p.guarded(t, o); why != "" || err != nil {
		if err == nil {
			o.Guarded = true
			o, err = p.pause(t, o, why, now, audit.Actor{Name: "the guard"})
		}

		return o, 0, err
	}

	// A step ends with the last item of the canary, because the operation is paused then.
	if o.Pace.Canary > 0 && o.CanaryAt.IsZero() {
		n = min(n, int(o.Pace.Canary-o.Done))
	}

	// Process the items chunk by chunk.
	for more := true; more && worked < n; more = more && !mustStop() {
		items, err := p.nextItems(t, o, min(chunk, n-worked))
		if err == nil {
			o, err = p.workThrough(t, o, items, now)
		}

		if err != nil {
			return o, 0, fmt.Errorf("operation %d: %w", id, err)
		}

		worked, more = worked+len(items), len(items) == chunk
	}

	o, err = p.endStep(t, o, now)

	return o, worked, err
}

// nextItems reads the next n pending items, in the order of their numbers.
func (p *Projection) nextItems(t *db.Tx, o operation.Operation, n int) ([]workItem, error) {
	const query = `SELECT n, job_seq, run FROM operation_items
		WHERE operation_id = $1 AND n > $2 AND state = 'pending' ORDER BY n LIMIT $3 + 0`
	return db.All(t, query, func(it *workItem) []any { return []any{&it.n, &it.seq, &it.run} }, o.ID, o.Position, n)
}

// workThrough processes items: it skips those that do not fit, acts on the jobs of the others, and
// writes what became of each. It returns the operation with its new counts, which the caller
// saves.
func (p *Projection) workThrough(t *db.Tx, o operation.Operation, items []workItem, now time.Time) (operation.Operation, error) {
	if err := p.judge(t, o, items); err != nil {
		return o, err
	}

	// Separate the jobs that fit from those that are skipped.
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

// actOn replays, discards or restores the jobs, as the operation says. The jobs were read in this
// transaction, and fit.
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

// markItems writes which of these items are skipped and which are done. They are all pending
// items from the first of them to the last.
func (p *Projection) markItems(t *db.Tx, id int64, items []workItem, now time.Time) error {
	const skip = `UPDATE operation_items SET state = 'skipped', code = $3, why = $4, other = $5, at = $6
		WHERE operation_id = $1 AND n = $2 AND state = 'pending'`
	const done = `UPDATE OR FAIL operation_items SET state = 'done', at = $4
		WHERE operation_id = $1 AND n BETWEEN $2 AND $3 AND state = 'pending'`

	if len(items) == 0 {
		return nil
	}

	notSkipped := len(items)
	for _, it := range items {
		if it.code == "" {
			continue
		}

		if err := t.ExecExactly(1, skip, id, it.n, string(it.code), it.why, it.other, db.Micros(now)); err != nil {
			return err
		}

		notSkipped--
	}

	return t.ExecExactly(notSkipped, done, id, items[0].n, items[len(items)-1].n, db.Micros(now))
}

// countPace adds n to the items that were done in the current step of the operation's time, for
// the chart of its rate.
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

// endStep saves an operation after a step, and returns it: it is finished if nothing is pending,
// paused if its canary has just become complete, and otherwise still running.
func (p *Projection) endStep(t *db.Tx, o operation.Operation, now time.Time) (operation.Operation, error) {
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
