package templates

import (
	"math"
	"testing"
	"time"

	"redrive/internal/filter"
	"redrive/internal/retry"
)

func TestNumber_KeepsThousandsApart(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 18934: "18,934", 1261402: "1,261,402",
		-5: "-5", -1234: "-1,234", -123456: "-123,456", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := number(n); got != want {
			t.Errorf("number(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestRelative_SaysOneUnit(t *testing.T) {
	now := time.Date(2026, 3, 12, 14, 2, 11, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "now", -500 * time.Millisecond: "now", -5 * time.Second: "5 s ago", 30 * time.Second: "in 30 s",
		-99 * time.Second: "99 s ago", -3 * time.Minute: "3 min ago", -3 * time.Hour: "3 h ago", 72 * time.Hour: "in 3 d",
	} {
		if got := relative(now.Add(d), now); got != want {
			t.Errorf("relative(now%+v) = %q, want %q", d, got, want)
		}
	}
}

func TestCountdown_EndsInDue(t *testing.T) {
	now := time.Date(2026, 3, 12, 14, 2, 11, 0, time.UTC)
	for d, want := range map[time.Duration]string{-time.Hour: "due", 0: "due", 999 * time.Millisecond: "due", time.Second: "in 1 s", time.Hour: "in 60 min"} {
		if got := countdown(now.Add(d), now); got != want {
			t.Errorf("countdown(now%+v) = %q, want %q", d, got, want)
		}
	}
}

func TestClock_NamesTheDayWhenItIsAnother(t *testing.T) {
	now := time.Date(2026, 3, 12, 14, 2, 11, 0, time.UTC)
	for _, test := range []struct {
		t    time.Time
		want string
	}{
		{now, "14:02:11"},
		{now.Add(-24 * time.Hour), "11 Mar 14:02"},
		{now.AddDate(-1, 0, 0), "12 Mar 2025"},
		{time.Date(2026, 3, 12, 23, 0, 0, 0, time.FixedZone("", -3600*5)), "13 Mar 04:00"},
	} {
		if got := clock(test.t, now); got != test.want {
			t.Errorf("clock(%v) = %q, want %q", test.t, got, test.want)
		}
	}
}

func TestPips_FitTheirBox(t *testing.T) {
	for _, test := range []struct{ used, limit, drawn, filled int }{
		{0, 1, 1, 0}, {5, 5, 5, 5}, {3, 8, 8, 3}, {12, 12, 12, 12}, {1, 100, 12, 1}, {99, 100, 12, 12}, {7, 3, 3, 3},
	} {
		pips := pipsOf(test.used, test.limit)
		filled := 0
		for _, p := range pips {
			if p.used {
				filled++
			}
		}
		if len(pips) != test.drawn || filled != test.filled {
			t.Errorf("pipsOf(%d, %d) draws %d of %d, want %d of %d", test.used, test.limit, filled, len(pips), test.filled, test.drawn)
		}
	}
}

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
		if line, waits := policyLine(test.policy), tapeText([]cell{delays(test.policy)}); line != test.line || waits != test.delays {
			t.Errorf("the policy reads %q, %q; want %q, %q", line, waits, test.line, test.delays)
		}
	}
}

func TestLinks_StayInsideWhateverTheNames(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{string(jobURL("a/../b?x#y")), "/jobs/a%2F..%2Fb%3Fx%23y"},
		{string(queueAction("//evil", "pause")), "/queues/%2F%2Fevil/pause"},
		{string(jobsURL(filter.Filter{Type: "a&b=c", Error: "ü"}, "")), "/jobs?error=%C3%BC&type=a%26b%3Dc"},
		{string(jobsURL(filter.Filter{}, "")), "/jobs"},
	} {
		if test.got != test.want {
			t.Errorf("link %q, want %q", test.got, test.want)
		}
	}
}
