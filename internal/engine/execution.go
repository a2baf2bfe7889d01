package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

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

// execution is one handler at work. Its fields below the line are guarded by
// the engine's mutex.
type execution struct {
	job    job.Job
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // of the timer of the ttr
	ttr    time.Duration
	limit  time.Time // when it is given up
	ending job.Ending

	ended  bool // its outcome is decided
	fenced bool // by somebody else: nothing is to be written
}

func (e *Engine) newExecution(j job.Job, now time.Time) *execution {
	x := &execution{job: j, ttr: j.Timeout}
	if x.ttr <= 0 {
		x.ttr = e.o.Timeout
	}
	deadline := now.Add(x.ttr)
	x.limit = deadline.Add(patience)
	parent, stop := context.WithDeadlineCause(context.Background(), deadline, errTimeout)
	x.stop = stop
	x.ctx, x.cancel = context.WithCancelCause(parent)
	return x
}

// task is what a handler's goroutine works on.
type task struct {
	x *execution
	h Handler
}

// hand gives a task to a goroutine that is idle, or to a new one: a new one
// spends more time on growing its stack than on a small job.
func (e *Engine) hand(t task) {
	select {
	case e.tasks <- t:
	default:
		e.handlers.Add(1)
		go e.work(t)
	}
}

// work runs handlers until the engine needs no more. One that calls
// runtime.Goexit takes the goroutine with it.
func (e *Engine) work(t task) {
	defer e.handlers.Done()
	for {
		e.run(t)
		select {
		case t = <-e.tasks:
		case <-e.settled:
			return
		}
	}
}

// run executes a handler. It may end by a panic or by runtime.Goexit; finish
// comes last in any case.
func (e *Engine) run(t task) {
	defer e.finish(t.x)
	t.x.call(t.h)
}

func (x *execution) call(h Handler) {
	returned := false
	defer func() {
		if !returned {
			x.ending = panicked(recover())
		}
	}()
	err := h(x.ctx, x.job)
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
		Trace: job.Clip(string(debug.Stack()), maxStack),
	}
}

// judge tells how an execution ended whose handler returned err.
func (x *execution) judge(err error) job.Ending {
	end := job.Ending{Outcome: job.Succeeded, FinishedAt: time.Now().UTC()}
	if err != nil {
		end.Outcome, end.Error = job.Failed, job.ErrorInfo{Type: "error", Message: err.Error()}
	}
	var f *job.Failure
	if errors.As(err, &f) && f != nil {
		end.Error, end.Trace, end.Answer = f.ErrorInfo, f.Trace, f.Answer
		if end.Error.Type == "" {
			end.Error.Type = "error"
		}
	}
	switch cause := context.Cause(x.ctx); {
	case errors.Is(cause, errTimeout):
		return x.timedOut(end)
	case cause != nil:
		said := end
		end = x.interrupted()
		end.Error.Message, end.Trace = end.Error.Message+x.addition(said), said.Trace
	}
	return end
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
	case "", x.ctx.Err().Error(), context.Cause(x.ctx).Error():
		return ""
	}
	return ": " + said.Error.Message
}

// finish frees the worker of a handler that returned, and hands its outcome
// on unless somebody has decided it before.
func (e *Engine) finish(x *execution) {
	x.drop()
	done := e.settle(&x.job, x.ending)
	e.mu.Lock()
	if e.busy[x.job.Queue]--; e.busy[x.job.Queue] == 0 {
		delete(e.busy, x.job.Queue)
	}
	late := x.ended && !x.fenced
	if !x.ended {
		x.ended = true
		e.box.ended = append(e.box.ended, done)
	}
	e.mu.Unlock()
	if late {
		e.o.Log.Warn("A handler returned after it was given up. Its result was dropped.",
			"job", x.job.ID, "type", x.job.Type, "outcome", x.ending.Outcome)
	}
	e.nudge()
}

// drop frees what the context holds.
func (x *execution) drop() {
	x.cancel(nil)
	x.stop()
}

// fence stops an execution that somebody else has ended. A context that ended
// before keeps its first cause.
func (e *Engine) fence(x *execution, cause error) {
	e.mu.Lock()
	mine := !x.ended
	if mine {
		x.ended, x.fenced = true, true
		delete(e.held, x.job.Token)
	}
	e.mu.Unlock()
	if mine {
		x.cancel(cause)
	}
}

// giveUp decides the outcome of handlers that should have returned by now.
// They keep their workers.
func (e *Engine) giveUp(which func(*execution) bool, end func(*execution) job.Ending) {
	e.mu.Lock()
	var stuck []*execution
	for _, x := range e.held {
		if !x.ended && which(x) {
			x.ended = true
			stuck = append(stuck, x)
		}
	}
	e.mu.Unlock()
	for _, x := range stuck {
		e.post(e.settle(&x.job, end(x)))
		e.o.Log.Warn("A handler ignores the end of its context. It was given up and keeps its worker until it returns.",
			"job", x.job.ID, "type", x.job.Type, "queue", x.job.Queue)
	}
}
