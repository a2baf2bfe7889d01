package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/engine/breaker"
	"redrive/internal/engine/execution"
	"redrive/internal/engine/outcome"
	"redrive/internal/engine/prefetch"
	"redrive/internal/engine/workers"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/shortage"
)

// Engine runs the jobs of one store. Its methods can be used by many
// goroutines.
type Engine struct {
	o    Options
	life life

	// The parts: see the package comment.
	executions *execution.Set
	unwritten  outcome.Unwritten
	workers    *workers.Counts
	prefetch   *prefetch.Jobs
	changes    changes
	breaker    *breaker.Breaker
	outage     breaker.Outage
	onCommit   onCommit
	alarm      execution.Alarm
	outbox     *outcome.Outbox
	pool       *workers.Pool
	heartbeat  sync.WaitGroup

	// Signals and flags.
	wake     chan struct{} // has an element if the dispatcher has something to do
	failed   chan error    // gets the error of a broken store
	paused   atomic.Bool   // nothing is claimed
	reloaded atomic.Bool   // the dispatcher has to look at all queues again, after Reloaded
	behind   atomic.Bool   // the jobs of a dead process are not taken over yet: nothing is claimed or reaped
	unfreed  atomic.Bool   // the heartbeat has to free jobs whose handlers exist now, because Reloaded could not
}

// notify wakes the dispatcher. It never blocks.
func (e *Engine) notify() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// mayBegin reports whether jobs of a queue may be prefetched, begin from there, or be dispatched on
// commit.
func (e *Engine) mayBegin(queue string) bool {
	return !e.life.reached(stopping) && !e.paused.Load() && e.breaker.Closed() && !e.outage.Refusing() && !e.o.Queues.QueuePaused(queue)
}

// knows reports whether there is a handler for a type of job.
func (e *Engine) knows(typ string) bool {
	_, ok := e.o.Handlers(typ)
	return ok
}

// fence ends an execution for a cause from outside the engine, if it is ours. Its outcome is not
// written.
func (e *Engine) fence(token job.Token, cause error) {
	x := e.executions.Fence(token, cause)
	if x != nil {
		e.prefetch.Drop(x)
	}
}

// newClaim returns a claim that does not ask for any job yet.
func (e *Engine) newClaim(now time.Time) job.Claim {
	c := job.Claim{Worker: e.o.Name, Now: now, Lease: e.o.Lease, Free: map[string]int{}}
	if e.o.UnknownType == retry.UnknownHold {
		c.Knows = e.knows
	}

	return c
}

// add adds an outcome that the dispatcher has to write.
func (e *Engine) add(o outcome.Outcome) {
	e.unwritten.Add(o)
	e.notify()
}

// ranOut opens the breaker, because a handler or a delivery met a shortage.
func (e *Engine) ranOut(s *shortage.Error) {
	e.breaker.Trip(s)
	e.notify()
}
