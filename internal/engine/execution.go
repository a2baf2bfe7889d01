package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/wire"
)

// The causes for which a handler's context ends early.
var (
	errTimeout   = errors.New("the job ran longer than its ttr")
	errStopping  = errors.New("the engine is stopping")
	errCancelled = errors.New("the job was cancelled")
	errLeaseLost = errors.New("the lease of the job was lost")
)

const (
	// returnLimit is what a handler whose context has ended has to return.
	returnLimit = 2 * time.Second
	// maxStack bounds the trace of a panic.
	maxStack = 64 << 10
)

// execution is one job that we hold: in hand, its handler at work, its dead letter
// on the way, or the wait for an earlier handler. The fields below the line are
// guarded by the mutex of [executions].
type execution struct {
	job   *job.Job      // shared with its outcome, and not to be changed once it has begun
	short *job.Shortage // what its handler lacked; nil: nothing
	task                // set when it begins, with the mutex held

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

// newTask prepares what is to be done for a claimed job that begins now.
func (e *Engine) newTask(j *job.Job, now time.Time) (t task) {
	h, ok := e.o.Handlers(j.Type)
	switch {
	case !ok:
		t.ending = e.unknown(*j, now)
	case j.Expired(now):
		t.ending = e.expired(*j, now)
	default:
		t.handler, t.ttr = h, cmp.Or(max(j.Timeout, 0), e.o.Timeout)
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

// run executes a handler, if there is one, and returns the next execution for its
// worker, or nil. The handler may end by a panic or by runtime.Goexit; finish comes
// last in any case.
func (e *Engine) run(x *execution) (next *execution) {
	returned := false
	defer func() {
		if next = e.finish(x); next != nil && !returned { // this goroutine is lost
			e.handlers.hand(next)
		}
	}()
	if x.handler != nil {
		x.call()
	}
	returned = true
	return nil
}

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
	case cause == nil && errors.As(err, &x.short):
		return lacking(x.short)
	case cause != nil:
		said := end
		end = x.interrupted()
		end.Error.Message, end.Trace = end.Error.Message+x.addition(said), said.Trace
	}
	return end
}

// lacking describes an execution that met a shortage: it does not count.
func lacking(s *job.Shortage) job.Ending {
	return job.Ending{Outcome: job.Interrupted, FinishedAt: time.Now().UTC(), Error: job.ErrorInfo{
		Type: job.ShortageType, Message: s.Error(),
	}}
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

// finish hands on the outcome of an execution whose handler returned, unless the
// outcome was decided before, and gives its worker to the next job in hand, or
// frees it. A worker is not free before its dead letter is delivered: a receiver
// that is slow slows down the queue that it receives from.
func (e *Engine) finish(x *execution) (next *execution) {
	x.endContext(nil)
	if x.short != nil {
		e.ranOut(x.short) // before its worker is free
	}
	var o outcome
	if !e.active.returned(x) {
		o = e.settle(x.job, x.ending)
	}
	held, cause := e.active.finish(x, o)
	switch {
	case cause != nil: // it can have come just now
		e.o.Log.Info("A handler returned after its execution had ended. Its result was dropped.",
			"job", x.job.ID, "type", x.job.Type, "outcome", x.ending.Outcome, "cause", cause)
	case o.sends:
		e.outbox.deliver(o)
		held = e.active.freeLater(x)
	}
	next = e.startNext(held)
	e.notify()
	return next
}

// giveUp ends the executions whose handlers should have returned by now. They
// keep their workers. The rules are asked beside the dispatcher, which does not
// wait for the answer.
func (e *Engine) giveUp(now time.Time) {
	overdue := e.abandon(errTimeout, func(x *execution) bool { return !x.returned && reached(x.limit, now) })
	for _, x := range overdue {
		e.outbox.postLater(func() outcome { return e.settle(x.job, x.outlasted()) })
	}
}

// abandon decides that executions have ended, whatever their handlers will say.
func (e *Engine) abandon(cause error, which func(*execution) bool) []*execution {
	all := e.active.abandonAll(cause, which)
	for _, x := range all {
		if x.handler != nil {
			e.o.Log.Warn("A handler ignores the end of its context. It was given up and keeps its worker until it returns.",
				"job", x.job.ID, "type", x.job.Type, "queue", x.job.Queue)
		}
	}
	return all
}

// outcome is an execution that ended, and how that is written down.
type outcome struct {
	job        *job.Job // as it was claimed
	settlement job.Settlement
	sends      bool // its dead letter is still to be sent, and to become part of the settlement
}

// delivered returns the outcome with what became of its dead letter.
func (o outcome) delivered(d job.Delivery) outcome {
	return outcome{job: o.job, settlement: o.settlement.Delivered(d)}
}

// settlements appends those of outcomes to a list.
func settlements(to []job.Settlement, outcomes []outcome) []job.Settlement {
	to = slices.Grow(to, len(outcomes))
	for i := range outcomes {
		to = append(to, outcomes[i].settlement)
	}
	return to
}

// settle decides what becomes of a job whose execution ended. A dead letter
// that it leaves may still have to be sent.
func (e *Engine) settle(j *job.Job, end job.Ending) outcome {
	e.hide(j, &end)
	if end.Outcome.Counted() && end.Outcome != job.Succeeded {
		end.Ruling, end.Note = e.o.Rules(*j, end) // what they say of it was hidden before
	}
	o := outcome{job: j, settlement: j.Settle(end, e.o.Random)}
	if o.settlement.Letter != job.NoLetter {
		kept, known := e.o.Kept(j.Queue)
		o.settlement, o.sends = o.settlement.Delivered(kept), !known
	}
	return o
}

// unknown is the end of a claimed job that no handler knows. Under the strategy
// hold the store gives out no such jobs.
func (e *Engine) unknown(j job.Job, now time.Time) job.Ending {
	return job.Ending{
		Outcome: job.Failed, FinishedAt: now.UTC(), Unknown: e.o.UnknownType,
		Error: job.ErrorInfo{Type: "unknown_type", Message: fmt.Sprintf("no handler is configured for the type %q", j.Type)},
	}
}

// expired is the end of a claimed job whose time to live was over before its
// first attempt.
func (e *Engine) expired(j job.Job, now time.Time) job.Ending {
	return job.Ending{
		Outcome: job.Failed, FinishedAt: now.UTC(), Expired: e.o.Expired(j.Queue),
		Error: job.ErrorInfo{Type: "expired", Message: "its time to live ended at " + wire.FormatTime(j.ExpiresAt) + ", before it ran"},
	}
}

// Handler does the work of one job. Nil is success. Any error fails the
// attempt; a *job.Failure, wrapped or not, carries a type, a trace and an
// answer to the policy; a *job.Shortage is no failure of the job. ctx ends at
// the job's ttr, when a person cancels the job, when its lease is lost, and at
// the end of a graceful stop; its cause says which. A handler that returns
// later than that is not believed.
type Handler func(ctx context.Context, j job.Job) error

// pool has the goroutines in which handlers run.
type pool struct {
	run    func(*execution) (next *execution)
	tasks  chan *execution // to goroutines that are idle
	closed <-chan struct{} // no more tasks come
	all    sync.WaitGroup
}

// hand gives an execution to a goroutine that is idle, or to a new one: a new
// one spends more time on growing its stack than on a small job.
func (p *pool) hand(x *execution) {
	select {
	case p.tasks <- x:
	default:
		p.all.Go(func() { p.work(x) })
	}
}

// work runs handlers until no more are needed. One that calls runtime.Goexit
// takes the goroutine with it.
func (p *pool) work(x *execution) {
	for {
		for x != nil {
			x = p.run(x)
		}
		select {
		case x = <-p.tasks:
		case <-p.closed:
			return
		}
	}
}
