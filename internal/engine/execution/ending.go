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

// panicked returns how an execution ended whose handler panicked with a value, or called
// runtime.Goexit. In the latter case the value is nil, which it never is after a panic since Go 1.21.
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

// judge returns how an execution ended whose handler returned err.
func (x *Execution) judge(err error) job.Ending {
	said := job.Ending{Outcome: job.Succeeded, FinishedAt: time.Now().UTC()}
	if err != nil {
		failed(&said, err)
	}

	// A handler whose context has ended did not succeed, whatever it returned.
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

// lacking returns how an execution ended that met a shortage. It does not count as an attempt.
func lacking(s *shortage.Error) job.Ending {
	return job.Ending{Outcome: job.Interrupted, FinishedAt: time.Now().UTC(), Error: job.ErrorInfo{
		Type: shortage.ErrorType, Message: s.Error(),
	}}
}

// failed sets in end what the error of a handler says.
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

// Interrupted returns how an execution ended that was stopped with the engine. It does not count as an
// attempt.
func Interrupted() job.Ending {
	return job.Ending{Outcome: job.Interrupted, FinishedAt: time.Now().UTC(), Error: job.ErrorInfo{
		Type: "interrupted", Message: "the engine was stopped before the job ended",
	}}
}

// Outlasted returns how an execution ended whose handler did not return in time, and was given up.
func (x *Execution) Outlasted() job.Ending {
	return x.timedOut(job.Ending{FinishedAt: time.Now().UTC()})
}

// timedOut returns how an execution ended that ran longer than its ttr. said is what its handler
// returned after that, which becomes part of the message if it explains something.
func (x *Execution) timedOut(said job.Ending) job.Ending {
	message := fmt.Sprintf("ran longer than its ttr, %v", x.ttr) + x.addition(said)

	return job.Ending{
		Outcome: job.TimedOut, FinishedAt: said.FinishedAt, Trace: said.Trace,
		Error: job.ErrorInfo{Type: "timeout", Message: message},
	}
}

// addition returns what a handler said when its context ended, with ": " before it, or "" if it only
// said that the context has ended.
func (x *Execution) addition(said job.Ending) string {
	switch said.Error.Message {
	case "", context.Canceled.Error(), context.DeadlineExceeded.Error(), context.Cause(&x.ctx).Error():
		return ""
	}

	return ": " + said.Error.Message
}
