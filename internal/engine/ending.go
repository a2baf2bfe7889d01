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
	"redrive/internal/shortage"
	"redrive/internal/wire"
)

// maxStack bounds the trace of a panic.
const maxStack = 64 << 10

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
	said := job.Ending{Outcome: job.Succeeded, FinishedAt: time.Now().UTC()}
	if err != nil {
		failed(&said, err)
	}

	cause := context.Cause(&x.ctx)
	switch {
	case errors.Is(cause, errTimeout):
		return x.timedOut(said)
	case cause != nil:
		end := interrupted()
		end.Error.Message += x.addition(said)
		end.Trace = said.Trace
		return end
	case errors.As(err, &x.short):
		return lacking(x.short)
	}

	return said
}

// lacking describes an execution that met a shortage: it does not count.
func lacking(s *shortage.Error) job.Ending {
	return job.Ending{Outcome: job.Interrupted, FinishedAt: time.Now().UTC(), Error: job.ErrorInfo{
		Type: shortage.ErrorType, Message: s.Error(),
	}}
}

// failed describes an error that a handler returned.
func failed(end *job.Ending, err error) {
	end.Outcome = job.Failed
	end.Error = job.ErrorInfo{Type: "error", Message: err.Error()}

	var f *job.Failure
	if errors.As(err, &f) && f != nil {
		end.Error = f.ErrorInfo
		end.Error.Type = cmp.Or(end.Error.Type, "error")
		end.Trace = f.Trace
		end.Answer = f.Answer
	}
}

// interrupted describes an execution that a stop ended: it does not count.
func interrupted() job.Ending {
	return job.Ending{Outcome: job.Interrupted, FinishedAt: time.Now().UTC(), Error: job.ErrorInfo{
		Type: "interrupted", Message: "the engine was stopped before the job ended",
	}}
}

// outlasted describes an execution whose handler did not return in time.
func (x *execution) outlasted() job.Ending {
	return x.timedOut(job.Ending{FinishedAt: time.Now().UTC()})
}

// timedOut describes an execution that outlasted its ttr. What its handler
// said after that is kept where it explains something.
func (x *execution) timedOut(said job.Ending) job.Ending {
	message := fmt.Sprintf("ran longer than its ttr, %v", x.ttr) + x.addition(said)

	return job.Ending{
		Outcome: job.TimedOut, FinishedAt: said.FinishedAt, Trace: said.Trace,
		Error: job.ErrorInfo{Type: "timeout", Message: message},
	}
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

// settle decides what becomes of a job whose execution ended. A dead letter
// that it leaves may still have to be sent.
func (e *Engine) settle(j *job.Job, end job.Ending) outcome {
	// Rules, policies and everything after them see no secrets.
	e.hide(j, &end)

	if end.Outcome.Counted() && end.Outcome != job.Succeeded {
		end.Ruling, end.Note = e.o.Rules(*j, end)
	}

	o := outcome{job: j, settlement: j.Settle(end, e.o.Random)}

	// What becomes of a dead letter that is kept is known at once.
	if o.settlement.DeadLetter != job.NoDeadLetter {
		kept, known := e.o.Kept(j.Queue)
		o.settlement = o.settlement.Delivered(kept)
		o.sends = !known
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
