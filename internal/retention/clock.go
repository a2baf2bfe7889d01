package retention

import "time"

// Step is how far the machine's clock may run ahead of the time that has passed before
// retention pauses. The usual corrections of a running clock are smaller.
const Step = time.Minute

// ClockPause is for how long, in running time, retention removes nothing after the clock moved
// forward, unless the clock moves back. The pages announce meanwhile what will be removed.
const ClockPause = 24 * time.Hour

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

// Begin returns the clock at a start. Nothing tells how long the program was away. If the
// machine's clock is more than [Soon] past Trusted, retention pauses for [Hold], since
// nothing has announced what became old after that; what became old before was announced.
func (c Clock) Begin(now time.Time) Clock {
	now = now.Round(0)
	ahead := now.Sub(c.Trusted)
	if c.Trusted.IsZero() || ahead <= Soon {
		return Clock{Trusted: now}
	}

	if c.Left <= 0 {
		c.Left = ClockPause
	}

	c.Ahead = ahead

	return c
}

// Next returns the clock at the next look. Passed is the time since the last one, by the
// monotonic clock.
func (c Clock) Next(now time.Time, passed time.Duration) Clock {
	now = now.Round(0)

	expected := c.Trusted.Add(passed)
	ahead := now.Sub(expected)
	if ahead <= Step {
		return Clock{Trusted: now}
	}

	left := ClockPause
	if c.Held() {
		left = c.Left - passed
	}

	if left <= 0 {
		return Clock{Trusted: now}
	}

	return Clock{Trusted: expected, Left: left, Ahead: ahead}
}
