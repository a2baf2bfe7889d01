// Package engine runs jobs: it claims them, gives them to handlers, extends their leases while
// they run, and settles how they ended.
//
// # The loop
//
// One goroutine, the dispatcher, talks to the store. A handler that returns leaves an outcome
// behind. The dispatcher collects the outcomes, and in one call of Exchange it settles them and
// claims as many jobs as can start at once. There is one call at a time: under load, the
// settlements of many jobs and the next claim share a commit, and when the engine is idle, a
// single job does not have to wait for others. The dispatcher claims jobs for the workers that are
// free, and prefetches jobs for those that will become free before the next commit.
//
// While workers are free, most jobs do not need such a claim: they are dispatched on commit. In
// the transaction that makes jobs available, the store asks the engine how many workers are free
// and claims as many jobs, which start after that same commit.
//
// The store is not polled for jobs. The dispatcher sleeps until a handler returns, until
// [Engine.Changed] says that jobs became available, or until the time of the next retry. It wakes
// once a minute, because the clock can be set. It remembers which queues can have jobs to claim, and
// asks for those only. Only leases that ran out are looked for at intervals (see below), and calls
// that the store refused are repeated.
//
// # The parts
//
// Each part is a type that locks itself, most of them in a package of their own below this one:
//
//   - execution.Set: the executions whose leases we have. It decides once for each how it ended.
//   - execution.Alarm: ends the contexts of handlers at their deadlines.
//   - outcome.Unwritten: the outcomes that have to be written.
//   - outcome.Outbox: the outcomes whose dead letters are being sent.
//   - workers.Counts: how many workers of each queue are in use, or reserved for a claim.
//   - workers.Pool: the goroutines in which handlers run.
//   - prefetch.Jobs: the jobs that were claimed before a worker was free.
//   - breaker.Breaker: the circuit breaker, which is open while something has run out.
//   - breaker.Outage: since when the database refuses writes, or does not answer.
//   - changes: what commits have changed and the dispatcher does not know yet.
//   - onCommit: whether the store is claiming jobs for the engine in a transaction.
//
// The files read from the bottom up: parts.go has what all share, start.go and run.go begin and
// end an execution, exchange.go and dispatcher.go are the loop, and this file starts it.
//
// Two parts call another part while they are locked: execution.Set adds to outcome.Unwritten in the
// step that decides how an execution ended, and changes asks prefetch.Jobs. No other part does, so
// no order of locks has to be kept. A step that needs several parts uses them in an order that is
// safe (an outcome is added before its worker is free, a worker is taken before its job begins),
// and then wakes the dispatcher, which looks again.
//
// The state of the dispatcher needs no lock, because only its goroutine uses it.
//
// # The end of an execution
//
// The first of these events decides how an execution ends:
//   - the handler returns or panics;
//   - the handler is given up, because it has not returned some time after the end of its ttr, or
//     of the grace of a stop;
//   - the execution is ended from outside, because a person cancelled the job or its lease was
//     lost: then nothing is written.
//
// A handler that was given up keeps its worker until it returns, because it still uses what a
// worker may use. What it returns is dropped. The next execution of the same job waits for it, even
// in the next run: the job is claimed, so that no other worker runs it and a person can cancel it,
// but it has no worker, and its ttr does not count. After Options.StuckAfter it runs all the same,
// as soon as a worker is free.
//
// A job without a handler for its type, and one whose time to live was over before its first
// attempt, ends without a handler, but otherwise like all others.
//
// An execution whose context ended before its handler returned did not succeed, even if the handler
// returned nil. Many handlers do so when their context ends, and it is better to run a job twice
// than not at all.
//
// # Dead letters
//
// If a queue keeps its dead letters, the outcome of a job can be written at once. If dead letters
// are sent to a receiver, the outcome is written when the receiver has answered. A receiver can
// hang, so only this job waits: its outcome is in the outbox meanwhile, and its lease is kept. The
// goroutine of the handler sends the dead letter before it frees its worker, so that a slow
// receiver slows down its own queue. Dead letters of executions that were given up or lost are sent
// by goroutines of the outbox.
//
// In a graceful stop, dead letters can be sent until the end of the grace. One that is cut short
// counts as refused: the job is settled with its error and its attempt, as dlq_failed, and a person
// sends the dead letter again. If the job were left unsettled instead, the next start would take it
// for lost, and nothing would say why it failed.
//
// # Leases
//
// The heartbeat goroutine extends all leases three times within their length. Only if that has
// succeeded does it look for leases of others that ran out: otherwise a machine that slept would
// take its own running jobs for dead.
//
// At the start, all active jobs belong to a dead process, because a lock lets only one process have
// the store. They are settled as lost before the first claim. If the store is full, read-only or
// busy at that time, the engine starts all the same. The dispatcher then settles them before it does
// anything else, and until then the heartbeat reaps nothing.
//
// # Faults of the store
//
// An outcome is never dropped because the store is busy or full. It stays in memory, its lease is
// extended, and it is tried again after growing pauses. Nothing is claimed until it is written. If
// the store refuses one outcome because of its content, the others are written without it, and that
// one is written without its texts, or put into quarantine (see write.go). If the store is broken,
// the engine stops claiming, and its owner is told so (see [Engine.Err]).
//
// # Shortages
//
// A handler returns a *shortage.Error if it could not do its work because this process or machine
// has run out of something. Its job is given back without losing an attempt, and nothing is claimed
// until there is enough again (see package breaker). A dead letter that meets a shortage is sent
// again later.
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

// New returns an engine that does nothing until Start. If an option is missing or wrong, the error is
// a *invalid.Error that names it.
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

// Start settles the jobs that a dead process left active, and begins to run jobs. ctx bounds only
// Start itself. If the store is full, read-only or busy, Start succeeds all the same, and the jobs
// are settled later. An engine can be started once, or again if a start failed.
func (e *Engine) Start(ctx context.Context) error {
	if !e.life.advance(fresh, starting) {
		return errors.New("start the engine: it was started or stopped before")
	}

	// If the jobs of a dead process cannot be taken over now, the dispatcher does it later.
	d := newDispatcher(e)

	deadLetters, err := e.takeOver(ctx)
	behind := temporary(err)
	if behind {
		d.fail(err)
	} else if err != nil {
		return e.startFailed(err)
	}

	// From here on, the store may dispatch jobs on commit. It gets no workers while behind is set.
	e.onCommit.end = e.o.Store.DispatchOnCommit(e.reserveOnCommit, e.startOnCommit)
	if !e.life.advance(starting, running) {
		e.onCommit.end()
		return e.startFailed(nil)
	}

	e.heartbeat.Go(e.beat)

	go func() { // closes life.settled, which shutdown waits for
		if !behind {
			d.tookOver(deadLetters)
		}

		d.loop()
	}()

	return nil
}

// startFailed ends a start that failed or was stopped, and returns the error of Start. If a Stop
// waits for the start, it goes on.
func (e *Engine) startFailed(err error) error {
	if e.life.advance(starting, fresh) {
		return fmt.Errorf("start the engine: %w", err)
	}

	close(e.life.done)

	return errors.Join(errors.New("start the engine: it was stopped meanwhile"), err)
}

// Changed tells the engine that jobs moved, so that it claims jobs that became available, and ends
// executions of jobs that a person cancelled. It never blocks. It has to be called after each commit
// with the changes of that commit, and without changes when jobs can run for another reason, such
// as the end of a queue's pause. A cancellation that comes between the claim of a job and its start
// is noticed at the next heartbeat.
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

// Reloaded tells the engine that Options.Handlers and Options.Workers may return something else than
// before. Jobs that run go on. If a queue now has fewer workers than running jobs, no more of its
// jobs start until enough have ended. Jobs that waited for a handler which exists now are freed. If
// the store refuses that, the heartbeat tries it again.
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

// Pause stops the claiming of jobs until Resume. Jobs that run go on, and are settled. A new process
// is not paused.
func (e *Engine) Pause() {
	e.paused.Store(true)
	e.notify() // it gives back the prefetched jobs
}

// Resume ends a pause, so that the available jobs are claimed.
func (e *Engine) Resume() {
	e.paused.Store(false)
	e.Changed(nil)
}

// Err returns a channel that gets one error if the store breaks. The engine claims nothing any more
// then, and the process should end.
func (e *Engine) Err() <-chan error { return e.failed }

// Running returns how many handlers are running, by queue, including those that were given up.
func (e *Engine) Running() map[string]int { return e.workers.Running() }

// Stuck lists the handlers that were given up and have not returned, the oldest first.
func (e *Engine) Stuck() []job.Stuck { return e.executions.Stuck() }

// Waiting reports whether the job with this id is claimed and has not begun, because it waited for
// the handler of an earlier execution. since is when that handler was given up, and until is how
// long the job waits for it at most. Both are zero if this wait is over, and the job now waits for
// a worker.
func (e *Engine) Waiting(id string) (since, until time.Time, ok bool) { return e.executions.WaitOf(id) }

// Began returns when an execution of this engine began, which can be later than its claim. ok is
// false if the execution is not ours, or has not begun.
func (e *Engine) Began(token job.Token) (at time.Time, ok bool) { return e.executions.Began(token) }

// OpenBreaker returns what has run out, so that no jobs are claimed, and since when. That includes
// an outage of the database. ok is false if jobs are claimed.
func (e *Engine) OpenBreaker() (shortage.OpenBreaker, bool) {
	why, open := e.breaker.Why()
	if open {
		return why, true
	}

	return e.outage.Why(time.Now())
}

// Shortages returns, for each resource that has run out since the start, how often it did, and how
// many jobs were given back for it. The database is one of these resources.
func (e *Engine) Shortages() map[shortage.Resource]shortage.Counts {
	counts := e.breaker.Shortages()
	n := e.outage.Times()
	if n > 0 {
		counts[shortage.Database] = shortage.Counts{Openings: n}
	}

	return counts
}
