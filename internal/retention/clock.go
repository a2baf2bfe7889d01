package retention

import "time"

// Step is how far the clock of the machine may move away from the time that has passed
// before retention holds. Corrections of a clock that runs are smaller.
const Step = time.Minute

// Hold is for how long retention removes nothing after the clock moved forward, unless it
// moves back. What is older than its age by then was announced for as long.
const Hold = 24 * time.Hour

// Clock is the time that retention goes by. A clock that moves forward makes everything
// old at once: one wrong answer of a time server must not empty the dead-letter queue.
// The zero value knows no time yet.
type Clock struct {
	Trusted time.Time     // the newest time that is believed
	Left    time.Duration // how much longer nothing is removed; zero: the clock is believed
	Ahead   time.Duration // how far the clock is ahead of the time that is believed, while nothing is removed
}

// Held reports whether nothing is removed because the clock moved forward.
func (c Clock) Held() bool { return c.Left > 0 }

// Begin is the clock at a start. Nothing tells how long the program was away, but what
// became old within a day was announced before.
func (c Clock) Begin(now time.Time) Clock {
	now = now.Round(0)
	ahead := now.Sub(c.Trusted)
	if c.Trusted.IsZero() || ahead <= Soon {
		return Clock{Trusted: now}
	}
	if c.Left <= 0 {
		c.Left = Hold
	}
	c.Ahead = ahead
	return c
}

// Next is the clock when it is looked at again after some time, as a clock measures it that
// nobody sets.
func (c Clock) Next(now time.Time, passed time.Duration) Clock {
	now = now.Round(0)
	expected := c.Trusted.Add(passed)
	ahead := now.Sub(expected)
	if ahead <= Step {
		return Clock{Trusted: now}
	}

	left := Hold
	if c.Held() {
		left = c.Left - passed
	}
	if left <= 0 {
		return Clock{Trusted: now}
	}
	return Clock{Trusted: expected, Left: left, Ahead: ahead}
}
