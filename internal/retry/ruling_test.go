package retry_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"redrive/internal/retry"
)

func TestPolicyDecide_WhoGoesFirst(t *testing.T) {
	no, wait := false, 7*time.Second
	strict := with(func(p *retry.Policy) { p.NonRetryable = []string{"auth.*"} })
	again := &retry.Ruling{Rule: "again", Action: retry.Retry}
	bury := &retry.Ruling{Rule: "bury", Action: retry.DeadLetter}
	drop := &retry.Ruling{Rule: "drop", Action: retry.Discard}
	five := &retry.Ruling{Rule: "five", Action: retry.Retry, Limit: 5}
	two := &retry.Ruling{Rule: "two", Action: retry.Retry, Limit: 2}
	tests := []struct {
		name    string
		failure retry.Failure
		action  retry.Action
		reason  retry.Reason
		by      string
	}{
		{"a rule retries", retry.Failure{Attempt: 1, Ruling: again}, retry.Retry, "", "rule:again"},
		{"a rule beats a listed error", retry.Failure{Attempt: 1, Type: "auth.x", Ruling: again}, retry.Retry, "", "rule:again"},
		{"a rule beats DISCARD", retry.Failure{Attempt: 1, Ruling: again, Answer: retry.Answer{Code: retry.CodeDiscard}}, retry.Retry, "", "rule:again"},
		{"a rule beats DEAD_LETTER", retry.Failure{Attempt: 1, Ruling: drop, Answer: retry.Answer{Code: retry.CodeDeadLetter}}, retry.Discard, retry.RuleDecided, "rule:drop"},
		{"a rule beats RETRY", retry.Failure{Attempt: 1, Ruling: bury, Answer: retry.Answer{Code: retry.CodeRetry}}, retry.DeadLetter, retry.RuleDecided, "rule:bury"},
		{"a rule beats a retry-after", retry.Failure{Attempt: 1, Ruling: bury, Answer: retry.Answer{RetryAfter: &wait}}, retry.DeadLetter, retry.RuleDecided, "rule:bury"},
		{"a rule beats a poison envelope", retry.Failure{Attempt: 1, Ruling: drop, Answer: retry.Answer{Poison: retry.NotJSON}}, retry.Discard, retry.RuleDecided, "rule:drop"},
		{"a rule without a bound has the policy's", retry.Failure{Attempt: 3, Ruling: again}, retry.DeadLetter, retry.AttemptsExhausted, "policy:exhausted:3/3"},
		{"a rule's bound beyond the policy's", retry.Failure{Attempt: 4, Ruling: five}, retry.Retry, "", "rule:five"},
		{"a rule's bound is reached", retry.Failure{Attempt: 5, Ruling: five}, retry.DeadLetter, retry.AttemptsExhausted, "policy:exhausted:5/5"},
		{"a rule's bound below the policy's: the policy decides", retry.Failure{Attempt: 2, Ruling: two}, retry.Retry, "", "policy:retry:2/3"},
		{"beyond a rule's bound the handler is heard", retry.Failure{Attempt: 5, Ruling: five, Answer: retry.Answer{Code: retry.CodeFail}}, retry.Discard, retry.HandlerDiscard, "handler:FAIL"},
		{"a rule buries beyond every bound", retry.Failure{Attempt: 9, Ruling: bury}, retry.DeadLetter, retry.RuleDecided, "rule:bury"},
		{"expired beats a rule", retry.Failure{Attempt: 1, Ruling: again, Expired: retry.DeadLetter}, retry.DeadLetter, retry.Expired, "expired:dead_letter"},
		{"expired, discarded", retry.Failure{Attempt: 1, Expired: retry.Discard}, retry.Discard, retry.Expired, "expired:discard"},
		{"an unknown type beats a rule", retry.Failure{Attempt: 1, Ruling: again, Unknown: retry.UnknownDelete}, retry.Discard, retry.UnknownType, "unknown_type:delete"},
		{"an unknown type beats an end of time", retry.Failure{Attempt: 1, Unknown: retry.UnknownDeadLetter, Expired: retry.Discard}, retry.DeadLetter, retry.UnknownType, "unknown_type:dead_letter"},
		{"a rule retries an unknown type", retry.Failure{Attempt: 1, Ruling: again, Unknown: retry.UnknownFail}, retry.Retry, "", "rule:again"},
		{"a rule ends an unknown type", retry.Failure{Attempt: 1, Ruling: drop, Unknown: retry.UnknownFail}, retry.Discard, retry.UnknownType, "rule:drop"},
		{"poison beats a code", retry.Failure{Attempt: 1, Answer: retry.Answer{Code: retry.CodeRetry, Poison: retry.MissingURN}}, retry.DeadLetter, retry.MissingURN, "envelope:missing_urn"},
		{"poison beats on_exhaustion and not_retryable", retry.Failure{Attempt: 1, Answer: retry.Answer{Retryable: &no, Poison: retry.InvalidData}}, retry.DeadLetter, retry.InvalidData, "envelope:invalid_data"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := strict.Decide(test.failure, noRandom(t))
			if d.Action != test.action || d.Reason != test.reason || d.By != test.by {
				t.Errorf("Decide = %s, %q by %q; want %s, %q by %q", d.Action, d.Reason, d.By, test.action, test.reason, test.by)
			}
			if (d.Delay != nil) != (d.Action == retry.Retry) {
				t.Errorf("Delay = %v with action %s", d.Delay, d.Action)
			}
		})
	}
}

func TestPolicyDecide_RuleSetsTheDelayUnderTheCap(t *testing.T) {
	tests := []struct {
		name         string
		asked        time.Duration
		source       retry.Source
		capped, want time.Duration
	}{
		{"as asked, without jitter", 90 * time.Second, retry.FromRule, 90 * time.Second, 90 * time.Second},
		{"none", 0, retry.FromRule, 0, 0},
		{"above the cap", time.Hour, retry.FromRule, 5 * time.Minute, 5 * time.Minute},
		{"negative", -time.Second, retry.FromRule, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := retry.Default().Decide(retry.Failure{Attempt: 2, Ruling: &retry.Ruling{Rule: "r", Action: retry.Retry, Delay: &test.asked}}, noRandom(t))
			if got := d.Delay; got.Source != test.source || got.Raw != test.asked || got.Final != test.want || got.Retry != 2 || got.Strategy != "" {
				t.Errorf("Delay = %+v, want %v by the rule", got, test.want)
			}
		})
	}
	d := retry.Default().Decide(retry.Failure{Attempt: 2, Ruling: &retry.Ruling{Rule: "r", Action: retry.Retry}}, func() float64 { return 0.5 })
	if d.Delay.Source != retry.FromPolicy || d.Delay.Final != 2*time.Second {
		t.Errorf("a rule that says no delay gives %+v, want the policy's", d.Delay)
	}
}

// No reason is on the list that no failure leads to. "manual" is a person's word, and
// "gone_at_source" is said of other systems' jobs: neither is a failure's.
func TestReasons_AreReachable(t *testing.T) {
	no := false
	failures := []retry.Failure{
		{Attempt: 3},
		{Attempt: 1, Type: "auth.expired"},
		{Attempt: 1, Answer: retry.Answer{Retryable: &no}},
		{Attempt: 1, Answer: retry.Answer{Code: retry.CodeDiscard}},
		{Attempt: 1, Ruling: &retry.Ruling{Rule: "r", Action: retry.Discard}},
		{Attempt: 1, Unknown: retry.UnknownDelete},
		{Attempt: 1, Expired: retry.Discard},
	}
	for _, reason := range retry.Poison() {
		failures = append(failures, retry.Failure{Attempt: 1, Answer: retry.Answer{Poison: reason}})
	}
	p := with(func(p *retry.Policy) { p.NonRetryable = []string{"auth.*"} })
	reached := []retry.Reason{retry.Manual, retry.GoneAtSource, retry.ReasonUnknown}
	for _, f := range failures {
		reached = append(reached, p.Decide(f, noRandom(t)).Reason)
	}
	for _, reason := range retry.Reasons() {
		if !slices.Contains(reached, reason) {
			t.Errorf("no failure leads to %q", reason)
		}
	}
	if len(reached) != len(retry.Reasons()) {
		t.Errorf("reached %q, but the list is %q", reached, retry.Reasons())
	}
}

// Whether a rule, a handler or the policy decides, no job runs past its bound, and every
// decision is whole.
func TestPolicyDecide_KeepsTheBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy(t)
		p.MaxAttempts = rapid.IntRange(0, 10).Draw(t, "max")
		f := retry.Failure{Attempt: rapid.IntRange(1, 20).Draw(t, "attempt"), Answer: retry.Answer{
			Code: rapid.SampledFrom([]retry.Code{"", retry.CodeRetry, retry.CodeDiscard, retry.CodeDeadLetter, retry.CodeFail}).Draw(t, "code"),
		}}
		limit := p.Limit()
		if rapid.Bool().Draw(t, "ruled") {
			wait := time.Duration(rapid.Int64().Draw(t, "wait"))
			f.Ruling = &retry.Ruling{
				Rule: "r", Limit: rapid.IntRange(0, 15).Draw(t, "limit"), Delay: &wait,
				Action: rapid.SampledFrom([]retry.Action{retry.Retry, retry.DeadLetter, retry.Discard}).Draw(t, "action"),
			}
			limit = max(limit, f.Ruling.Limit)
		}
		d := p.Decide(f, func() float64 { return 0.999 })
		switch {
		case d.By == "" || (d.Reason == "") != (d.Action == retry.Retry) || (d.Delay == nil) != (d.Action != retry.Retry):
			t.Fatalf("Decide(%+v) = %+v", f, d)
		case d.Action == retry.Retry && f.Attempt >= limit:
			t.Fatalf("Decide(%+v) retries beyond %d: %+v", f, limit, d)
		case d.Delay != nil && (d.Delay.Final < 0 || d.Delay.Final > p.MaxInterval):
			t.Fatalf("Decide(%+v) waits %v under a cap of %v", f, d.Delay.Final, p.MaxInterval)
		}
	})
}
