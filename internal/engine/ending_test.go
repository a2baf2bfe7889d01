package engine_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
)

func TestEngine_SettlesWhatWorks(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("ok", succeed)
		r.start()
		id := r.enqueue(ofType("ok"))[0]
		synctest.Wait()
		a := r.want(id, "completed", 1)[0]
		if a.Outcome != job.Succeeded || a.Number != 1 || a.Worker != "w1" || a.DecidedBy != "handler:success" {
			t.Errorf("attempt = %+v", a)
		}
		if len(r.settled) != 1 || r.settled[0].ID != id {
			t.Errorf("settled %v, want the one job", r.settled)
		}
	})
}

type nasty struct{}

func (nasty) Error() string { panic("even its error is broken") }

// dig puts many frames on the stack.
func dig(depth int) {
	if depth == 0 {
		panic(strings.Repeat("deep", 100_000))
	}
	dig(depth - 1)
}

func TestEngine_SurvivesHandlersThatDoNotReturn(t *testing.T) {
	var none map[string]int
	var list []int
	var nothing *job.Failure
	tests := []struct {
		name    string
		handler func() error
		message string
	}{
		{"panic with a text", func() error { panic("ouch") }, "ouch"},
		{"panic with an error", func() error { panic(errors.New("ouch")) }, "ouch"},
		{"panic(nil)", func() error { panic(nil) }, "nil"},
		{"nil map", func() error { none["x"] = 1; return nil }, "nil map"},
		{"index out of range", func() error { _ = list[len(none)+3]; return nil }, "out of range"},
		{"runtime.Goexit", func() error { runtime.Goexit(); return nil }, "Goexit"},
		{"an error that panics", func() error { return nasty{} }, "even its error"},
		{"a typed nil", func() error { return nothing }, "nil pointer"},
		{"a deep stack and a long text", func() error { dig(5000); return nil }, "deep"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.on("bad", func(context.Context, job.Job) error { return test.handler() })
				r.start()
				id := r.enqueue(ofType("bad"))[0]
				synctest.Wait()
				a := r.want(id, "retryable", 1)[0]
				if a.Outcome != job.Panicked || a.Error.Type != "panic" || !strings.Contains(a.Error.Message, test.message) {
					t.Errorf("attempt ended as %s with %s: %.80s", a.Outcome, a.Error.Type, a.Error.Message)
				}
				if !strings.Contains(a.Trace, "goroutine") || len(a.Trace) > 64<<10 {
					t.Errorf("the trace has %d bytes: %.80s", len(a.Trace), a.Trace)
				}
				if running := r.engine.Running(); len(running) != 0 {
					t.Errorf("workers in use afterwards: %v", running)
				}
			})
		})
	}
}

func TestEngine_EndsAnExecutionAtItsTTR(t *testing.T) {
	tests := []struct {
		name    string
		handler func(context.Context, job.Job) error
		message string
	}{
		{"returns its context's error", untilTold, "ran longer than its ttr, 30s"},
		{"returns nil", func(ctx context.Context, _ job.Job) error { <-ctx.Done(); return nil }, "ran longer than its ttr, 30s"},
		{"says more", func(ctx context.Context, _ job.Job) error { <-ctx.Done(); return errors.New("stuck at row 7") },
			"ran longer than its ttr, 30s: stuck at row 7"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.on("slow", test.handler)
				r.start()
				j := ofType("slow")
				j.Timeout = 30 * time.Second
				begin := time.Now()
				id := r.enqueue(j)[0]
				time.Sleep(30*time.Second - 1)
				synctest.Wait()
				r.want(id, "active", 0)
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				a := r.want(id, "retryable", 1)[0]
				if a.Outcome != job.TimedOut || a.Error.Type != "timeout" || a.Error.Message != test.message {
					t.Errorf("attempt ended as %s with %+v", a.Outcome, a.Error)
				}
				if !a.FinishedAt.Equal(begin.Add(30 * time.Second)) {
					t.Errorf("finished at %v", a.FinishedAt)
				}
			})
		})
	}
}

func TestEngine_JobsWithoutTTRGetTheDefault(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("slow", untilTold)
		r.start(func(o *options) { o.Timeout = 10 * time.Second })
		id := r.enqueue(ofType("slow"))[0]
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.want(id, "retryable", 1)
	})
}

// A handler that cannot be stopped keeps its place, but not its job.
func TestEngine_GivesUpAHandlerThatIgnoresItsContext(t *testing.T) {
	bubble(t, func(r *rig) {
		let := make(chan struct{})
		r.on("deaf", func(context.Context, job.Job) error { <-let; return nil })
		r.on("ok", succeed)
		r.start(func(o *options) { o.Workers = func(string) int { return 1 } })
		deaf, next := ofType("deaf"), ofType("ok")
		deaf.Timeout, deaf.Policy.MaxAttempts = 10*time.Second, 1
		ids := r.enqueue(deaf, next)
		time.Sleep(time.Minute)
		synctest.Wait()
		a := r.want(ids[0], job.StatusDeadLetter, 1)[0]
		if a.Outcome != job.TimedOut || r.engine.Running()["default"] != 1 {
			t.Errorf("outcome %s while %v run, want timed_out and one", a.Outcome, r.engine.Running())
		}
		r.want(ids[1], "available", 0)
		close(let)
		synctest.Wait()
		r.want(ids[1], "completed", 1)
		if attempts := r.want(ids[0], job.StatusDeadLetter, 1); len(attempts) != 1 {
			t.Errorf("the late result was recorded: %+v", attempts)
		}
	})
}

func TestEngine_StopsAJobThatIsCancelled(t *testing.T) {
	bubble(t, func(r *rig) {
		var cause error
		r.on("slow", func(ctx context.Context, _ job.Job) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		})
		r.start()
		id := r.enqueue(ofType("slow"))[0]
		time.Sleep(time.Second)
		if _, err := r.store.Cancel(r.Context(), time.Now(), id, 1, audit.Actor{Name: "anna"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		attempts := r.want(id, "cancelled", 0)
		if cause == nil || !strings.Contains(cause.Error(), "cancelled") {
			t.Errorf("the handler was stopped because of %v", cause)
		}
		if len(attempts) != 1 || attempts[0].Outcome != job.CancelledBy || len(r.settled) != 0 || len(r.engine.Running()) != 0 {
			t.Errorf("attempts %+v, settled %v, running %v", attempts, r.settled, r.engine.Running())
		}
	})
}
