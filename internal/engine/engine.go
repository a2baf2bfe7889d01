// Package engine runs jobs: it claims them, gives them to handlers, extends
// their leases while they run, and settles how they ended.
//
// # The loop
//
// One goroutine, the dispatcher, talks to the store. Handlers that return leave
// an outcome behind; the dispatcher collects what has ended, and in one call of
// Exchange settles it and claims as much as can start at once. One call is in
// flight at a time, so under load the settlements of a whole batch
// and the next claim share one commit, and when idle a single job does not have to
// wait. It claims for the workers that are free, and prefetches for those that will be
// before the next commit.
//
// While workers are free, most jobs need no claim of the dispatcher's: they are dispatched
// on commit. The store asks the engine in the transaction that makes jobs available, and
// what the engine has workers for starts after that one commit.
//
// The store is not polled for jobs. The dispatcher sleeps until a handler
// returns, until [Engine.Changed] says that jobs became available, or until the
// time of the next retry; once a minute it compares that with the clock, which
// can be set. It remembers which queues can hold claimable jobs and asks for
// those only. What is asked for again and again is leases that ran out (see
// below), and whatever the store refused.
//
// # The parts
//
// Each part is a type that locks itself, most of them in a package of their own below this one:
//
//   - execution.Set: the jobs whose leases we have. It decides once for each how it ended.
//   - execution.Alarm: the deadlines of handlers.
//   - outcome.Unwritten: the outcomes that are to be written.
//   - outcome.Outbox: dead letters on their way.
//   - workers.Counts: how many of each queue are in use, or reserved for a claim.
//   - workers.Pool: the goroutines in which handlers run.
//   - prefetch.Jobs: jobs that were claimed before a worker was free.
//   - breaker.Breaker: the circuit breaker, which is open while something has run out.
//   - breaker.Outage: since when the database refuses, or does not answer.
//   - changes: what commits have changed, for the dispatcher.
//   - onCommit: whether the store claims jobs for us in a transaction that is under way.
//
// The files read from the bottom up: parts.go has what all share, start.go and run.go begin and
// end an execution, exchange.go and dispatcher.go are the loop, and this file starts it.
//
// Two parts call another one while they are locked: the set of executions adds to what is
// unwritten in the step that decides how an execution ended, and changes asks prefetch. No other
// does, so no order of locks has to be kept. What needs several parts is safe because of the
// order in which it uses them (an outcome is added before its worker is free, a worker is taken
// before its job begins), and it wakes the dispatcher afterwards, which looks again.
//
// The dispatcher's own state needs no lock: only its goroutine touches it.
//
// # The end of an execution
//
// Exactly one of these decides it, whichever comes first: the handler returns
// or panics; it ignores the end of its ttr for too long and is given up, or the
// same at a graceful stop; it was ended from outside (a person cancelled the job,
// or the lease was lost), and nothing is written. A handler that was given up
// keeps its worker's place until it returns, because it still uses what it
// uses; what it returns then is dropped. The job's next execution waits for it,
// also in its next run: claimed, so that no other worker runs it and a person can
// cancel it, but without a worker and before its ttr begins. After
// Options.StuckAfter it runs all the same, as soon as a worker is free.
//
// A job that no handler knows, or whose time to live was over before its first
// attempt, is ended without a handler, on the way that all others take.
//
// An execution whose context ended before its handler returned did not
// succeed, even when the handler returned nil: many do so when their context
// ends, and running a job twice is better than not at all.
//
// # Dead letters
//
// What becomes of the dead letters of a queue that keeps them is known at once.
// Where they are sent to a receiver, a settlement that leaves one is written
// when the answer is known, and a receiver that hangs could hold up everything. So
// only the job waits: its outcome is in the outbox meanwhile. The handler's
// goroutine delivers before it gives its worker back, which slows down a queue
// whose receiver is slow; dead letters of executions that ended otherwise (given up,
// lost) go by goroutines of the outbox. The lease is kept until then.
//
// In a graceful stop deliveries share the grace. One that is cut short counts
// as refused: the job is settled with its real error and attempt, marked
// dlq_failed, and a person sends the dead letter again. Left unsettled instead, the
// next start would take the job for lost and forget why it failed.
//
// # Leases
//
// The heartbeat goroutine extends all leases three times within their length, and
// only when that has succeeded looks for leases of others that ran out: a
// machine that slept must not take its own running jobs for dead. At the start
// every active job belongs to a dead process, since the store's lock lets only
// one have the file: all of them are settled as lost before the first claim.
// When the store is full, read-only or busy then, the engine starts all the
// same and the dispatcher tries that again before anything else; until then the
// heartbeat leaves what ran out to it.
//
// # Faults of the store
//
// An outcome is never dropped because the store is busy or full: it stays in
// memory, its lease is still extended, and it is tried again with growing
// pauses, without new claims until it is written. When the store refuses one
// outcome for its own fault, the others are written without it; that one is then
// written without its texts, or quarantined (see write.go). When the store says that it
// is broken the engine stops claiming permanently and says so (see [Engine.Err]).
//
// # Shortages
//
// A handler that returns a *shortage.Error could not do its work because this
// process or machine had run out of something. Its job is given back and loses no
// attempt, nothing is claimed, and as soon as there is some again work goes on
// (see package breaker). A dead letter that meets one is sent again after it.
package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redrive/internal/engine/breaker"
	"redrive/internal/engine/execution"
	"redrive/internal/engine/outcome"
	"redrive/internal/engine/prefetch"
	"redrive/internal/engine/workers"
	"redrive/internal/job"
	"redrive/internal/shortage"
)

// New returns an engine that does nothing yet, or a *invalid.Error.
func New(o Options) (*Engine, error) {
	o = o.withDefaults()

	err := o.validate()
	if err != nil {
		return nil, err
	}

	e := &Engine{
		o: o, life: newLife(),
		workers:  workers.New(o.Workers),
		prefetch: prefetch.New(),
		breaker:  breaker.New(o.Probe, o.MaxRunning, o.Log),
		wake:     make(chan struct{}, 1), failed: make(chan error, 1),
	}
	e.executions = execution.NewSet(&e.unwritten, o.StuckAfter)
	e.changes.prefetch = e.prefetch
	e.alarm.Ring = e.executions.EndOverdue
	e.outbox = outcome.NewOutbox(o.Deliver, o.DeliverWithin, outcome.Events{Done: e.add, Shortage: e.ranOut, Idle: e.notify})
	e.pool = workers.NewPool(e.run, e.life.settled)
	e.behind.Store(true)

	return e, nil
}

// Start settles what a dead process left behind and begins to run jobs. ctx
// bounds the start only. A store that is full, read-only or busy does not keep
// it from starting. An engine can be started once.
func (e *Engine) Start(ctx context.Context) error {
	if !e.life.advance(fresh, starting) {
		return errors.New("start the engine: it was started or stopped before")
	}

	// The dispatcher takes over later what cannot be taken over now.
	d := newDispatcher(e)

	deadLetters, err := e.takeOver(ctx)
	behind := temporary(err)
	if behind {
		d.fail(err)
	} else if err != nil {
		return e.startFailed(err)
	}

	// Nothing is reserved while the engine is behind.
	e.onCommit.end = e.o.Store.DispatchOnCommit(e.reserveOnCommit, e.startOnCommit)
	if !e.life.advance(starting, running) {
		e.onCommit.end()
		return e.startFailed(nil)
	}

	e.heartbeat.Go(e.beat)

	go func() { // shutdown waits for it
		if !behind {
			d.tookOver(deadLetters)
		}

		d.loop()
	}()

	return nil
}

// startFailed ends a start, and lets a Stop go on that waits for it.
func (e *Engine) startFailed(err error) error {
	if e.life.advance(starting, fresh) {
		return fmt.Errorf("start the engine: %w", err)
	}

	close(e.life.done)

	return errors.Join(errors.New("start the engine: it was stopped meanwhile"), err)
}

// Changed tells the engine that jobs moved: it claims what became available
// and stops what a person cancelled. It never blocks. Call it after every
// commit, and without changes when something else let jobs run, as the end of
// a queue's pause. A cancellation that comes between a claim and its start is
// noticed at the next heartbeat.
func (e *Engine) Changed(changes []job.Change) {
	for _, c := range changes {
		if c.State == job.Cancelled {
			e.fence(c.Token, execution.ErrCancelled)
		}
	}

	if e.changes.add(changes) {
		e.notify()
	}
}

// Reloaded tells the engine that Options.Handlers and Options.Workers answer
// otherwise than before. What runs goes on; where there are fewer workers than jobs
// that run, no more start until enough have ended. Jobs that waited for a handler
// which exists now can run. While the store refuses to free them, the heartbeat tries
// it again.
func (e *Engine) Reloaded(ctx context.Context) {
	e.workers.AskAgain()
	e.reloaded.Store(true)
	e.notify()

	err := e.unhold(ctx)
	if err != nil {
		e.unfreed.Store(true)
		e.o.Log.Warn("The jobs that waited for a handler could not be freed. Redrive will try again.", "error", err, "again_in", e.o.Lease/3)
	}
}

// Pause ends the claiming of jobs until Resume: what runs goes on and is
// settled. It survives no restart.
func (e *Engine) Pause() {
	e.paused.Store(true)
	e.notify() // prefetched jobs are given back
}

// Resume ends a pause. Jobs that became available meanwhile are claimed.
func (e *Engine) Resume() {
	e.paused.Store(false)
	e.Changed(nil)
}

// Err gives one error when the store broke: the engine claims nothing any
// more, and the process should end.
func (e *Engine) Err() <-chan error { return e.failed }

// Running counts the handlers at work by queue, those that were given up
// included.
func (e *Engine) Running() map[string]int { return e.workers.Running() }

// Stuck lists the handlers that go on although their executions have ended, the
// oldest first.
func (e *Engine) Stuck() []job.Stuck { return e.executions.Stuck() }

// Waiting reports whether a claimed job has not begun because of the handler of
// an earlier execution: since when that one should have returned, and until
// when the job waits for it. Both are zero when this wait is over, and the job
// waits for a worker.
func (e *Engine) Waiting(id string) (since, until time.Time, ok bool) { return e.executions.WaitOf(id) }

// Began is when an execution began that is ours: later than its claim, when it
// had to wait.
func (e *Engine) Began(token job.Token) (at time.Time, ok bool) { return e.executions.Began(token) }

// OpenBreaker says since when no jobs are claimed because something has run out, and what.
func (e *Engine) OpenBreaker() (shortage.OpenBreaker, bool) {
	why, open := e.breaker.Why()
	if open {
		return why, true
	}

	return e.outage.Why(time.Now())
}

// Shortages counts what has run out since the start, and what met it.
func (e *Engine) Shortages() map[shortage.Resource]shortage.Counts {
	counts := e.breaker.Shortages()
	n := e.outage.Times()
	if n > 0 {
		counts[shortage.Database] = shortage.Counts{Openings: n}
	}

	return counts
}
