package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store/databasetest"
)

const sec = time.Second

// delaysOf runs a job that always fails to its end, and returns the time
// between its executions.
func delaysOf(r *rig, policy retry.Policy) []time.Duration {
	var starts []time.Time
	r.on("flaky", func(context.Context, job.Job) error {
		starts = append(starts, time.Now())
		return errors.New("no luck")
	})
	r.start()
	j := ofType("flaky")
	j.Policy = policy
	id := r.enqueue(j)[0]
	time.Sleep(2 * time.Hour)
	synctest.Wait()
	r.want(id, job.StatusDeadLetter, policy.MaxAttempts)
	var delays []time.Duration
	for i := 1; i < len(starts); i++ {
		delays = append(delays, starts[i].Sub(starts[i-1]))
	}
	return delays
}

func TestEngine_WaitsExactlyAsThePolicySays(t *testing.T) {
	databasetest.NeedsFile(t, "in its hour, the lease of a server is renewed thousands of times")
	tests := []struct {
		name   string
		policy retry.Policy
		want   []time.Duration
	}{
		{"the Open Job Spec's table, an hour of backoff",
			steady(func(p *retry.Policy) { p.MaxAttempts = 18 }),
			[]time.Duration{1 * sec, 2 * sec, 4 * sec, 8 * sec, 16 * sec, 32 * sec, 64 * sec, 128 * sec, 256 * sec,
				300 * sec, 300 * sec, 300 * sec, 300 * sec, 300 * sec, 300 * sec, 300 * sec, 300 * sec}},
		{"immediate",
			steady(func(p *retry.Policy) { p.Strategy = retry.Immediate }),
			[]time.Duration{0, 0}},
		{"constant",
			steady(func(p *retry.Policy) { p.Strategy, p.InitialInterval = retry.Constant, 10*sec }),
			[]time.Duration{10 * sec, 10 * sec}},
		{"linear",
			steady(func(p *retry.Policy) { p.Strategy, p.MaxAttempts = retry.Linear, 4 }),
			[]time.Duration{1 * sec, 2 * sec, 3 * sec}},
		{"polynomial",
			steady(func(p *retry.Policy) { p.Strategy, p.Coefficient, p.MaxAttempts = retry.Polynomial, 3, 4 }),
			[]time.Duration{1 * sec, 8 * sec, 27 * sec}},
		{"schedule, whose last entry repeats",
			steady(func(p *retry.Policy) {
				p.Strategy, p.Schedule, p.MaxAttempts = retry.Schedule, []time.Duration{5 * sec, time.Minute}, 4
			}),
			[]time.Duration{5 * sec, time.Minute, time.Minute}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				if got := delaysOf(r, test.policy); !slices.Equal(got, test.want) {
					t.Errorf("delays = %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestEngine_KeepsTheExplanationOfADelay(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("flaky", fails(errors.New("no luck")))
		r.start(func(o *options) { o.Random = func() float64 { return 0.5 } })
		j := ofType("flaky")
		j.Policy = retry.Default()
		id := r.enqueue(j)[0]
		synctest.Wait()
		a := r.want(id, "retryable", 1)[0]
		if a.Delay == nil || a.Delay.Factor != 1 || a.Delay.Final != sec || a.DecidedBy != "policy:retry:1/3" {
			t.Errorf("attempt = %+v with delay %+v", a, a.Delay)
		}
	})
}

func TestEngine_ObeysTheHandlersAnswer(t *testing.T) {
	no, wait := false, 7*sec
	answer := func(a retry.Answer) error { return fmt.Errorf("wrapped: %w", &job.Failure{Answer: a}) }
	tests := []struct {
		name   string
		err    error
		status job.Status
		reason retry.Reason
		by     string
		delay  time.Duration
	}{
		{"RETRY", answer(retry.Answer{Code: retry.CodeRetry}), "retryable", "", "handler:RETRY", sec},
		{"DISCARD", answer(retry.Answer{Code: retry.CodeDiscard}), "discarded", retry.HandlerDiscard, "handler:DISCARD", 0},
		{"FAIL", answer(retry.Answer{Code: retry.CodeFail}), "discarded", retry.HandlerDiscard, "handler:FAIL", 0},
		{"DEAD_LETTER", answer(retry.Answer{Code: retry.CodeDeadLetter}), job.StatusDeadLetter, retry.HandlerDeadLetter, "handler:DEAD_LETTER", 0},
		{"not retryable", answer(retry.Answer{Retryable: &no}), job.StatusDeadLetter, retry.HandlerDeadLetter, "handler:not_retryable", 0},
		{"retry after", answer(retry.Answer{RetryAfter: &wait}), "retryable", "", "handler:retry_after", 7 * sec},
		{"a listed error", failure("auth.expired"), job.StatusDeadLetter, retry.NonRetryable, "policy:non_retryable:auth.*", 0},
		{"a plain error", errors.New("no luck"), "retryable", "", "policy:retry:1/3", sec},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.on("flaky", fails(test.err))
				r.start()
				j := ofType("flaky")
				j.Policy.NonRetryable = []string{"auth.*"}
				id := r.enqueue(j)[0]
				synctest.Wait()
				a := r.want(id, test.status, 1)[0]
				got := r.detail(id).Job
				if got.Reason != test.reason || a.DecidedBy != test.by || a.Outcome != job.Failed {
					t.Errorf("reason %q decided by %q as %s, want %q by %q", got.Reason, a.DecidedBy, a.Outcome, test.reason, test.by)
				}
				if test.delay != 0 && !got.RunAt.Equal(time.Now().Add(test.delay)) {
					t.Errorf("runs again at %v, want in %v", got.RunAt, test.delay)
				}
			})
		})
	}
}

func TestEngine_RefusedDeadLetterStaysVisible(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("flaky", fails(failure("x")))
		r.start(func(o *options) { o.Deliver = only(func(string) bool { return false }) })
		j := ofType("flaky")
		j.Policy.MaxAttempts = 1
		id := r.enqueue(j)[0]
		synctest.Wait()
		r.want(id, job.StatusDLQFailed, 1)
		if got := r.store.Snapshot().Totals; got.DLQFailed != 1 || got.FailedPermanently != 1 {
			t.Errorf("totals = %+v, want one jobs_dlq_failed", got)
		}
	})
}
