package policypage

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
			if _, err := fmt.Sscanf(pair, "%g,%g", &x, &y); err != nil || x < 0 || x > 100 || y < curveAway || y > curveFloor+0.1 {
				t.Fatalf("the point %s is outside (%v): %+v", pair, err, p)
			}
		}
	})
}

func TestCurve_ShowsWhatIsNeverReached(t *testing.T) {
	c := curveOf(preset(t, "daycry", func(p *retry.Policy) { p.MaxAttempts = 5 }))
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
	if full := curveOf(preset(t, "sidekiq", func(*retry.Policy) {})); full.beyond != "" || len(full.points) != 25 {
		t.Errorf("25 retries are drawn as %d points, beyond %q", len(full.points), full.beyond)
	}
}

// A short policy fills the height: what it never comes to leaves the drawing.
func TestCurve_IsScaledToWhatIsReached(t *testing.T) {
	c := curveOf(preset(t, "daycry", func(p *retry.Policy) { p.MaxAttempts = 3 }))
	if last := c.points[1]; !last.reached || last.y != format.Tenth(curveTop+(curveFloor-curveTop)*3/23) { // 10 s of at most 11.5 s
		t.Errorf("the last retry is at %+v", last)
	}
	if never := c.points[2:]; len(never) != 2 || !never[0].beyond || !never[1].beyond {
		t.Errorf("beyond the scale: %+v", never)
	}
	if n := len(strings.Fields(c.trace)); n != 3 {
		t.Errorf("the curve has %d points, want the two that are reached and the one to which it leaves", n)
	}
	capped := curveOf(preset(t, "daycry", func(p *retry.Policy) { p.MaxAttempts = 9 }))
	if last := capped.lines[len(capped.lines)-1]; !last.cap || last.word != "5 min, cap" {
		t.Errorf("the cap is drawn as %+v", last)
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
		1: time.Microsecond, 5 * time.Minute: time.Minute, 87 * time.Second: 15 * time.Second, 250 * time.Second: time.Minute, 10 * time.Second: 2 * time.Second,
		4 * format.Day: format.Day, 300 * time.Millisecond: 100 * time.Millisecond, 10 * format.Day: 2 * format.Day, math.MaxInt64: 32768 * format.Day,
	} {
		if got := stepOf(length, 5); got != want {
			t.Errorf("stepOf(%v) = %v, want %v", length, got, want)
		}
	}
}

func preset(t *testing.T, name string, change func(*retry.Policy)) retry.Policy {
	t.Helper()
	p, ok := retry.Preset(name)
	if !ok {
		t.Fatalf("no preset %s", name)
	}
	change(&p)
	return p
}
