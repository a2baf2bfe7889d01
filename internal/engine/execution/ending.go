package execution

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
func (x *Execution) judge(err error) job.Ending {
	said := job.Ending{Outcome: job.Succeeded, FinishedAt: time.Now().UTC()}
	if err != nil {
		failed(&said, err)
	}

	// A handler whose context has ended did not succeed, whatever it says.
	cause := context.Cause(&x.ctx)
	switch {
	case errors.Is(cause, ErrTimeout):
		return x.timedOut(said)
	case cause != nil:
		end := Interrupted()
		end.Error.Message += x.addition(said)
		end.Trace = said.Trace
		return end
	case errors.As(err, &x.Shortage):
		return lacking(x.Shortage)
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

// Interrupted describes an execution that a stop ended: it does not count.
func Interrupted() job.Ending {
	return job.Ending{Outcome: job.Interrupted, FinishedAt: time.Now().UTC(), Error: job.ErrorInfo{
		Type: "interrupted", Message: "the engine was stopped before the job ended",
	}}
}

// Outlasted describes an execution whose handler did not return in time.
func (x *Execution) Outlasted() job.Ending {
	return x.timedOut(job.Ending{FinishedAt: time.Now().UTC()})
}

// timedOut describes an execution that outlasted its ttr. What its handler
// said after that is kept where it explains something.
func (x *Execution) timedOut(said job.Ending) job.Ending {
	message := fmt.Sprintf("ran longer than its ttr, %v", x.ttr) + x.addition(said)

	return job.Ending{
		Outcome: job.TimedOut, FinishedAt: said.FinishedAt, Trace: said.Trace,
		Error: job.ErrorInfo{Type: "timeout", Message: message},
	}
}

// addition is what a handler said when its context ended, if it is more than
// just that.
func (x *Execution) addition(said job.Ending) string {
	switch said.Error.Message {
	case "", context.Canceled.Error(), context.DeadlineExceeded.Error(), context.Cause(&x.ctx).Error():
		return ""
	}

	return ": " + said.Error.Message
}
