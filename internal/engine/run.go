package engine

import (
	"cmp"
	"time"

	"redrive/internal/engine/execution"
	"redrive/internal/engine/outcome"
	"redrive/internal/job"
)

// newTask returns what to do for a claimed job that begins now: run its handler, or end the job at
// once, because there is no handler for it or its time to live is over.
func (e *Engine) newTask(j *job.Job, now time.Time) execution.Task {
	handler, known := e.o.Handlers(j.Type)
	switch {
	case !known:
		return execution.WithoutHandler(e.unknown(*j, now))
	case j.Expired(now):
		return execution.WithoutHandler(e.expired(*j, now))
	}

	return execution.NewTask(handler, cmp.Or(max(j.Timeout, 0), e.o.Timeout), now)
}

// run runs the task of an execution, and returns the next execution for the same worker, or nil.
//
// If the handler calls runtime.Goexit, this goroutine ends and run does not return. The deferred
// function then gives the next execution to another goroutine.
func (e *Engine) run(x *execution.Execution) (next *execution.Execution) {
	returned := false
	defer func() {
		e.finish(x)
		next = e.nextFor(x.Job.Queue)
		e.notify()

		if next != nil && !returned {
			e.pool.Execute(next)
		}
	}()

	x.Call()

	returned = true

	return nil
}

// finish decides the outcome of an execution whose handler has returned, and passes it on, unless
// another one was decided before. The caller frees the worker afterwards.
func (e *Engine) finish(x *execution.Execution) {
	x.EndContext(nil)

	if x.Shortage != nil {
		e.ranOut(x.Shortage)
	}

	// The ttr counts no longer, because settle asks the rules, which may take long.
	var o outcome.Outcome
	decided := e.executions.Returned(x)
	if !decided {
		o = e.settle(x.Job, x.Ending)
	}

	// The execution may have been ended from outside, before or meanwhile.
	cause := e.executions.Decide(x, o)
	if cause != nil {
		e.o.Log.Info("A handler returned after its execution had ended. Its result was dropped.",
			"job", x.Job.ID, "type", x.Job.Type, "outcome", x.Ending.Outcome, "cause", cause)
		return
	}

	// Send the dead letter before the worker is free, so that a slow receiver slows down the queue
	// whose dead letters it gets.
	if o.Sends {
		e.outbox.Deliver(o)
	}
}

// giveUp ends the executions whose handlers should have returned by now. The handlers keep their
// workers. The outcomes are decided in goroutines of the outbox, because the rules may take long
// and the dispatcher must not wait.
func (e *Engine) giveUp(now time.Time) {
	overdue := e.executions.AbandonOverdue(now)
	e.logAbandoned(overdue)

	for _, x := range overdue {
		e.outbox.PostLater(func() outcome.Outcome { return e.settle(x.Job, x.Outlasted()) })
	}
}

// logAbandoned logs which executions were ended although their handlers are still running.
func (e *Engine) logAbandoned(all []*execution.Execution) {
	for _, x := range all {
		if x.HasHandler() {
			e.o.Log.Warn("A handler ignores the end of its context. It was given up and keeps its worker until it returns.",
				"job", x.Job.ID, "type", x.Job.Type, "queue", x.Job.Queue)
		}
	}
}
