package execution

import (
	"sync"
	"time"
)

// Alarm goes off at the deadlines of handlers. One timer does for all of them: nearly every
// handler returns long before, and a timer of its own would double what its context costs.
// It does not need the dispatcher, which may wait for the disk.
type Alarm struct {
	Ring func(now time.Time) (next time.Time) // ends what is overdue; zero: there is no next deadline

	mu    sync.Mutex
	timer *time.Timer
	at    time.Time // when it goes off; zero: never
}

// Set makes the alarm go off at a deadline, unless it is zero or the alarm goes off before.
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

// goOff rings, and sets the alarm for the next deadline. One that is set meanwhile counts,
// too.
func (a *Alarm) goOff() {
	a.mu.Lock()
	a.at = time.Time{}
	a.mu.Unlock()

	a.Set(a.Ring(time.Now()))
}
