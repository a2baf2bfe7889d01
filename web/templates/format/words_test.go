package format

import (
	"math"
	"testing"
	"time"
)

func TestNumber_KeepsThousandsApart(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 18934: "18,934", 1261402: "1,261,402",
		-5: "-5", -1234: "-1,234", -123456: "-123,456", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := Number(n); got != want {
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
		if got := Relative(now.Add(d), now); got != want {
			t.Errorf("relative(now%+v) = %q, want %q", d, got, want)
		}
	}
}

func TestCountdown_EndsWhenItsTimeHasCome(t *testing.T) {
	now := time.Date(2026, 3, 12, 14, 2, 11, 0, time.UTC)
	for d, want := range map[time.Duration]string{-time.Hour: "due", 0: "due", 999 * time.Millisecond: "due", time.Second: "in 1 s", time.Hour: "in 60 min"} {
		if got := Countdown(now.Add(d), now, "due"); got != want {
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
		if got := Clock(test.t, now); got != test.want {
			t.Errorf("clock(%v) = %q, want %q", test.t, got, test.want)
		}
	}
}
