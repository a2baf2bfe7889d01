// Package execution has the jobs that this process runs: one Execution for each job whose
// lease it has, how that ends, and the Set of all of them, which decides once for each how it
// ended.
package execution

import (
	"context"
	"errors"
	"time"

	"redrive/internal/job"
	"redrive/internal/shortage"
)

// The causes for which a handler's context ends early.
var (
	ErrTimeout   = errors.New("the job ran longer than its ttr")
	ErrStopping  = errors.New("the engine is stopping")
	ErrCancelled = errors.New("the job was cancelled")
	ErrLeaseLost = errors.New("the lease of the job was lost")
)

// ReturnLimit is what a handler whose context has ended has to return.
const ReturnLimit = 2 * time.Second

// Handler does the work of one job. Nil is success. Any error fails the
// attempt; a *job.Failure, wrapped or not, carries a type, a trace and an
// answer to the policy; a *shortage.Error is no failure of the job. ctx ends at
// the job's ttr, when a person cancels the job, when its lease is lost, and at
// the end of a graceful stop; its cause says which. A handler that returns
// later than that is not believed.
type Handler func(ctx context.Context, j job.Job) error

// Execution is one job whose lease we have: prefetched, its handler at work, its dead letter
// on the way, or the wait for an earlier handler.
type Execution struct {
	Job        *job.Job // shared with its outcome, and not to be changed once it has begun
	Prefetched bool     // claimed before a worker was free
	Task                // set when it begins

	// Set by Call.
	Ending   job.Ending      // how it ended
	Shortage *shortage.Error // what its handler lacked; nil: nothing

	// What follows is changed by [Set] only.
	begun     bool
	returned  bool      // its handler: the rules are asked about how it ended
	ended     bool      // its outcome is decided
	cause     error     // why it was decided before its handler returned; nil: it was not
	gone      time.Time // when it was given up, or fenced, before its handler returned
	waitedFor bool      // the next execution waited for its handler long enough
}

// Task is what an execution does once it begins.
type Task struct {
	handler Handler    // nil: none is to run
	without job.Ending // how an execution without a handler ends

	ctx    runContext
	cancel context.CancelCauseFunc // of ctx; nil: there is no handler
	ttr    time.Duration
	limit  time.Time // when it is given up; zero: never
}

// NewTask is a handler that begins now and has a time to run.
func NewTask(handler Handler, ttr time.Duration, now time.Time) (t Task) {
	t.handler = handler
	t.ttr = ttr
	t.ctx.deadline = now.Add(ttr)
	t.limit = t.ctx.deadline.Add(ReturnLimit)
	t.ctx.Context, t.cancel = context.WithCancelCause(context.Background())

	return t
}

// WithoutHandler is the task of a job that ends at once.
func WithoutHandler(end job.Ending) Task { return Task{without: end} }

// HasHandler reports whether a handler is to run, or runs.
func (t *Task) HasHandler() bool { return t.handler != nil }

// Deadline is when the context of the handler ends; zero: there is no handler.
func (t *Task) Deadline() time.Time { return t.ctx.deadline }

// EndContext ends the context of the handler, if there is one, and frees what was
// made of it.
func (t *Task) EndContext(cause error) {
	if t.cancel != nil {
		t.cancel(cause)
	}
}

// begin lets an execution begin a task.
func (x *Execution) begin(t Task) {
	x.Task = t
	x.begun = true
}

// abandon ends an execution, whatever its handler will say.
func (x *Execution) abandon(cause error) {
	x.ended = true
	x.cause = cause
	x.EndContext(cause)
}

// Call calls the handler, if there is one, and keeps how it ended.
func (x *Execution) Call() {
	if x.handler == nil {
		x.Ending = x.without
		return
	}

	returned := false
	defer func() {
		if !returned {
			x.Ending = panicked(recover())
		}
	}()

	err := x.handler(&x.ctx, *x.Job)
	x.Ending = x.judge(err) // the error's own methods may panic, too
	returned = true
}

// runContext is the context of a handler. It ends with a cause of ours and has
// a deadline; a context with a deadline below one with a cause would be the
// most expensive part of a small job.
type runContext struct {
	context.Context // ended at the deadline with ErrTimeout, by the alarm
	deadline        time.Time
}

func (c *runContext) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *runContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), ErrTimeout) {
		return context.DeadlineExceeded
	}

	return err
}
