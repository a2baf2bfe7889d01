// Package execution has the jobs that this process runs: an Execution for each job whose lease it has,
// and the Set of all of them, which decides once for each execution how it ended.
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

// ReturnLimit is how long a handler may take to return after its context has ended.
const ReturnLimit = 2 * time.Second

// Handler does the work of one job. It returns nil for success, and otherwise an error, with which the
// attempt fails. A *job.Failure, wrapped or not, has a type, a trace and an answer for the policy. A
// *shortage.Error is not a failure of the job. ctx ends at the end of the job's ttr, when a person
// cancels the job, when its lease is lost, and at the end of a graceful stop; its cause says which. If
// ctx has ended, a return of nil does not count as success.
type Handler func(ctx context.Context, j job.Job) error

// Execution is one job whose lease we have. It is prefetched, waits for an earlier handler, is run by
// its handler, or has its dead letter sent.
type Execution struct {
	Job        *job.Job // shared with its outcome; must not be changed after the execution has begun
	Prefetched bool     // the job was claimed before a worker was free
	Task                // set when the execution begins

	// Set by Call.
	Ending   job.Ending      // how the execution ended
	Shortage *shortage.Error // the shortage that the handler met; nil: none

	// Only [Set] changes these.
	begun     bool
	returned  bool      // the handler has returned; the outcome may not be decided yet
	ended     bool      // the outcome is decided
	cause     error     // why the outcome was decided before the handler returned; nil: it was not
	gone      time.Time // when the outcome was decided before the handler returned
	waitedFor bool      // an execution waited for the handler as long as it had to, and began
}

// Task is what an execution does once it begins: run a handler, or end at once.
type Task struct {
	handler Handler    // nil: end at once
	without job.Ending // how an execution without a handler ends

	ctx    runContext
	cancel context.CancelCauseFunc // ends ctx; nil: there is no handler
	ttr    time.Duration
	limit  time.Time // when the handler is given up; zero: there is none
}

// NewTask returns the task of running a handler from now on, for at most ttr.
func NewTask(handler Handler, ttr time.Duration, now time.Time) (t Task) {
	t.handler = handler
	t.ttr = ttr
	t.ctx.deadline = now.Add(ttr)
	t.limit = t.ctx.deadline.Add(ReturnLimit)
	t.ctx.Context, t.cancel = context.WithCancelCause(context.Background())

	return t
}

// WithoutHandler returns the task of a job that ends at once, without a handler.
func WithoutHandler(end job.Ending) Task { return Task{without: end} }

// HasHandler reports whether the task is to run a handler.
func (t *Task) HasHandler() bool { return t.handler != nil }

// Deadline returns when the context of the handler ends; zero: there is no handler.
func (t *Task) Deadline() time.Time { return t.ctx.deadline }

// EndContext ends the context of the handler, if there is one, and frees its resources.
func (t *Task) EndContext(cause error) {
	if t.cancel != nil {
		t.cancel(cause)
	}
}

// begin begins an execution with a task.
func (x *Execution) begin(t Task) {
	x.Task = t
	x.begun = true
}

// abandon ends an execution for a cause before its handler has returned. What the handler returns is
// ignored.
func (x *Execution) abandon(cause error) {
	x.ended = true
	x.cause = cause
	x.EndContext(cause)
}

// Call calls the handler, if there is one, and sets Ending and Shortage.
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

// runContext is the context of a handler, with a deadline and a cause of its end. It is one context
// with both, because a context with a deadline inside one with a cause would be the most expensive
// part of a small job.
type runContext struct {
	context.Context // the alarm ends it at the deadline, with ErrTimeout
	deadline        time.Time
}

// Deadline returns the deadline of the handler.
func (c *runContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Err returns context.DeadlineExceeded after the deadline, as other contexts do.
func (c *runContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), ErrTimeout) {
		return context.DeadlineExceeded
	}

	return err
}
