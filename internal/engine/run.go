package engine

import (
	"cmp"
	"time"

	"redrive/internal/engine/execution"
	"redrive/internal/engine/outcome"
	"redrive/internal/job"
)

// newTask prepares what is to be done for a claimed job that begins now.
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

// run executes a handler, if there is one, and returns the next execution for its worker, or
// nil. The handler may end by a panic or by runtime.Goexit, which ends this goroutine.
func (e *Engine) run(x *execution.Execution) (next *execution.Execution) {
	// Also when the handler takes the goroutine with it.
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

// finish passes on the outcome of an execution whose handler has returned, unless the outcome
// was decided before. Its worker is free after that.
func (e *Engine) finish(x *execution.Execution) {
	x.EndContext(nil)

	if x.Shortage != nil {
		e.ranOut(x.Shortage)
	}

	// From here on the ttr is over. The rules may take long to say what becomes of the job.
	var o outcome.Outcome
	decided := e.executions.Returned(x)
	if !decided {
		o = e.settle(x.Job, x.Ending)
	}

	// The execution may have been ended meanwhile, or before.
	cause := e.executions.Decide(x, o)
	if cause != nil {
		e.o.Log.Info("A handler returned after its execution had ended. Its result was dropped.",
			"job", x.Job.ID, "type", x.Job.Type, "outcome", x.Ending.Outcome, "cause", cause)
		return
	}

	// The worker waits for the delivery: a receiver that is slow slows down the queue that
	// it receives from.
	if o.Sends {
		e.outbox.Deliver(o)
	}
}

// giveUp ends the executions whose handlers should have returned by now. They
// keep their workers. The rules are asked beside the dispatcher, which does not
// wait for the answer.
func (e *Engine) giveUp(now time.Time) {
	overdue := e.executions.AbandonOverdue(now)
	e.logAbandoned(overdue)

	for _, x := range overdue {
		e.outbox.PostLater(func() outcome.Outcome { return e.settle(x.Job, x.Outlasted()) })
	}
}

// logAbandoned tells of executions that were ended although their handlers run.
func (e *Engine) logAbandoned(all []*execution.Execution) {
	for _, x := range all {
		if x.HasHandler() {
			e.o.Log.Warn("A handler ignores the end of its context. It was given up and keeps its worker until it returns.",
				"job", x.Job.ID, "type", x.Job.Type, "queue", x.Job.Queue)
		}
	}
}
