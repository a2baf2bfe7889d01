package retry_test

import (
	"testing"
	"time"

	"redrive/internal/retry"
)

func TestPolicyDecide_WhoDecides(t *testing.T) {
	yes, no, wait := true, false, 7*time.Second
	strict := with(func(p *retry.Policy) { p.NonRetryable = []string{"validation.payload_invalid", "auth.*"} })
	dropping := strict
	dropping.OnExhaustion = retry.Discard
	tests := []struct {
		name    string
		policy  retry.Policy
		failure retry.Failure
		action  retry.Action
		reason  retry.Reason
		by      string
	}{
		{"attempts left", strict, retry.Failure{Attempt: 1, Type: "x"}, retry.Retry, "", "policy:retry:1/3"},
		{"last attempt", strict, retry.Failure{Attempt: 3, Type: "x"}, retry.DeadLetter, retry.AttemptsExhausted, "policy:exhausted:3/3"},
		{"last attempt, discard", dropping, retry.Failure{Attempt: 3}, retry.Discard, retry.AttemptsExhausted, "policy:exhausted:3/3"},
		{"listed error", strict, retry.Failure{Attempt: 1, Type: "auth.expired"}, retry.DeadLetter, retry.NonRetryable, "policy:non_retryable:auth.*"},
		{"listed error, discard", dropping, retry.Failure{Attempt: 1, Type: "auth.expired"}, retry.Discard, retry.NonRetryable, "policy:non_retryable:auth.*"},
		{"listed error on the last attempt", strict, retry.Failure{Attempt: 3, Type: "auth.expired"}, retry.DeadLetter, retry.NonRetryable, "policy:non_retryable:auth.*"},
		{"RETRY beats a listed error", strict, retry.Failure{Attempt: 1, Type: "auth.expired", Answer: retry.Answer{Code: retry.CodeRetry}}, retry.Retry, "", "handler:RETRY"},
		{"RETRY never beats max_attempts", strict, retry.Failure{Attempt: 3, Answer: retry.Answer{Code: retry.CodeRetry}}, retry.DeadLetter, retry.AttemptsExhausted, "policy:exhausted:3/3"},
		{"DISCARD", strict, retry.Failure{Attempt: 1, Answer: retry.Answer{Code: retry.CodeDiscard}}, retry.Discard, retry.HandlerDiscard, "handler:DISCARD"},
		{"FAIL", strict, retry.Failure{Attempt: 1, Answer: retry.Answer{Code: retry.CodeFail}}, retry.Discard, retry.HandlerDiscard, "handler:FAIL"},
		{"DEAD_LETTER beats on_exhaustion", dropping, retry.Failure{Attempt: 1, Answer: retry.Answer{Code: retry.CodeDeadLetter}}, retry.DeadLetter, retry.HandlerDeadLetter, "handler:DEAD_LETTER"},
		{"not retryable", dropping, retry.Failure{Attempt: 1, Answer: retry.Answer{Retryable: &no}}, retry.DeadLetter, retry.HandlerDeadLetter, "handler:not_retryable"},
		{"retryable beats a listed error", strict, retry.Failure{Attempt: 1, Type: "auth.x", Answer: retry.Answer{Retryable: &yes}}, retry.Retry, "", "handler:retryable"},
		{"retry-after beats a listed error", strict, retry.Failure{Attempt: 2, Type: "auth.x", Answer: retry.Answer{RetryAfter: &wait}}, retry.Retry, "", "handler:retry_after"},
		{"RETRY with a delay", strict, retry.Failure{Attempt: 2, Answer: retry.Answer{Code: retry.CodeRetry, RetryAfter: &wait}}, retry.Retry, "", "handler:RETRY"},
		{"a code beats retryable", strict, retry.Failure{Attempt: 1, Answer: retry.Answer{Code: retry.CodeRetry, Retryable: &no}}, retry.Retry, "", "handler:RETRY"},
		{"unknown type, dead letter", dropping, retry.Failure{Attempt: 1, Unknown: retry.UnknownDeadLetter}, retry.DeadLetter, retry.UnknownType, "unknown_type:dead_letter"},
		{"unknown type, delete", strict, retry.Failure{Attempt: 1, Unknown: retry.UnknownDelete}, retry.Discard, retry.UnknownType, "unknown_type:delete"},
		{"unknown type, fail, attempts left", strict, retry.Failure{Attempt: 1, Unknown: retry.UnknownFail}, retry.Retry, "", "policy:retry:1/3"},
		{"unknown type, fail, last attempt", strict, retry.Failure{Attempt: 3, Unknown: retry.UnknownFail}, retry.DeadLetter, retry.UnknownType, "policy:exhausted:3/3"},
		{"max_attempts 0 means one execution", retry.Policy{OnExhaustion: retry.Discard}, retry.Failure{Attempt: 1}, retry.Discard, retry.AttemptsExhausted, "policy:exhausted:1/1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := test.policy.Decide(test.failure, noRandom(t))
			if d.Action != test.action || d.Reason != test.reason || d.By != test.by {
				t.Errorf("Decide = %s, %q by %q; want %s, %q by %q", d.Action, d.Reason, d.By, test.action, test.reason, test.by)
			}
			if (d.Delay != nil) != (d.Action == retry.Retry) {
				t.Errorf("Delay = %v with action %s", d.Delay, d.Action)
			}
		})
	}
}

func TestPolicyDecide_HonoursRetryAfterUnderTheCap(t *testing.T) {
	tests := []struct {
		name string
		wait time.Duration
		want time.Duration
	}{
		{"as asked, without jitter", 7 * time.Second, 7 * time.Second},
		{"above the cap", time.Hour, 5 * time.Minute},
		{"in the past", -time.Second, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := retry.Default().Decide(retry.Failure{Attempt: 1, Answer: retry.Answer{RetryAfter: &test.wait}}, noRandom(t))
			if d.Delay.Final != test.want || d.Delay.Source != retry.FromHandler || d.Delay.Raw != test.wait {
				t.Errorf("Delay = %+v, want %v by the handler", d.Delay, test.want)
			}
		})
	}
}
