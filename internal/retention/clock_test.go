package retention_test

import (
	"slices"
	"testing"
	"time"

	"redrive/internal/retention"
)

func TestClock_HoldsAfterAMoveForward(t *testing.T) {
	c := retention.Clock{}.Begin(noon)
	if c.Held() {
		t.Fatal("a new database holds")
	}

	c = c.Next(noon.Add(90*time.Second), time.Minute)
	if c.Held() || !c.Trusted.Equal(noon.Add(90*time.Second)) {
		t.Errorf("half a minute ahead: %+v", c)
	}

	wrong := noon.Add(366 * days)
	c = c.Next(wrong, time.Minute)
	if want := noon.Add(150 * time.Second); c.Left != retention.ClockPause || !c.Trusted.Equal(want) || !want.Add(c.Ahead).Equal(wrong) {
		t.Errorf("a year ahead: %+v", c)
	}

	c = c.Next(wrong.Add(retention.ClockPause-time.Minute), retention.ClockPause-time.Minute)
	if c.Left != time.Minute {
		t.Errorf("a minute before the end: %+v", c)
	}
	c = c.Next(wrong.Add(retention.ClockPause), time.Minute)
	if c.Held() || !c.Trusted.Equal(wrong.Add(retention.ClockPause)) {
		t.Errorf("a clock that stayed is not believed: %+v", c)
	}
}

func TestClock_AMoveBackEndsTheHold(t *testing.T) {
	c := retention.Clock{}.Begin(noon).Next(noon.Add(366*days), time.Minute)
	if !c.Held() {
		t.Fatal("it does not hold")
	}
	if c = c.Next(noon.Add(2*time.Minute), time.Minute); c.Held() {
		t.Errorf("the clock is right again: %+v", c)
	}
	if c = c.Next(noon.Add(-30*days), time.Minute); c.Held() || !c.Trusted.Equal(noon.Add(-30*days)) {
		t.Errorf("a clock that moved back removes nothing too early: %+v", c)
	}
	if c = c.Next(noon, time.Minute); !c.Held() {
		t.Error("it does not hold when the clock moves forward from there")
	}
}

// More moves do not put the end off: a machine that sleeps each night would never remove
// anything.
func TestClock_FurtherMovesDoNotPutTheEndOff(t *testing.T) {
	c, now := retention.Clock{}.Begin(noon), noon
	var held []bool
	for range 6 { // six hours awake, six asleep
		now = now.Add(12 * time.Hour)
		c = c.Next(now, 6*time.Hour)
		held = append(held, c.Held())
	}
	if want := []bool{true, true, true, true, false, true}; !slices.Equal(held, want) {
		t.Errorf("it holds %v, want %v: it ends after 24 hours awake", held, want)
	}
}

func TestClock_AStartComparesWithTheNewestTime(t *testing.T) {
	was := retention.Clock{Trusted: noon}
	if c := was.Begin(noon.Add(days)); c.Held() {
		t.Errorf("a day later: %+v", c)
	}
	c := was.Begin(noon.Add(30 * days))
	if c.Left != retention.ClockPause || !c.Trusted.Equal(noon) || c.Ahead != 30*days {
		t.Errorf("a month later: %+v", c)
	}
	c.Left = time.Hour
	if c = c.Begin(noon.Add(30*days + time.Minute)); c.Left != time.Hour {
		t.Errorf("another start begins the hold again: %+v", c)
	}
	if c = c.Begin(noon.Add(time.Hour)); c.Held() {
		t.Errorf("a start with the right clock: %+v", c)
	}
}
