package jobpage

import (
	"math"
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

func stepsText(cells []format.Calculation) string {
	var all []string
	for _, c := range cells {
		s := c.Text
		if c.Power != "" {
			s += "^" + c.Power
		}
		s += c.Rest
		if c.Note != "" {
			s += " " + c.Note
		}
		if c.Tail != "" {
			s += " " + c.Tail
		}
		all = append(all, s)
	}
	return strings.Join(all, " | ")
}

func TestDelay_ShowsTheCalculationOfEveryStrategy(t *testing.T) {
	base := retry.Policy{InitialInterval: time.Second, Coefficient: 2, MaxInterval: 5 * time.Minute}
	policy := func(change func(*retry.Policy)) retry.Policy {
		p := base
		change(&p)
		return p
	}
	schedule := policy(func(p *retry.Policy) {
		p.Strategy, p.Schedule = retry.Schedule, []time.Duration{time.Second, 30 * time.Second}
	})
	for _, c := range []struct {
		name   string
		policy retry.Policy
		n      int
		want   string
	}{
		{"exponential with jitter", policy(func(p *retry.Policy) {
			p.Strategy, p.InitialInterval, p.Jitter = retry.Exponential, 5*time.Second, retry.Jitter{Low: 0.85, High: 1.15}
		}), 3, "exponential retry 3 | 5 s × 2^2 = 20 s | cap 5 min not reached | jitter 0.85 to 1.15 drew ×1.13 | 22.6 s"},
		{"linear", policy(func(p *retry.Policy) { p.Strategy = retry.Linear }), 3,
			"linear retry 3 | 1 s × 3 = 3 s | cap 5 min not reached | 3 s"},
		{"polynomial", policy(func(p *retry.Policy) { p.Strategy, p.Coefficient = retry.Polynomial, 4 }), 3,
			"polynomial retry 3 | 1 s × 3^4 = 81 s | cap 5 min not reached | 81 s"},
		{"constant", policy(func(p *retry.Policy) { p.Strategy = retry.Constant }), 2,
			"constant retry 2 | 1 s | cap 5 min not reached | 1 s"},
		{"immediate", policy(func(p *retry.Policy) { p.Strategy = retry.Immediate }), 2, "immediate retry 2 | none"},
		{"schedule", schedule, 2, "schedule retry 2 | entry 2 = 30 s | cap 5 min not reached | 30 s"},
		{"schedule past its end", schedule, 5, "schedule retry 5 | entry 2, the last, again = 30 s | cap 5 min not reached | 30 s"},
		{"cap reached", policy(func(p *retry.Policy) { p.Strategy = retry.Exponential }), 12,
			"exponential retry 12 | 1 s × 2^11 = 34 min 8 s | cap 5 min reached | 5 min"},
		{"cap reached by jitter", policy(func(p *retry.Policy) {
			p.Strategy, p.InitialInterval, p.Jitter = retry.Constant, 5*time.Minute, retry.Jitter{Low: 1, High: 3}
		}), 1, "constant retry 1 | 5 min | cap 5 min not reached | jitter 1 to 3 drew ×2.8666 | cap 5 min reached again | 5 min"},
		{"overflow", policy(func(p *retry.Policy) { p.Strategy = retry.Exponential }), 99,
			"exponential retry 99 | 1 s × 2^98 = more than 292 years | cap 5 min reached | 5 min"},
	} {
		d := c.policy.Delay(c.n, always(0.9333))
		if got := stepsText(delaySteps(d, c.policy.Schedule)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestDelay_NamesTheHandlersRetryAfter(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		5 * time.Second: "handler retry 1 | Retry-After: 5 s | cap 5 min not reached | 5 s",
		time.Hour:       "handler retry 1 | Retry-After: 1 h | cap 5 min reached | 5 min",
		-time.Second:    "handler retry 1 | Retry-After: −1 s | cap 5 min not reached | none",
	} {
		p := retry.Default()
		p.Strategy = retry.Exponential
		d := p.Decide(retry.Failure{Attempt: 1, Answer: retry.Answer{RetryAfter: &wait}}, always(0)).Delay
		if got := stepsText(delaySteps(*d, nil)); got != want {
			t.Errorf("retry-after %v:\n got %s\nwant %s", wait, got, want)
		}
	}
}

func TestDelay_SurvivesAnyDelay(t *testing.T) {
	d := retry.Delay{Strategy: "tidal", Raw: math.MinInt64, Cap: math.MaxInt64, Factor: math.NaN(), Jitter: retry.Jitter{Low: math.Inf(1)}}
	if got := stepsText(delaySteps(d, nil)); !strings.HasPrefix(got, "tidal") {
		t.Errorf("steps %q, want the unknown strategy by its name", got)
	}
}

func TestDelay_NamesTheRulesDelay(t *testing.T) {
	for delay, want := range map[time.Duration]string{
		10 * time.Second: "rule retry 2 | asks for 10 s | cap 5 min not reached | 10 s",
		time.Hour:        "rule retry 2 | asks for 1 h | cap 5 min reached | 5 min",
		0:                "rule retry 2 | asks for 0 s | cap 5 min not reached | none",
	} {
		f := retry.Failure{Attempt: 2, Ruling: &retry.Ruling{Rule: "slow", Action: retry.Retry, Delay: &delay}}
		d := retry.Default().Decide(f, always(0)).Delay
		if got := stepsText(delaySteps(*d, nil)); got != want {
			t.Errorf("a rule that waits %v:\n got %s\nwant %s", delay, got, want)
		}
	}
}

func decidersText(steps []decider) string {
	var all []string
	for _, r := range steps {
		s := r.text
		if r.decided {
			s = "[" + s + " " + r.code + "]"
		}
		all = append(all, s)
	}
	return strings.Join(all, " › ")
}

func TestDeciders_SaysWhoDecided(t *testing.T) {
	asked := &retry.Delay{Source: retry.FromHandler, Raw: 5 * time.Second}
	policy := &retry.Delay{Source: retry.FromPolicy}
	for _, c := range []struct {
		a    job.Attempt
		want string
	}{
		{job.Attempt{DecidedBy: "policy:retry:3/5", Action: retry.Retry, Delay: policy},
			"Rules: no rule matched › Handler: no verdict › [Policy: retry, attempt 3 of 5 policy:retry:3/5]"},
		{job.Attempt{DecidedBy: "policy:retry:3/5", Action: retry.Retry, Outcome: job.Lost},
			"Rules: no rule matched › Handler: gone › [Policy: retry, attempt 3 of 5 policy:retry:3/5]"},
		{job.Attempt{DecidedBy: "policy:exhausted:5/5", Action: retry.DeadLetter},
			"Rules: no rule matched › Handler: no verdict › [Policy: dead letter, exhausted policy:exhausted:5/5]"},
		{job.Attempt{DecidedBy: "policy:exhausted:5/5", Action: retry.Discard, Outcome: job.TimedOut},
			"Rules: no rule matched › Handler: timed out › [Policy: discard, exhausted policy:exhausted:5/5]"},
		{job.Attempt{DecidedBy: "policy:non_retryable:auth.*", Action: retry.DeadLetter},
			"Rules: no rule matched › Handler: no verdict › [Policy: dead letter, auth.* is never retried policy:non_retryable:auth.*]"},
		{job.Attempt{DecidedBy: "handler:RETRY", Action: retry.Retry, Delay: asked},
			"Rules: no rule matched › [Handler: retry after 5 s handler:RETRY] › Policy: allows another attempt"},
		{job.Attempt{DecidedBy: "handler:RETRY", Action: retry.Retry, Delay: policy},
			"Rules: no rule matched › [Handler: retry handler:RETRY] › Policy: allows another attempt, gives the delay"},
		{job.Attempt{DecidedBy: "handler:DEAD_LETTER", Action: retry.DeadLetter},
			"Rules: no rule matched › [Handler: dead letter handler:DEAD_LETTER] › Policy: not asked"},
		{job.Attempt{DecidedBy: "handler:DISCARD", Action: retry.Discard},
			"Rules: no rule matched › [Handler: discard handler:DISCARD] › Policy: not asked"},
		{job.Attempt{DecidedBy: "handler:FAIL", Action: retry.Discard},
			"Rules: no rule matched › [Handler: failed permanently, no dead letter handler:FAIL] › Policy: not asked"},
		{job.Attempt{DecidedBy: "handler:not_retryable", Action: retry.DeadLetter},
			"Rules: no rule matched › [Handler: dead letter, not retryable handler:not_retryable] › Policy: not asked"},
		{job.Attempt{DecidedBy: "handler:success", Action: retry.Complete},
			"Rules: no rule matched › [Handler: success handler:success] › Policy: not asked"},
		{job.Attempt{DecidedBy: "unknown_type:dead_letter", Action: retry.DeadLetter},
			"Rules: not asked › [Handler: none for this type, so dead letter unknown_type:dead_letter] › Policy: not asked"},
		{job.Attempt{DecidedBy: "rule:temporary-only", Action: retry.Retry, Delay: &retry.Delay{Source: retry.FromRule}},
			"[Rules: temporary-only retried the job rule:temporary-only] › Handler: not asked › Policy: not asked"},
		{job.Attempt{DecidedBy: "rule:slow:again", Action: retry.Retry, Delay: policy, Outcome: job.TimedOut},
			"[Rules: slow:again retried the job rule:slow:again] › Handler: timed out › Policy: gives the delay"},
		{job.Attempt{DecidedBy: "rule:spam", Action: retry.Discard},
			"[Rules: spam discarded the job rule:spam] › Handler: not asked › Policy: not asked"},
		{job.Attempt{DecidedBy: "envelope:missing_urn", Action: retry.DeadLetter},
			"Rules: no rule matched › [Envelope: set aside, the envelope names no valid type envelope:missing_urn] › Policy: not asked"},
		{job.Attempt{DecidedBy: "expired:discard", Action: retry.Discard},
			"[Time to live: ended before it ran, so discard expired:discard] › Rules: not asked › Handler: not asked › Policy: not asked"},
		{job.Attempt{DecidedBy: "policy:mood", Action: retry.Retry}, "[Retry policy:mood]"},
		{job.Attempt{DecidedBy: "oracle", Action: "sleep"}, "[Sleep oracle]"},
		{job.Attempt{Outcome: job.Interrupted}, ""},
	} {
		if got := decidersText(decidersOf(c.a)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.a.DecidedBy, got, c.want)
		}
	}
}

func TestEnqueueCommand_CannotEscapeItsQuotes(t *testing.T) {
	j := job.Job{Type: "it's", Queue: "q", Policy: retry.Default(), Payload: []byte("{\"a\": \"'; rm -rf / #\u202e\U000e0001\"}")}
	f := templates.Frame{Origin: "https://redrive.example/jobs"}
	got := f.Curl("/api/v1/jobs", enqueueBody(j))
	body := got[strings.Index(got, "-d '")+4 : len(got)-1]
	if strings.Contains(strings.ReplaceAll(body, `'\''`, ""), "'") {
		t.Errorf("an unquoted quote in %s", got)
	}
	if !strings.Contains(body, `\u202e\udb40\udc01`) || strings.ContainsFunc(body, format.Hides) {
		t.Errorf("hidden characters are not written as escapes in %s", got)
	}
	if !strings.HasPrefix(got, "curl 'https://redrive.example/jobs/api/v1/jobs' ") {
		t.Errorf("the address is not that of the dashboard: %s", got)
	}
	if j.Payload = []byte("no json"); enqueueBody(j) != "" {
		t.Errorf("a command for a payload that is not JSON: %s", enqueueBody(j))
	}
}
