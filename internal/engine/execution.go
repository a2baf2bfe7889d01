package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"redrive/internal/clip"
	"redrive/internal/job"
)

// The causes for which a handler's context ends early.
var (
	errTimeout   = errors.New("the job ran longer than its ttr")
	errStopping  = errors.New("the engine is stopping")
	errCancelled = errors.New("the job was cancelled")
	errLeaseLost = errors.New("the lease of the job was lost")
)

const (
	// patience is what a handler whose context has ended has to return.
	patience = 2 * time.Second
	// maxStack bounds the trace of a panic.
	maxStack = 64 << 10
)

// execution is one job that we hold: its handler at work, its dead letter on
// the way, or the wait for an earlier handler. Its fields below the line are
// guarded by the engine's mutex.
type execution struct {
	job     job.Job
	handler Handler // nil: none is to run, ending says why
	ctx     runContext
	cancel  context.CancelCauseFunc
	timer   *time.Timer // of the ttr
	ttr     time.Duration
	limit   time.Time // when it is given up; zero: never
	ending  job.Ending

	returned bool      // its handler: the rules are asked about how it ended
	ended    bool      // its outcome is decided
	cause    error     // why it was decided before its handler returned; nil: it was not
	letter   *outcome  // set while its dead letter is on the way
	gone     time.Time // when it was given up, or fenced, before its handler returned
	waited   bool      // the next execution waited for its handler long enough
}

// newExecution prepares what is to be done for a claimed job.
func (e *Engine) newExecution(j job.Job, now time.Time) *execution {
	h, ok := e.o.Handlers(j.Type)
	x := e.without(j)
	switch {
	case !ok:
		x.ending = e.unknown(j, now)
	case j.Expired(now):
		x.ending = e.expired(j, now)
	default:
		x.handler = h
		x.begin(cmp.Or(max(j.Timeout, 0), e.o.Timeout), now)
	}
	return x
}

// without returns an execution of which no handler is to know.
func (e *Engine) without(j job.Job) *execution {
	return &execution{job: j, cancel: func(error) {}}
}

// begin sets the clock of the ttr.
func (x *execution) begin(ttr time.Duration, now time.Time) {
	x.ctx.deadline = now.Add(ttr)
	x.ttr, x.limit = ttr, x.ctx.deadline.Add(patience)
	x.ctx.Context, x.cancel = context.WithCancelCause(context.Background())
	x.timer = time.AfterFunc(ttr, func() { x.cancel(errTimeout) })
}

// runContext is the context of a handler. It ends with a cause of ours and has
// a deadline; a context with a deadline below one with a cause would be the
// most expensive part of a small job.
type runContext struct {
	context.Context // ends at the deadline with errTimeout
	deadline        time.Time
}

func (c *runContext) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *runContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), errTimeout) {
		return context.DeadlineExceeded
	}
	return err
}

// hand gives an execution to a goroutine that is idle, or to a new one: a new
// one spends more time on growing its stack than on a small job.
func (e *Engine) hand(x *execution) {
	select {
	case e.tasks <- x:
	default:
		e.handlers.Add(1)
		go e.work(x)
	}
}

// work runs handlers until the engine needs no more. One that calls
// runtime.Goexit takes the goroutine with it.
func (e *Engine) work(x *execution) {
	defer e.handlers.Done()
	for {
		e.run(x)
		select {
		case x = <-e.tasks:
		case <-e.settled:
			return
		}
	}
}

// run executes a handler, if there is one. It may end by a panic or by
// runtime.Goexit; finish comes last in any case.
func (e *Engine) run(x *execution) {
	defer e.finish(x)
	if x.handler != nil {
		x.call()
	}
}

func (x *execution) call() {
	returned := false
	defer func() {
		if !returned {
			x.ending = panicked(recover())
		}
	}()
	err := x.handler(&x.ctx, x.job)
	x.ending = x.judge(err) // the error's own methods may panic, too
	returned = true
}

// panicked describes a handler that did not return. Without a value it called
// runtime.Goexit: panic(nil) has had a value since Go 1.21.
func panicked(value any) job.Ending {
	message := "the handler called runtime.Goexit"
	if value != nil {
		message = fmt.Sprint(value)
	}
	return job.Ending{
		Outcome: job.Panicked, FinishedAt: time.Now().UTC(),
		Error: job.ErrorInfo{Type: "panic", Message: message},
		Trace: clip.Text(string(debug.Stack()), maxStack),
	}
}

// judge tells how an execution ended whose handler returned err.
func (x *execution) judge(err error) job.Ending {
	end := job.Ending{Outcome: job.Succeeded, FinishedAt: time.Now().UTC()}
	if err != nil {
		failed(&end, err)
	}
	switch cause := context.Cause(&x.ctx); {
	case errors.Is(cause, errTimeout):
		return x.timedOut(end)
	case cause != nil:
		said := end
		end = x.interrupted()
		end.Error.Message, end.Trace = end.Error.Message+x.addition(said), said.Trace
	}
	return end
}

// failed describes an error that a handler returned.
func failed(end *job.Ending, err error) {
	end.Outcome, end.Error = job.Failed, job.ErrorInfo{Type: "error", Message: err.Error()}
	var f *job.Failure
	if errors.As(err, &f) && f != nil {
		end.Error, end.Trace, end.Answer = f.ErrorInfo, f.Trace, f.Answer
		end.Error.Type = cmp.Or(end.Error.Type, "error")
	}
}

// outlasted describes an execution whose handler did not return in time.
func (x *execution) outlasted() job.Ending {
	return x.timedOut(job.Ending{FinishedAt: time.Now().UTC()})
}

// timedOut describes an execution that outlasted its ttr. What its handler
// said after that is kept where it explains something.
func (x *execution) timedOut(said job.Ending) job.Ending {
	end := job.Ending{
		Outcome: job.TimedOut, FinishedAt: said.FinishedAt, Trace: said.Trace,
		Error: job.ErrorInfo{Type: "timeout", Message: fmt.Sprintf("ran longer than its ttr, %v", x.ttr)},
	}
	end.Error.Message += x.addition(said)
	return end
}

// addition is what a handler said when its context ended, if it is more than
// just that.
func (x *execution) addition(said job.Ending) string {
	switch said.Error.Message {
	case "", context.Canceled.Error(), context.DeadlineExceeded.Error(), context.Cause(&x.ctx).Error():
		return ""
	}
	return ": " + said.Error.Message
}

// finish hands on the outcome of an execution whose handler returned, unless
// somebody has decided it before, and frees its worker. A worker is not free
// before its dead letter is delivered: a receiver that is slow slows down what
// it receives from.
func (e *Engine) finish(x *execution) {
	x.drop()
	var done outcome
	if e.returns(x) == nil {
		done = e.settle(&x.job, x.ending)
	}
	e.mu.Lock()
	cause := x.cause // it can have come just now
	delivers := cause == nil && e.conclude(x, done)
	if e.stuck[x.job.ID] == x {
		delete(e.stuck, x.job.ID)
	}
	if !delivers {
		e.free(x)
	}
	e.mu.Unlock()
	if delivers {
		e.deliver(x, done)
		e.mu.Lock()
		e.free(x)
		e.mu.Unlock()
	}
	if cause != nil {
		e.o.Log.Info("A handler returned after its execution had ended. Its result was dropped.",
			"job", x.job.ID, "type", x.job.Type, "outcome", x.ending.Outcome, "cause", cause)
	}
	e.nudge()
}

// returns notes that a handler has returned: from now on its ttr is over,
// however long the rules take. It gives the reason for which the execution has
// ended before, if it has.
func (e *Engine) returns(x *execution) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	x.returned = true
	return x.cause
}

// free gives back the worker of an execution. The caller holds the mutex.
func (e *Engine) free(x *execution) {
	if e.busy[x.job.Queue]--; e.busy[x.job.Queue] == 0 {
		delete(e.busy, x.job.Queue)
	}
}

// drop frees what the context holds.
func (x *execution) drop() {
	if x.timer != nil {
		x.timer.Stop()
	}
	x.cancel(nil)
}

// fence stops an execution that somebody else has ended. A context that ended
// before keeps its first cause.
func (e *Engine) fence(x *execution, cause error) {
	e.mu.Lock()
	mine := !x.ended
	if mine {
		e.abandon(x, cause)
		delete(e.held, x.job.Token)
	}
	e.mu.Unlock()
	if mine {
		x.cancel(cause)
	}
}

// overdue gives up the handlers that should have returned by now. They keep
// their workers. The rules are asked beside the dispatcher, who waits for nobody.
func (e *Engine) overdue(now time.Time) {
	given := e.abandonAll(errTimeout, func(x *execution) bool { return !x.returned && reached(x.limit, now) })
	for _, x := range given {
		e.mu.Lock()
		e.letters++ // it may become one
		e.mu.Unlock()
		e.couriers.Go(func() {
			e.send(x, e.settle(&x.job, x.outlasted()))
			e.mu.Lock()
			e.letters--
			e.mu.Unlock()
			e.nudge()
		})
	}
}

// releaseAll ends executions because the engine stops. Those with a handler keep
// their workers.
func (e *Engine) releaseAll(which func(*execution) bool) {
	for _, x := range e.abandonAll(errStopping, which) {
		e.send(x, e.settle(&x.job, x.interrupted()))
	}
}

// abandonAll decides that executions have ended, whatever their handlers will
// say.
func (e *Engine) abandonAll(cause error, which func(*execution) bool) (all []*execution) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.held {
		if x.ended || !which(x) {
			continue
		}
		e.abandon(x, cause)
		all = append(all, x)
		if x.handler != nil {
			e.o.Log.Warn("A handler ignores the end of its context. It was given up and keeps its worker until it returns.",
				"job", x.job.ID, "type", x.job.Type, "queue", x.job.Queue)
		}
	}
	return all
}
