package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"redrive/internal/engine/outcome"
	"redrive/internal/engine/when"
	"redrive/internal/fault"
	"redrive/internal/job"
)

const (
	// The pause after a call of the store that failed is doubled each time, between these bounds.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second

	// maxSleep is how long the dispatcher sleeps at most. Then it looks at the clock again, which
	// may have been set, and the machine may have slept.
	maxSleep = time.Minute
)

// dispatcher is the goroutine that talks to the store, with its state. No other goroutine uses its
// fields, except for those of the Engine.
type dispatcher struct {
	*Engine

	// What is to be written, and how the last call of the store went.
	pending    []outcome.Outcome
	batch      []job.Settlement // the settlements of the call that is under way
	begun      []job.Token      // prefetched executions that have begun, as long as the store does not know it
	begunAside aside            // when to tell the store about them again, if it refused that
	commit     time.Duration    // how long a call takes
	backoff    time.Duration    // the pause after the last call, which failed; zero: it did not fail
	again      time.Time        // when that pause ends
	problem    error            // the error of the last call
	broken     bool             // the store is broken, and is not called any more

	// What can be claimed.
	queues map[string]*queue
	due    time.Time // when the next scheduled or retryable job may run; zero: there is none
	askDue bool      // due has to be read from the store
	full   bool      // the last claim left workers free, because as many jobs run as may run in all

	// When to wake.
	limit time.Time // when to give up handlers, end waits for them, or repeat what was put aside; zero: never
	timer *time.Timer
}

func newDispatcher(e *Engine) *dispatcher {
	d := &dispatcher{Engine: e, queues: map[string]*queue{}, timer: time.NewTimer(maxSleep)}
	for _, name := range e.o.Queues.QueueNames() {
		d.queue(name)
	}

	d.lookEverywhere()

	return d
}

// queue returns what is known of a queue, and makes it known if it is not.
func (d *dispatcher) queue(name string) *queue {
	q, ok := d.queues[name]
	if !ok {
		q = &queue{}
		d.queues[name] = q
	}

	return q
}

// lookEverywhere makes the next claim ask for jobs of every queue, and then reads from the store
// when the next job may run.
func (d *dispatcher) lookEverywhere() {
	for _, q := range d.queues {
		q.ready = true
	}

	d.due = time.Time{}
	d.askDue = true
}

// loop is the goroutine of the dispatcher. It works until nothing is left to do after a stop.
func (d *dispatcher) loop() {
	defer close(d.life.settled)
	defer d.timer.Stop()

	for !d.over() {
		d.collect()

		if !d.broken && !time.Now().Before(d.again) {
			d.breaker.Attend(time.Now(), d.full, d.workers.Taken)
			d.outage.Ask(time.Now())
			d.work()
			d.outage.Answered()
		}

		d.sleep()
	}
}

// over reports whether nothing is left to do. On the way there, it closes life.drained when the
// engine is stopping, no handler runs and no dead letter is being sent. Only the loop starts
// handlers, so only the loop can know that none will run any more.
func (d *dispatcher) over() bool {
	stops := d.life.reached(stopping)
	flushes := d.life.reached(flushing)

	// An execution adds its outcome before it gives back its worker or leaves the outbox, so once
	// both are empty, all outcomes are there.
	sent := d.outbox.Empty()
	if stops && sent && d.workers.Idle() && !closed(d.life.drained) {
		close(d.life.drained)
	}

	// Write the outcomes that are left, unless the store does not accept them.
	left := len(d.pending) + d.unwritten.Count() + d.prefetch.Total()
	hopeless := d.broken || d.backoff > 0 && closed(d.life.hurry)
	if !flushes || left > 0 && !hopeless {
		return false
	}

	if left > 0 {
		d.life.err = fmt.Errorf("stop the engine: %d outcomes were not written, and their jobs will be settled as lost at the next start: %w",
			left, d.problem)
	}

	return true
}

// collect learns which executions ended and which jobs moved since the last round, gives up
// handlers whose time is over, and starts what can start without a call of the store.
func (d *dispatcher) collect() {
	now := time.Now()

	if d.reloaded.Swap(false) {
		d.lookEverywhere() // queues may have more workers, and types may have handlers
	}

	d.giveBackPrefetched(now)
	d.collectOutcomes(now)
	d.collectChanges(now)

	if when.Reached(d.limit, now) {
		d.giveUp(now)
		d.limit = when.Earlier(d.executions.NextLimit(now), d.againAt(now))
	}

	// Jobs that wait for an earlier handler begin before prefetched ones, because they were claimed
	// earlier.
	d.startWaiting(now)
	d.fillWorkers()
}

// againAt returns when the first of the calls that were put aside is to be repeated; zero: none is.
func (d *dispatcher) againAt(now time.Time) (first time.Time) {
	waits := []aside{d.begunAside}
	for _, q := range d.queues {
		waits = append(waits, q.aside)
	}

	for _, w := range waits {
		if w.again.After(now) {
			first = when.Earlier(first, w.again)
		}
	}

	return first
}

// giveBackPrefetched gives back the prefetched jobs that may not begin now, and those that have been
// prefetched for too long.
func (d *dispatcher) giveBackPrefetched(now time.Time) {
	for _, queue := range d.prefetch.Queues() {
		if !d.mayBegin(queue) {
			d.executions.GiveBack(d.prefetch.TakeAll(queue))
			continue
		}

		d.executions.GiveBack(d.prefetch.TakeLate(queue, now))
	}
}

// collectOutcomes moves the unwritten outcomes to pending, and learns from them: which queues have
// another job to claim, and how long executions take.
func (d *dispatcher) collectOutcomes(now time.Time) {
	before := len(d.pending)
	d.pending = d.unwritten.Take(d.pending)

	for _, o := range d.pending[before:] {
		q := d.queue(o.Job.Queue)
		s := &o.Settlement

		if when.Reached(s.RunAt, now) {
			q.ready = true // claimed again in the call that settles it
		}

		if !s.GivenBack && !s.Doubtful {
			q.Measure(s.Attempt.FinishedAt.Sub(s.Attempt.StartedAt))
		}
	}
}

// collectChanges learns from commits which queues have jobs to claim, now or later.
func (d *dispatcher) collectChanges(now time.Time) {
	d.begun = append(d.begun, d.prefetch.TakeBegun()...)

	// A queue whose jobs can only run later becomes known, but is not ready.
	u := d.changes.take()
	for name, ready := range u.queues {
		q := d.queue(name)
		q.ready = q.ready || ready
	}

	for name, n := range u.urgent {
		q := d.queue(name)
		q.urgent = min(q.urgent+n, d.workers.Limit(name))
	}

	d.due = when.Earlier(d.due, u.due)
	if u.everywhere || when.Reached(d.due, now) {
		d.lookEverywhere()
	}
}

// work makes the next calls of the store.
func (d *dispatcher) work() {
	if d.catchUp() {
		d.exchange()
	}
}

// catchUp takes over the jobs of a dead process, if the start could not, and reports whether the
// dispatcher can go on. While the engine stops, it leaves that to the next start.
func (d *dispatcher) catchUp() bool {
	if !d.behind.Load() || d.life.reached(stopping) {
		return true
	}

	deadLetters, err := d.takeOver(context.Background())
	if err != nil {
		d.fail(err)
		return false
	}

	d.tookOver(deadLetters)
	d.recovered()

	return true
}

// fail records that a call of the store failed. What was to be written is kept, and tried again
// after a pause that grows. If the store is broken, it is not tried again.
func (d *dispatcher) fail(err error) {
	d.problem = err
	first := d.outage.Refuses(time.Now())

	if errors.Is(err, fault.ErrBroken) {
		d.broken = true
		d.failed <- err // does not block: the channel has a slot, and no call follows

		d.o.Log.Error("The store failed. No more jobs are claimed.", "error", err, "unwritten", len(d.pending))

		return
	}

	d.backoff = min(max(2*d.backoff, minBackoff), maxBackoff)
	d.again = time.Now().Add(d.backoff)

	level := slog.LevelDebug
	if first {
		level = slog.LevelWarn
	}

	d.o.Log.Log(context.Background(), level, "The database refused a write. Outcomes are kept and tried again; meanwhile no jobs are claimed.",
		"error", err, "unwritten", len(d.pending), "again_in", d.backoff)
}

// recovered records that a call of the store succeeded. If that ends a series of failures, it wakes
// the dispatcher, because the call may have claimed nothing (see claim).
func (d *dispatcher) recovered() {
	if d.backoff == 0 {
		return
	}

	d.backoff = 0
	d.problem = nil
	lasted := d.outage.Accepts(time.Now())
	d.o.Log.Info("The database accepts writes again.", "after", lasted.Round(time.Millisecond))
	d.notify()
}

// sleep waits until the dispatcher is woken, or until the next time at which there is work.
func (d *dispatcher) sleep() {
	now := time.Now()
	next := now.Add(maxSleep)

	// These times matter even while the database refuses everything.
	d.limit = when.Earlier(d.limit, d.executions.NewLimit())
	next = when.Earlier(next, d.limit)
	next = when.Earlier(next, d.prefetch.LateAt())

	// During a backoff, neither the breaker nor new jobs are looked at, so a time of theirs that
	// has passed must not end the sleep.
	switch {
	case d.broken:
	case d.again.After(now):
		next = when.Earlier(next, d.again)
	default:
		next = when.Earlier(next, d.due)
		next = when.Earlier(next, d.breaker.NextAt())
	}

	d.timer.Reset(next.Sub(now))

	select {
	case <-d.wake:
	case <-d.timer.C:
	}
}
