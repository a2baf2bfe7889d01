package execution

import (
	"sync"
	"time"
)

// Alarm calls Ring at the deadlines of handlers. There is one timer for all of them: nearly every
// handler returns long before its deadline, and a timer for each would double the cost of its
// context. The alarm is independent of the dispatcher, which may be waiting for the disk.
type Alarm struct {
	Ring func(now time.Time) (next time.Time) // ends what is overdue, and returns the next deadline; zero: none

	mu    sync.Mutex
	timer *time.Timer
	at    time.Time // when it goes off; zero: never
}

// Set makes the alarm go off at a deadline, unless that is zero or the alarm goes off before it.
func (a *Alarm) Set(deadline time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if deadline.IsZero() || !a.at.IsZero() && !deadline.Before(a.at) {
		return
	}

	a.at = deadline
	wait := time.Until(deadline)
	if a.timer == nil {
		a.timer = time.AfterFunc(wait, a.goOff)
	} else {
		a.timer.Reset(wait)
	}
}

// goOff calls Ring, and sets the alarm for the next deadline. Another deadline may be set meanwhile:
// the earlier one counts.
func (a *Alarm) goOff() {
	a.mu.Lock()
	a.at = time.Time{}
	a.mu.Unlock()

	a.Set(a.Ring(time.Now()))
}
