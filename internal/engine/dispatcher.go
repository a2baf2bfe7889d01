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
	minBackoff = 100 * time.Millisecond // after a failed call of the store
	maxBackoff = 5 * time.Second
	// maxSleep makes the dispatcher compare its timer with the clock now and
	// then, because the clock can be set and the machine can sleep.
	maxSleep = time.Minute
)

// dispatcher is the loop that talks to the store; only its goroutine touches it.
type dispatcher struct {
	*Engine

	// What is to be written, and how the store takes it.
	pending    []outcome.Outcome
	batch      []job.Settlement // of the call that is under way
	begun      []job.Token      // prefetched executions that have begun, which is not written down
	begunAside aside            // the last try to write that, when it was refused
	commit     time.Duration    // that a call takes
	backoff    time.Duration    // after the last call, which failed; zero: it did not
	again      time.Time        // the end of the backoff
	problem    error            // of the last call
	broken     bool             // that call ended the store: there is no further one

	// What may be claimed.
	queues map[string]*queue
	due    time.Time // when the next waiting job may run; zero: never
	askDue bool      // the store knows better when that is
	full   bool      // the last claim asked for less than there are workers, since only so many may run

	// When to wake, beside that; zero: never.
	limit time.Time // when to look for handlers to give up, or that were waited for long enough
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

func (d *dispatcher) queue(name string) *queue {
	q, ok := d.queues[name]
	if !ok {
		q = &queue{}
		d.queues[name] = q
	}

	return q
}

// lookEverywhere makes the next claim ask for jobs of every queue, and the
// store for the time of the next one.
func (d *dispatcher) lookEverywhere() {
	for _, q := range d.queues {
		q.ready = true
	}

	d.due = time.Time{}
	d.askDue = true
}

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

// over reports whether nothing is left to do. Only the loop starts handlers,
// so only it can tell that none will run any more, nor send a dead letter.
func (d *dispatcher) over() bool {
	stops := d.life.reached(stopping)
	flushes := d.life.reached(flushing)

	// What ends leaves its outcome before it gives back its worker or its place in the outbox.
	sent := d.outbox.Empty()
	if stops && sent && d.workers.Idle() && !closed(d.life.drained) {
		close(d.life.drained)
	}

	// What is left is written, unless that is hopeless.
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

// collect takes in what ended and what moved since the last round, and starts what can start
// without the store.
func (d *dispatcher) collect() {
	now := time.Now()

	if d.reloaded.Swap(false) {
		d.lookEverywhere() // more may start now
	}

	d.giveBackPrefetched(now)
	d.collectOutcomes(now)
	d.collectChanges(now)

	if when.Reached(d.limit, now) {
		d.giveUp(now)
		d.limit = when.Earlier(d.executions.NextLimit(now), d.againAt(now))
	}

	// Jobs that waited begin before those that are prefetched: they were claimed earlier.
	d.startWaiting(now)
	d.fillWorkers()
}

// againAt is when the first of what the database refused is tried again; zero when none of it
// waits for its time.
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

// giveBackPrefetched gives back the prefetched jobs that may not begin now, or have not begun
// in time.
func (d *dispatcher) giveBackPrefetched(now time.Time) {
	for _, queue := range d.prefetch.Queues() {
		if !d.mayBegin(queue) {
			d.executions.GiveBack(d.prefetch.TakeAll(queue))
			continue
		}

		d.executions.GiveBack(d.prefetch.TakeLate(queue, now))
	}
}

// collectOutcomes takes in what is to be written.
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

// collectChanges takes in where jobs can be claimed now, or later.
func (d *dispatcher) collectChanges(now time.Time) {
	d.begun = append(d.begun, d.prefetch.TakeBegun()...)

	// A queue of which jobs only wait is known from now on, and not asked.
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

// work is one try of what the store is to do next.
func (d *dispatcher) work() {
	if d.catchUp() {
		d.exchange()
	}
}

// catchUp does what the start could not, and reports whether that is done. While the engine
// stops it is not: the next start does it, and what has ended since is written.
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

// fail keeps everything for a later try, or for none when the store broke.
func (d *dispatcher) fail(err error) {
	d.problem = err
	first := d.outage.Refuses(time.Now())

	if errors.Is(err, fault.ErrBroken) {
		d.broken = true
		d.failed <- err // once: no call comes after it

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

// recovered ends a series of failures. The call that ended it may have claimed
// nothing for caution.
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

// sleep waits until it is woken, or for the next moment at which there is work.
func (d *dispatcher) sleep() {
	now := time.Now()
	next := now.Add(maxSleep)

	// These are attended to whatever the database says.
	d.limit = when.Earlier(d.limit, d.executions.NewLimit())
	next = when.Earlier(next, d.limit)
	next = when.Earlier(next, d.prefetch.LateAt())

	// Until the database is tried again, neither the breaker nor new jobs are attended to: a
	// time of theirs that has passed must not keep the loop awake.
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
