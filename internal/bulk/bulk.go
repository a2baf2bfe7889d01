// Package bulk runs operations on many jobs: it collects their jobs, processes their items at the
// rate that people chose, and ends previews that no one starts.
//
// A single goroutine does this in rounds. In a round, each operation takes one step, if one is
// due. So a large operation does not delay a small one, and the writer of the database can do
// other work between two steps. A step ends early if another caller waits for the writer. Then
// the goroutine sleeps until the next step is due or [Runner.Notify] is called.
//
// How far an operation has come is written in the transaction of each step, so another process
// can go on there. Only the rhythm of its steps is lost, and begins again. No job is touched
// before its turn, so a pause, another rate or an abort takes effect at once.
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

// Store has the operations. Its methods do nothing to an operation that is in another state than
// they are for.
type Store interface {
	// Unfinished returns the operations that have not ended, the oldest first.
	Unfinished(ctx context.Context) ([]operation.Operation, error)

	// Collect adds the next jobs that an operation selects. more is false after the last of them.
	Collect(ctx context.Context, now time.Time, id int64) (more bool, err error)

	// Sift skips the next items whose causes a person has left out.
	Sift(ctx context.Context, now time.Time, id int64) error

	// Work processes at most n items.
	Work(ctx context.Context, clock func() time.Time, id int64, n int) (operation.Step, error)

	// FailItem gives up the next item, for a reason.
	FailItem(ctx context.Context, now time.Time, id int64, why string) error

	// Expire aborts previews that are too old, and returns when the next one will be; zero: there is
	// none.
	Expire(ctx context.Context, now time.Time) (next time.Time, err error)
}

const (
	stepPause  = 50 * time.Millisecond // from one step of an operation with a rate to the next, at least
	retryPause = 2 * time.Second       // after a step that failed
	idlePause  = time.Minute           // the longest sleep
)

// Runner runs operations. Its methods are safe for concurrent use.
type Runner struct {
	store Store
	log   *slog.Logger
	wake  chan struct{}
	quit  context.CancelFunc
	ended sync.WaitGroup

	// Only the goroutine uses these. The keys are numbers of operations.
	paces   map[int64]*pace     // of running operations
	retryAt map[int64]time.Time // when to try the step again that failed
}

// Start starts a runner, which also goes on with the operations of an earlier process. Close stops
// it.
func Start(store Store, log *slog.Logger) *Runner {
	ctx, quit := context.WithCancel(context.Background())
	r := &Runner{
		store: store, log: cmp.Or(log, slog.New(slog.DiscardHandler)), wake: make(chan struct{}, 1), quit: quit,
		paces: map[int64]*pace{}, retryAt: map[int64]time.Time{},
	}
	r.ended.Go(func() { r.loop(ctx) })

	return r
}

// Notify tells the runner that an operation was made or changed, so that it looks at once.
func (r *Runner) Notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Close stops the runner, and returns when its goroutine has ended. The store finishes a step that
// it has begun.
func (r *Runner) Close() {
	r.quit()
	r.ended.Wait()
}

// loop does one round after another until ctx ends.
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

// round gives each operation one step, if one is due, and returns when the next one is due.
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

// step does the next step of an operation, if one is due, and returns when the one after it is due;
// zero if the operation waits for a person.
func (r *Runner) step(ctx context.Context, o operation.Operation) time.Time {
	var due time.Time
	var err error
	switch at := r.retryAt[o.ID]; {
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

	delete(r.retryAt, o.ID)

	if err != nil {
		r.warn(ctx, err, "an operation cannot go on", "operation", o.ID, "state", o.State)

		due = time.Now().Add(retryPause)
		r.retryAt[o.ID] = due
	}

	return due
}

// expire ends previews that are too old, and returns when to look again: within idlePause.
func (r *Runner) expire(ctx context.Context) (time.Time, error) {
	now := time.Now()

	next, err := r.store.Expire(ctx, now)
	if latest := now.Add(idlePause); next.IsZero() || next.After(latest) {
		next = latest
	}

	return next, err
}

// forget deletes the paces of operations that are not running any more, and the retries of those
// that have ended.
func (r *Runner) forget(open []operation.Operation) {
	state := map[int64]operation.State{}
	for _, o := range open {
		state[o.ID] = o.State
	}

	maps.DeleteFunc(r.paces, func(id int64, _ *pace) bool { return state[id] != operation.Running })
	maps.DeleteFunc(r.retryAt, func(id int64, _ time.Time) bool { return state[id] == "" })
}

// work processes the items of an operation that are due, and returns when the next ones are due.
func (r *Runner) work(ctx context.Context, o operation.Operation) (time.Time, error) {
	now := time.Now()

	// Another rate, or a resumption after a pause, begins a new rhythm.
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

	// One of the items may make the whole step fail. Repeat the step with half of them until there
	// is only that item.
	if n > 1 && fault.InInput(err) {
		p.suspects = n
		return now, nil
	}

	// It is the only item of the step: give it up, so that the others can go on.
	if fault.InInput(err) {
		r.log.Error("An item of an operation failed and was skipped.", "operation", o.ID, "error", err)
		err = r.store.FailItem(ctx, now, o.ID, "the database refused it: "+err.Error())
		p.suspects = 0
	}

	if err != nil {
		return time.Time{}, err
	}

	// The items of a step that succeeded are not suspects any more.
	p.suspects = max(0, p.suspects-done.Items)
	p.advance(max(done.Items, 1), now)
	_, at = p.due(now)

	return at, nil
}

// warn logs an error, unless it comes from the end of ctx. about has further attributes for the log.
func (r *Runner) warn(ctx context.Context, err error, what string, about ...any) {
	if ctx.Err() == nil {
		r.log.Warn("Bulk: "+what+". Redrive will try again.", append(about, "error", err, "again_in", retryPause)...)
	}
}

// pace is the rhythm of one running operation with a rate: the first job is due at base, and each
// further one 1/rate seconds after the one before it.
type pace struct {
	rate  float64   // jobs per second; 0: no limit
	since time.Time // when the operation was started or last resumed
	base  time.Time // when the first job of this rhythm was due
	taken int       // how many jobs were processed since base
	last  time.Time // when the last of them were

	suspects int // one of the next so many items makes every step fail; 0: no such item is known
}

// newPace returns the pace of an operation whose first job is due now.
func newPace(o operation.Operation, now time.Time) *pace {
	return &pace{rate: o.Pace.Rate, since: o.ResumedAt, base: now}
}

// due returns how many jobs are due now or, if there are none, when the next ones will be. At a high
// rate, several jobs are due together every stepPause.
func (p *pace) due(now time.Time) (n int, at time.Time) {
	if p.rate <= 0 {
		return operation.MaxStep, now
	}

	// A step begins at least stepPause after the last one.
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

// stepSize returns how many of n items that are due the next step takes: at most half of the suspects,
// if there are any.
func (p *pace) stepSize(n int) int {
	if p.suspects > 0 {
		n = min(n, max(1, p.suspects/2))
	}
	return n
}

// dueAt returns when the job after n others is due.
func (p *pace) dueAt(n int) time.Time {
	return p.base.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
}

// advance records that n jobs were processed. An operation that is more than a second late, because
// the database was busy or the machine asleep, does not catch up, because its rate must not be
// exceeded in any second: the rhythm begins again.
func (p *pace) advance(n int, now time.Time) {
	p.taken += n
	p.last = now
	if p.rate > 0 && now.Sub(p.dueAt(p.taken)) > time.Second {
		p.base, p.taken = now, 0
	}
}
