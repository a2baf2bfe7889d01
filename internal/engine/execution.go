package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"redrive/internal/job"
	"redrive/internal/shortage"
)

// The causes for which a handler's context ends early.
var (
	errTimeout   = errors.New("the job ran longer than its ttr")
	errStopping  = errors.New("the engine is stopping")
	errCancelled = errors.New("the job was cancelled")
	errLeaseLost = errors.New("the lease of the job was lost")
)

// returnLimit is what a handler whose context has ended has to return.
const returnLimit = 2 * time.Second

// Handler does the work of one job. Nil is success. Any error fails the
// attempt; a *job.Failure, wrapped or not, carries a type, a trace and an
// answer to the policy; a *shortage.Error is no failure of the job. ctx ends at
// the job's ttr, when a person cancels the job, when its lease is lost, and at
// the end of a graceful stop; its cause says which. A handler that returns
// later than that is not believed.
type Handler func(ctx context.Context, j job.Job) error

// execution is one job whose lease we have: prefetched, its handler at work, its dead letter
// on the way, or the wait for an earlier handler.
type execution struct {
	job        *job.Job        // shared with its outcome, and not to be changed once it has begun
	prefetched bool            // claimed before a worker was free
	short      *shortage.Error // what its handler lacked; nil: nothing
	task                       // set when it begins

	// What follows is changed by [executions] only.
	begun     bool
	returned  bool      // its handler: the rules are asked about how it ended
	ended     bool      // its outcome is decided
	cause     error     // why it was decided before its handler returned; nil: it was not
	gone      time.Time // when it was given up, or fenced, before its handler returned
	waitedFor bool      // the next execution waited for its handler long enough
}

// task is what an execution does once it begins.
type task struct {
	handler Handler // nil: none is to run, ending says why
	ctx     runContext
	cancel  context.CancelCauseFunc // of ctx; nil: there is no handler
	ttr     time.Duration
	limit   time.Time // when it is given up; zero: never
	ending  job.Ending
}

// setTask lets an execution begin a task.
func (x *execution) setTask(t task) {
	x.task = t
	x.begun = true
}

// abandon ends an execution, whatever its handler will say.
func (x *execution) abandon(cause error) {
	x.ended = true
	x.cause = cause
	x.endContext(cause)
}

// newTask prepares what is to be done for a claimed job that begins now.
func (e *Engine) newTask(j *job.Job, now time.Time) (t task) {
	handler, known := e.o.Handlers(j.Type)
	switch {
	case !known:
		t.ending = e.unknown(*j, now)
	case j.Expired(now):
		t.ending = e.expired(*j, now)
	default:
		t.handler = handler
		t.ttr = cmp.Or(max(j.Timeout, 0), e.o.Timeout)
		t.ctx.deadline = now.Add(t.ttr)
		t.limit = t.ctx.deadline.Add(returnLimit)
		t.ctx.Context, t.cancel = context.WithCancelCause(context.Background())
	}

	return t
}

// endContext ends the context of the handler, if there is one, and frees what was
// made of it.
func (t *task) endContext(cause error) {
	if t.cancel != nil {
		t.cancel(cause)
	}
}

// run executes a handler, if there is one, and returns the next execution for its worker, or
// nil. The handler may end by a panic or by runtime.Goexit, which ends this goroutine.
func (e *Engine) run(x *execution) (next *execution) {
	returned := false
	defer func() {
		e.finish(x)
		next = e.nextFor(x.job.Queue)
		e.notify()

		if next != nil && !returned {
			e.pool.execute(next)
		}
	}()

	if x.handler != nil {
		x.call()
	}

	returned = true

	return nil
}

// call calls the handler, and keeps how it ended.
func (x *execution) call() {
	returned := false
	defer func() {
		if !returned {
			x.ending = panicked(recover())
		}
	}()

	err := x.handler(&x.ctx, *x.job)
	x.ending = x.judge(err) // the error's own methods may panic, too
	returned = true
}

// finish hands on the outcome of an execution whose handler has returned, unless the outcome
// was decided before. Its worker is free after that.
func (e *Engine) finish(x *execution) {
	x.endContext(nil)

	if x.short != nil {
		e.ranOut(x.short)
	}

	// From here on the ttr is over. The rules may take long to say what becomes of the job.
	var o outcome
	decided := e.executions.returned(x)
	if !decided {
		o = e.settle(x.job, x.ending)
	}

	// The execution may have been ended meanwhile, or before.
	cause := e.executions.decide(x, o)
	if cause != nil {
		e.o.Log.Info("A handler returned after its execution had ended. Its result was dropped.",
			"job", x.job.ID, "type", x.job.Type, "outcome", x.ending.Outcome, "cause", cause)
		return
	}

	// The worker waits for the delivery: a receiver that is slow slows down the queue that
	// it receives from.
	if o.sends {
		e.outbox.deliver(o)
	}
}

// giveUp ends the executions whose handlers should have returned by now. They
// keep their workers. The rules are asked beside the dispatcher, which does not
// wait for the answer.
func (e *Engine) giveUp(now time.Time) {
	overdue := e.executions.abandon(errTimeout, func(x *execution) bool { return !x.returned && reached(x.limit, now) })
	e.logAbandoned(overdue)

	for _, x := range overdue {
		e.outbox.postLater(func() outcome { return e.settle(x.job, x.outlasted()) })
	}
}

// logAbandoned tells of executions that were ended although their handlers run.
func (e *Engine) logAbandoned(all []*execution) {
	for _, x := range all {
		if x.handler != nil {
			e.o.Log.Warn("A handler ignores the end of its context. It was given up and keeps its worker until it returns.",
				"job", x.job.ID, "type", x.job.Type, "queue", x.job.Queue)
		}
	}
}
