package templates

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"redrive/internal/retry"
	"redrive/web/templates/format"
)

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
			"The first retry waits 5 s, and each further one 2 times as long as the one before, but none more than 5 min. Chance makes each delay 0.85 to 1.15 times that, under the same cap."},
		{"polynomial", policyOf(t, "sidekiq", none), "delay(n) = min( 1 s × n^4, 7 d )",
			"The first retry waits 1 s, and retry n that times n to the power of 4, but none more than 7 d."},
		{"constant", policyOf(t, "sidekiq", func(p *retry.Policy) { p.Strategy = retry.Constant }), "delay(n) = min( 1 s, 7 d )",
			"Each retry waits 1 s, but none more than 7 d."},
		{"linear", policyOf(t, "sidekiq", func(p *retry.Policy) { p.Strategy = retry.Linear }), "delay(n) = min( 1 s × n, 7 d )",
			"The first retry waits 1 s, and each further one 1 s longer, but none more than 7 d."},
		{"schedule", policyOf(t, "initphp", none), "delay(n) = min( [0 s][min(n, 1)], 5 min )",
			"Retry n waits for the n-th delay of the list, and the last one repeats, but none more than 5 min."},
		{"empty schedule", policyOf(t, "initphp", func(p *retry.Policy) { p.Schedule = nil }), "delay(n) = 0",
			"The schedule is empty: each retry starts at once."},
		{"immediate", policyOf(t, "yii2", func(p *retry.Policy) { p.MaxAttempts = 3 }), "delay(n) = 0", "Each retry starts at once."},
		{"never", policyOf(t, "yii2", none), "delay(n) = 0", "A job has one attempt and is never retried."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := plainText(formula(test.policy)); got != test.want {
				t.Errorf("formula %q, want %q", got, test.want)
			}
			if got := inSentences(test.policy); got != test.words {
				t.Errorf("words %q, want %q", got, test.words)
			}
		})
	}
}

func TestCompact_IsReadByTheConfiguration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		5 * time.Second: "5s", 10 * time.Second: "10s", 5 * time.Minute: "5m", 90 * time.Second: "1m30s", time.Hour: "1h",
		10 * time.Hour: "10h", 90 * time.Minute: "1h30m", format.Day: "1d", 7 * format.Day: "7d", 36 * time.Hour: "36h", 0: "0s", time.Hour + time.Second: "1h0m1s",
		1500 * time.Millisecond: "1.5s",
	} {
		if got := Compact(d); got != want {
			t.Errorf("Compact(%v) = %q, want %q", d, got, want)
		}
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
		if wait, more := death(test.policy, test.ttr); wait != test.wait || more != test.more {
			t.Errorf("%s: %q, %q; want %q, %q", test.name, wait, more, test.wait, test.more)
		}
	}
}

// Whatever the policy, a figure stays in its place and a table in its bounds.
func TestCurve_StaysInItsPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := retry.Default()
		p.Strategy = rapid.SampledFrom(retry.Strategies()).Draw(t, "strategy")
		p.InitialInterval = time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "initial"))
		p.MaxInterval = time.Duration(rapid.Int64Range(int64(p.InitialInterval), math.MaxInt64).Draw(t, "cap"))
		p.Coefficient = rapid.Float64Range(1, math.MaxFloat64).Draw(t, "coefficient")
		p.MaxAttempts = rapid.IntRange(2, math.MaxInt).Draw(t, "attempts")
		p.Jitter = rapid.SampledFrom([]retry.Jitter{{}, {Low: 0.5, High: 1.5}, {Low: 0, High: 100}}).Draw(t, "jitter")
		if n := len(delayRows(p)); n > maxRows {
			t.Fatalf("%d rows", n)
		}
		if !hasCurve(p) {
			return
		}
		c := curveOf(p)
		if len(c.points) < minPoints || len(c.points) > maxRows || len(c.lines) > 7 {
			t.Fatalf("%d points, %d lines", len(c.points), len(c.lines))
		}
		for _, pair := range strings.Fields(c.band + " " + c.trace) {
			var x, y float64
			if _, err := fmt.Sscanf(pair, "%g,%g", &x, &y); err != nil || x < 0 || x > 100 || y < curveTop-0.1 || y > curveFloor+0.1 {
				t.Fatalf("the point %s is outside (%v): %+v", pair, err, p)
			}
		}
	})
}

func TestCurve_ShowsWhatIsNeverReached(t *testing.T) {
	c := curveOf(policyOf(t, "daycry", func(p *retry.Policy) { p.MaxAttempts = 5 }))
	var reached, words []string
	for _, p := range c.points {
		if p.reached {
			reached = append(reached, p.number)
		}
		if p.delay != "" {
			words = append(words, p.delay)
		}
	}
	if !slices.Equal(reached, []string{"1", "2", "3", "4"}) || !slices.Equal(words, []string{"5 s", "10 s", "20 s", "40 s"}) || c.beyond == "" {
		t.Errorf("reached %q, delays %q, beyond %q", reached, words, c.beyond)
	}
	if last := c.lines[len(c.lines)-1]; !last.cap || last.word != "5 min, cap" {
		t.Errorf("the cap is drawn as %+v", last)
	}
	if full := curveOf(policyOf(t, "sidekiq", func(*retry.Policy) {})); full.beyond != "" || len(full.points) != 25 {
		t.Errorf("25 retries are drawn as %d points, beyond %q", len(full.points), full.beyond)
	}
}

func TestRoughly_NamesOneUnit(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 4250 * time.Millisecond: "4.25 s", 89 * time.Second: "89 s", 102 * time.Second: "1.7 min", 160 * time.Second: "2.7 min", 5 * time.Minute: "5 min",
		18*time.Hour + 12*time.Minute: "18 h", 4*format.Day + 12*time.Hour: "4.5 d", 3660 * format.Day: "3,660 d",
	} {
		if got := roughly(d); got != want {
			t.Errorf("roughly(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestStepOf_DividesIntoAFewRoundParts(t *testing.T) {
	for length, want := range map[time.Duration]time.Duration{
		1: time.Microsecond, 5 * time.Minute: time.Minute, 87 * time.Second: 20 * time.Second, 10 * time.Second: 2 * time.Second,
		4 * format.Day: format.Day, 300 * time.Millisecond: 100 * time.Millisecond, 10 * format.Day: 2 * format.Day, math.MaxInt64: 32768 * format.Day,
	} {
		if got := stepOf(length, 5); got != want {
			t.Errorf("stepOf(%v) = %v, want %v", length, got, want)
		}
	}
}
