package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// always is a rule that says the same of each failure.
func always(ruling *retry.Ruling) func(job.Job, job.Ending) (*retry.Ruling, string) {
	return func(job.Job, job.Ending) (*retry.Ruling, string) { return ruling, "" }
}

// Rules go before the handler's answer, and that before the policy, of which
// the list of errors goes first.
func TestEngine_RulesGoBeforeHandlersAndPolicies(t *testing.T) {
	answer := func(code retry.Code) engine.Handler {
		return fails(&job.Failure{ErrorInfo: job.ErrorInfo{Type: "auth.expired"}, Answer: retry.Answer{Code: code}})
	}
	ruling := func(action retry.Action) *retry.Ruling { return &retry.Ruling{Rule: "r", Action: action} }
	tests := []struct {
		name    string
		rule    *retry.Ruling
		handler engine.Handler
		policy  func(*retry.Policy)
		status  job.Status
		by      string
		reason  retry.Reason
	}{
		{"a rule retries what the handler and the policy would not", ruling(retry.Retry), answer(retry.CodeDiscard), never, "retryable", "rule:r", ""},
		{"a rule keeps what the handler would retry", ruling(retry.DeadLetter), answer(retry.CodeRetry), nil, "dead_letter", "rule:r", retry.RuleDecided},
		{"a rule discards what the handler would keep", ruling(retry.Discard), answer(retry.CodeDeadLetter), nil, "discarded", "rule:r", retry.RuleDecided},
		{"no rule: the handler discards what the policy would retry", nil, answer(retry.CodeDiscard), nil, "discarded", "handler:DISCARD", retry.HandlerDiscard},
		{"no rule: the handler retries what the policy would not", nil, answer(retry.CodeRetry), never, "retryable", "handler:RETRY", ""},
		{"neither: the policy knows the error", nil, answer(""), never, "dead_letter", "policy:non_retryable:auth.*", retry.NonRetryable},
		{"neither: the policy counts", nil, answer(""), nil, "retryable", "policy:retry:1/3", ""},
		{"a rule without executions left says nothing", &retry.Ruling{Rule: "r", Action: retry.Retry, Limit: 1}, answer(""), nil, "retryable", "policy:retry:1/3", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.on("bad", test.handler)
				r.start(func(o *options) { o.Rules = always(test.rule) })
				j := ofType("bad")
				if test.policy != nil {
					test.policy(&j.Policy)
				}
				id := r.enqueue(j)[0]
				synctest.Wait()
				a := r.want(id, test.status, 1)[0]
				if reason := r.detail(id).Job.Reason; a.DecidedBy != test.by || reason != test.reason {
					t.Errorf("decided by %s, reason %q, want %s, %q", a.DecidedBy, reason, test.by, test.reason)
				}
			})
		})
	}
}

func never(p *retry.Policy) { p.NonRetryable = []string{"auth.*"} }

// A rule can allow executions beyond the policy's, up to its own bound; then
// the policy has the last word.
func TestEngine_ARuleRetriesUpToItsOwnBound(t *testing.T) {
	bubble(t, func(r *rig) {
		minute := time.Minute
		r.on("bad", fails(failure("x")))
		r.start(func(o *options) {
			o.Rules = always(&retry.Ruling{Rule: "more", Action: retry.Retry, Limit: 5, Delay: &minute})
		})
		id := r.enqueue(once("bad"))[0]
		time.Sleep(time.Hour)
		synctest.Wait()
		attempts := r.want(id, "dead_letter", 5)
		for i, a := range attempts[:4] {
			if a.DecidedBy != "rule:more" || a.Delay.Final != time.Minute {
				t.Errorf("attempt %d: decided by %s, delay %+v", i+1, a.DecidedBy, a.Delay)
			}
			if gap := attempts[i+1].StartedAt.Sub(a.FinishedAt); gap != time.Minute {
				t.Errorf("attempt %d came after %v", i+2, gap)
			}
		}
		if got := attempts[4].DecidedBy; got != "policy:exhausted:5/5" {
			t.Errorf("the last was decided by %s", got)
		}
	})
}

// Rules see each failure that counts, as it was claimed, and nothing else.
func TestEngine_RulesSeeTheFailure(t *testing.T) {
	bubble(t, func(r *rig) {
		type seen struct {
			attempts int
			outcome  job.Outcome
			typ      string
		}
		var saw []seen
		r.on("ok", succeed)
		r.on("slow", untilTold)
		e := r.start(func(o *options) {
			o.Rules = func(j job.Job, end job.Ending) (*retry.Ruling, string) {
				r.mu.Lock()
				defer r.mu.Unlock()
				saw = append(saw, seen{j.Attempts, end.Outcome, end.Error.Type})
				return nil, "the rule broken failed"
			}
		})
		j := ofType("slow")
		j.Timeout = time.Second
		ids := r.enqueue(ofType("ok"), j)
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait() // the second execution is under way
		r.mu.Lock()
		if len(saw) != 1 || saw[0] != (seen{0, job.TimedOut, "timeout"}) {
			t.Errorf("the rules saw %+v", saw)
		}
		r.mu.Unlock()
		if err := e.Stop(r.Context()); err != nil {
			t.Fatal(err)
		}
		fine, slow := r.want(ids[0], "completed", 1), r.want(ids[1], "retryable", 2)
		if fine[0].Note != "" || slow[0].Note != "the rule broken failed" || slow[1].Note != slow[0].Note {
			t.Errorf("attempts: %+v, %+v", fine, slow)
		}
	})
}

// The engine asks no rules, and draws no delay, for a result that comes too late.
func TestEngine_DecidesEachExecutionOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		var asked, drawn atomic.Int64
		r.on("deaf", func(context.Context, job.Job) error { time.Sleep(time.Minute); return failure("x") })
		r.start(func(o *options) {
			o.Rules = func(job.Job, job.Ending) (*retry.Ruling, string) { asked.Add(1); return nil, "" }
			o.Random = func() float64 { drawn.Add(1); return 0 }
		})
		slow := ofType("deaf")
		slow.Timeout = 10 * time.Second
		slow.Policy.Jitter = retry.Jitter{Low: 1, High: 2}
		ids := r.enqueue(slow, slow)
		synctest.Wait()
		r.cancel(ids[1])
		time.Sleep(time.Minute) // the second execution of the first waits until now
		synctest.Wait()
		if asked.Load() != 1 || drawn.Load() != 1 {
			t.Errorf("asked the rules %d times, drew %d numbers", asked.Load(), drawn.Load())
		}
		time.Sleep(time.Hour)
	})
}

// A handler that returned in time has not timed out, however long the rules
// take to say what becomes of its job.
func TestEngine_SlowRulesDoNotCountAsTheHandlersTime(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("bad", fails(failure("http.500")))
		r.start(func(o *options) {
			o.Rules = func(job.Job, job.Ending) (*retry.Ruling, string) {
				time.Sleep(time.Minute)
				return nil, ""
			}
		})
		j := ofType("bad")
		j.Timeout, j.Policy.MaxAttempts = time.Second, 1
		id := r.enqueue(j)[0]
		time.Sleep(time.Minute)
		synctest.Wait()
		if a := r.want(id, "dead_letter", 1)[0]; a.Outcome != job.Failed || a.FinishedAt.Sub(a.StartedAt) != 0 {
			t.Errorf("the attempt %s after %v", a.Outcome, a.FinishedAt.Sub(a.StartedAt))
		}
	})
}

// Rules about a handler that was given up keep no other job waiting.
func TestEngine_SlowRulesDelayNoOtherJob(t *testing.T) {
	bubble(t, func(r *rig) {
		id, _ := r.stick(100*time.Second, func(o *options) {
			o.Rules = func(job.Job, job.Ending) (*retry.Ruling, string) {
				time.Sleep(time.Minute)
				return nil, ""
			}
		})
		r.on("good", succeed)
		good := ofType("good")
		good.Queue = "another"
		other := r.enqueue(good)[0]
		synctest.Wait()
		r.want(other, "completed", 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if a := r.detail(id).Attempts; len(a) != 1 || a[0].Outcome != job.TimedOut {
			t.Errorf("the attempts of the job that was given up: %+v", a)
		}
		time.Sleep(time.Minute) // its handler returns
	})
}
