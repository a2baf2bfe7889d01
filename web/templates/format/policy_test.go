package format

import (
	"math"
	"testing"
	"time"

	"redrive/internal/retry"
)

func TestPolicy_InWords(t *testing.T) {
	never, twice := retry.Default(), retry.Default()
	never.MaxAttempts, twice.MaxAttempts = 0, 2
	twice.Strategy, twice.Jitter = retry.Constant, retry.Jitter{}
	for _, test := range []struct {
		policy       retry.Policy
		line, delays string
	}{
		{retry.Default(), "3 attempts, then dead letter", "1 s × 2^n−1, cap 5 min, jitter 0.5 to 1.5"},
		{never, "1 attempt, then dead letter", "never retried"},
		{twice, "2 attempts, then dead letter", "1 s apart, cap 5 min"},
	} {
		if line, waits := PolicyLine(test.policy), spelled(PolicyDelays(test.policy)); line != test.line || waits != test.delays {
			t.Errorf("the policy reads %q, %q; want %q, %q", line, waits, test.line, test.delays)
		}
	}
}

func policyOf(t *testing.T, name string, change func(*retry.Policy)) retry.Policy {
	t.Helper()
	p, ok := retry.Preset(name)
	if !ok {
		t.Fatalf("no preset %s", name)
	}
	change(&p)
	return p
}

func TestFormula_SaysWhatIsComputed(t *testing.T) {
	none := func(*retry.Policy) {}
	tests := []struct {
		name   string
		policy retry.Policy
		want   string
		words  string
	}{
		{"exponential", policyOf(t, "daycry", none), "delay(n) = min( min( 5 s × 2^(n−1), 5 min ) × [0.85, 1.15), 5 min )",
			"The first retry waits 5 s, and each further one 2 times as long as the one before, at most 5 min. Jitter multiplies each delay by 0.85 to 1.15, under the same cap."},
		{"polynomial", policyOf(t, "sidekiq", none), "delay(n) = min( 1 s × n^4, 7 d )",
			"The first retry waits 1 s, and retry n that times n to the power of 4, at most 7 d."},
		{"constant", policyOf(t, "sidekiq", func(p *retry.Policy) { p.Strategy = retry.Constant }), "delay(n) = min( 1 s, 7 d )",
			"Each retry waits 1 s, at most 7 d."},
		{"linear", policyOf(t, "sidekiq", func(p *retry.Policy) { p.Strategy = retry.Linear }), "delay(n) = min( 1 s × n, 7 d )",
			"The first retry waits 1 s, and each further one 1 s longer, at most 7 d."},
		{"schedule", policyOf(t, "initphp", none), "delay(n) = min( [0 s][min(n, 1)], 5 min )",
			"Retry n waits for the nth delay in the list; the last delay repeats, at most 5 min."},
		{"empty schedule", policyOf(t, "initphp", func(p *retry.Policy) { p.Schedule = nil }), "delay(n) = 0",
			"The schedule is empty: each retry starts at once."},
		{"immediate", policyOf(t, "yii2", func(p *retry.Policy) { p.MaxAttempts = 3 }), "delay(n) = 0", "Each retry starts at once."},
		{"never", policyOf(t, "yii2", none), "delay(n) = 0", "A job has one attempt and is never retried."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := PolicyFormula(test.policy).Plain(); got != test.want {
				t.Errorf("formula %q, want %q", got, test.want)
			}
			if got := PolicySentence(test.policy); got != test.words {
				t.Errorf("words %q, want %q", got, test.words)
			}
		})
	}
}

func TestDeath_SaysHowLong(t *testing.T) {
	none := func(*retry.Policy) {}
	tests := []struct {
		name       string
		policy     retry.Policy
		ttr        time.Duration
		wait, more string
	}{
		{"five attempts", policyOf(t, "daycry", func(p *retry.Policy) { p.MaxAttempts = 5 }), 30 * time.Second,
			"75 s", " of waiting, 63.8 to 86.2 s, plus up to 5 × 30 s of running"},
		{"no jitter", policyOf(t, "sidekiq", none), 0, "24 d 22 h", " of waiting, plus the attempts themselves"},
		{"never", policyOf(t, "yii2", none), time.Minute, "0 s", " of waiting, plus up to 1 × 1 min of running"},
		{"for ever", policyOf(t, "daycry", func(p *retry.Policy) { p.MaxAttempts = math.MaxInt }), 0,
			"more than 292 years", " of waiting, plus the attempts themselves"},
		{"not added up", policyOf(t, "sidekiq", func(p *retry.Policy) { p.Strategy, p.MaxAttempts = retry.Linear, math.MaxInt }), 0,
			"more than 578 d 18 h", " of waiting, plus the attempts themselves"},
	}
	for _, test := range tests {
		if wait, more := TimeToDeath(test.policy, test.ttr); wait != test.wait || more != test.more {
			t.Errorf("%s: %q, %q; want %q, %q", test.name, wait, more, test.wait, test.more)
		}
	}
}

func TestCompact_IsReadByTheConfiguration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		5 * time.Second: "5s", 10 * time.Second: "10s", 5 * time.Minute: "5m", 90 * time.Second: "1m30s", time.Hour: "1h",
		10 * time.Hour: "10h", 90 * time.Minute: "1h30m", Day: "1d", 7 * Day: "7d", 36 * time.Hour: "36h", 0: "0s", time.Hour + time.Second: "1h0m1s",
		1500 * time.Millisecond: "1.5s",
	} {
		if got := Compact(d); got != want {
			t.Errorf("Compact(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestPolicyFormula_SaysEveryStrategy(t *testing.T) {
	for strategy, want := range map[retry.Strategy]string{
		retry.Immediate:   "3 attempts, retried at once",
		retry.Constant:    "3 attempts, 1 s apart, cap 5 min, jitter 0.5 to 1.5",
		retry.Linear:      "3 attempts, 1 s × n, cap 5 min, jitter 0.5 to 1.5",
		retry.Exponential: "3 attempts, 1 s × 2^n−1, cap 5 min, jitter 0.5 to 1.5",
		retry.Polynomial:  "3 attempts, 1 s × n^2, cap 5 min, jitter 0.5 to 1.5",
		retry.Schedule:    "3 attempts, after 1 s, then always 5 s, cap 5 min, jitter 0.5 to 1.5",
	} {
		p := retry.Default()
		p.Strategy, p.Schedule = strategy, []time.Duration{time.Second, 5 * time.Second}
		if got := spelled(PolicyInShort(p)); got != want {
			t.Errorf("%s: %q, want %q", strategy, got, want)
		}
	}
}

func spelled(c Calculation) string {
	if c.Power != "" {
		return c.Text + "^" + c.Power + c.Rest
	}
	return c.Text + c.Rest
}
