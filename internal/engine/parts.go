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

	// For the dispatcher, and for the owner of the engine.
	wake     chan struct{} // one slot: there is something for the dispatcher
	failed   chan error    // one slot: the store broke
	paused   atomic.Bool   // no claims until it is resumed
	reloaded atomic.Bool   // queues may have other numbers of workers
	behind   atomic.Bool   // what a dead process left is not settled yet: only the dispatcher does it

	// For the heartbeat.
	unfreed atomic.Bool // a reload could not free the jobs whose handlers exist now
}

// notify wakes the dispatcher, however often it is called meanwhile.
func (e *Engine) notify() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// mayBegin reports whether jobs of a queue may begin that need no claim of the dispatcher's.
func (e *Engine) mayBegin(queue string) bool {
	return !e.life.reached(stopping) && !e.paused.Load() && e.breaker.Closed() && !e.outage.Refusing() && !e.o.Queues.QueuePaused(queue)
}

func (e *Engine) knows(typ string) bool {
	_, ok := e.o.Handlers(typ)
	return ok
}

// fence stops an execution that was ended from outside the engine.
func (e *Engine) fence(token job.Token, cause error) {
	x := e.executions.Fence(token, cause)
	if x != nil {
		e.prefetch.Drop(x)
	}
}

// newClaim is a claim of nothing.
func (e *Engine) newClaim(now time.Time) job.Claim {
	c := job.Claim{Worker: e.o.Name, Now: now, Lease: e.o.Lease, Free: map[string]int{}}
	if e.o.UnknownType == retry.UnknownHold {
		c.Knows = e.knows
	}

	return c
}

// add takes an outcome that is to be written.
func (e *Engine) add(o outcome.Outcome) {
	e.unwritten.Add(o)
	e.notify()
}

// ranOut opens the breaker for a shortage that a handler or a delivery met.
func (e *Engine) ranOut(s *shortage.Error) {
	e.breaker.Trip(s)
	e.notify()
}
