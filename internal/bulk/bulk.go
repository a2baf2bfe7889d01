// Package bulk carries operations on many jobs through: it collects their
// scopes, works through their items at the rate that people chose, and ends
// previews that are not started.
//
// One goroutine does it all. In each round every operation that has something
// due takes one step, one after the other, so that a large one never keeps a
// small one waiting, and the writer of the database takes other work between two
// steps. A step ends soon once another caller waits for the writer. Then the
// goroutine sleeps until the next job is due or [Runner.Notify] is called.
//
// The runner keeps nothing that matters: where an operation is stands in the
// store, written in the transaction of the step, and a new process goes on
// there. Only the rhythm is lost, of which a restart begins a new one. Nothing is
// replayed before its turn, so a pause, another rate and an abort act at once.
package bulk

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"redrive/internal/fault"
	"redrive/internal/operation"
)

// Store is what a runner asks of the store.
type Store interface {
	Unfinished(ctx context.Context) ([]operation.Operation, error)
	Collect(ctx context.Context, now time.Time, id int64) (more bool, err error)
	Sift(ctx context.Context, now time.Time, id int64) error
	Work(ctx context.Context, clock func() time.Time, id int64, n int) (operation.Step, error)
	FailItem(ctx context.Context, now time.Time, id int64, why string) error
	Expire(ctx context.Context, now time.Time) (next time.Time, err error)
}

const (
	stepPause  = 50 * time.Millisecond // between two steps of an operation with a rate
	retryPause = 2 * time.Second       // after a step that failed
	idlePause  = time.Minute           // without anything to do
)

// Runner works off operations. Its methods are safe for concurrent use.
type Runner struct {
	store Store
	log   *slog.Logger
	wake  chan struct{}
	quit  context.CancelFunc
	ended sync.WaitGroup

	// Owned by the goroutine, by the number of the operation.
	paces map[int64]*pace     // of those that run
	again map[int64]time.Time // when to try one again that failed
}

// Start begins to work off operations, also those that an earlier process left
// behind. Close stops it.
func Start(store Store, log *slog.Logger) *Runner {
	ctx, quit := context.WithCancel(context.Background())
	r := &Runner{
		store: store, log: cmp.Or(log, slog.New(slog.DiscardHandler)), wake: make(chan struct{}, 1), quit: quit,
		paces: map[int64]*pace{}, again: map[int64]time.Time{},
	}
	r.ended.Go(func() { r.loop(ctx) })

	return r
}

// Notify tells the runner that an operation was made or changed.
func (r *Runner) Notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Close stops the runner and returns when it has ended. A step that is under way
// is finished by the store.
func (r *Runner) Close() {
	r.quit()
	r.ended.Wait()
}

func (r *Runner) loop(ctx context.Context) {
	for {
		next := r.round(ctx)
		timer := time.NewTimer(max(0, time.Until(next)))
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-timer.C:
		}

		timer.Stop()

		if ctx.Err() != nil {
			return
		}
	}
}

// round gives every operation one step, and says when the next one is due.
func (r *Runner) round(ctx context.Context) (next time.Time) {
	next, err := r.expire(ctx)

	var open []operation.Operation
	if err == nil {
		open, err = r.store.Unfinished(ctx)
	}

	if err != nil {
		r.warn(ctx, err, "operations cannot be read")
		return time.Now().Add(retryPause)
	}

	r.forget(open)

	for _, o := range open {
		if due := r.step(ctx, o); !due.IsZero() && due.Before(next) {
			next = due
		}
	}

	return next
}

// step gives an operation one step, and says when its next one is due; zero
// when it waits for a person.
func (r *Runner) step(ctx context.Context, o operation.Operation) time.Time {
	var due time.Time
	var err error
	switch at := r.again[o.ID]; {
	case at.After(time.Now()):
		return at
	case o.State == operation.Collecting:
		_, err = r.store.Collect(ctx, time.Now(), o.ID)
		due = time.Now()
	case o.State == operation.Running && o.Sift > 0:
		err = r.store.Sift(ctx, time.Now(), o.ID)
		due = time.Now()
	case o.State == operation.Running:
		due, err = r.work(ctx, o)
	}

	// It is tried again only after this failure, not after an earlier one.
	delete(r.again, o.ID)

	if err != nil {
		r.warn(ctx, err, "an operation cannot go on", "operation", o.ID, "state", o.State)

		due = time.Now().Add(retryPause)
		r.again[o.ID] = due
	}

	return due
}

// expire ends previews that are too old, and says when to look again.
func (r *Runner) expire(ctx context.Context) (time.Time, error) {
	now := time.Now()

	next, err := r.store.Expire(ctx, now)
	if latest := now.Add(idlePause); next.IsZero() || next.After(latest) {
		next = latest
	}

	return next, err
}

// forget drops what is known of operations that no longer run.
func (r *Runner) forget(open []operation.Operation) {
	state := map[int64]operation.State{}
	for _, o := range open {
		state[o.ID] = o.State
	}

	maps.DeleteFunc(r.paces, func(id int64, _ *pace) bool { return state[id] != operation.Running })
	maps.DeleteFunc(r.again, func(id int64, _ time.Time) bool { return state[id] == "" })
}

// work does what is due of an operation, and says when more will be.
func (r *Runner) work(ctx context.Context, o operation.Operation) (time.Time, error) {
	now := time.Now()

	// Another rate, or the end of a pause, begins a new rhythm.
	p := r.paces[o.ID]
	if p == nil || p.rate != o.Pace.Rate || !p.since.Equal(o.ResumedAt) {
		p = newPace(o, now)
		r.paces[o.ID] = p
	}

	n, at := p.due(now)
	if n == 0 {
		return at, nil
	}

	n = p.stepSize(n)
	done, err := r.store.Work(ctx, time.Now, o.ID, n)

	// One that spoils the step for the others is found by halves, and skipped.
	if n > 1 && fault.InInput(err) {
		p.suspects = n
		return now, nil
	}

	if fault.InInput(err) {
		r.log.Error("An item of an operation failed and was skipped.", "operation", o.ID, "error", err)
		err = r.store.FailItem(ctx, now, o.ID, "the database refused it: "+err.Error())
		p.suspects = 0
	}

	if err != nil {
		return time.Time{}, err
	}

	// What went well is no longer suspected.
	p.suspects = max(0, p.suspects-done.Items)
	p.advance(max(done.Items, 1), now)
	_, at = p.due(now)

	return at, nil
}

// warn logs what failed, unless the runner is told to stop.
func (r *Runner) warn(ctx context.Context, err error, what string, about ...any) {
	if ctx.Err() == nil {
		r.log.Warn("Bulk: "+what+". Redrive will try again.", append(about, "error", err, "again_in", retryPause)...)
	}
}

// pace is the rhythm of one running operation: the first job at once, each
// further one a fraction of a second after the one before.
type pace struct {
	rate  float64   // jobs a second, 0: as fast as possible
	since time.Time // when the operation was resumed last
	base  time.Time // when the first job of this rhythm was due
	taken int       // since then
	last  time.Time // when the newest was taken

	suspects int // one of the next so many spoils every step that it is in; 0: none is known
}

func newPace(o operation.Operation, now time.Time) *pace {
	return &pace{rate: o.Pace.Rate, since: o.ResumedAt, base: now}
}

// due is how many jobs are due now; when none is, the time at which there will
// be. Jobs that follow one another fast come in small bundles.
func (p *pace) due(now time.Time) (n int, at time.Time) {
	if p.rate <= 0 {
		return operation.MaxStep, now
	}

	// Not earlier than a pause after the last bundle.
	at = p.dueAt(p.taken)
	if ready := p.last.Add(stepPause); p.taken > 0 && at.Before(ready) {
		at = ready
	}

	if at.After(now) {
		return 0, at
	}

	n = int(now.Sub(p.base).Seconds()*p.rate) + 1 - p.taken

	return min(max(n, 1), operation.MaxStep), now
}

// stepSize is how many of n items a step takes: half of those among which the one
// is that spoils it.
func (p *pace) stepSize(n int) int {
	if p.suspects > 0 {
		n = min(n, max(1, p.suspects/2))
	}
	return n
}

// dueAt is when the job after n others is due.
func (p *pace) dueAt(n int) time.Time {
	return p.base.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
}

// advance notes that n jobs were worked through. Time that was lost, because the
// database was busy or the machine asleep, is not made up for: the rate is a
// promise about every second.
func (p *pace) advance(n int, now time.Time) {
	p.taken += n
	p.last = now
	if p.rate > 0 && now.Sub(p.dueAt(p.taken)) > time.Second {
		p.base, p.taken = now, 0
	}
}
