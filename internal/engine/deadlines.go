package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// runContext is the context of a handler. It ends with a cause of ours and has
// a deadline; a context with a deadline below one with a cause would be the
// most expensive part of a small job.
type runContext struct {
	context.Context // ended at the deadline with errTimeout, by the alarm
	deadline        time.Time
}

func (c *runContext) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *runContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), errTimeout) {
		return context.DeadlineExceeded
	}

	return err
}

// alarm goes off at the deadlines of handlers. One timer does for all of them: nearly every
// handler returns long before, and a timer of its own would double what its context costs.
// It does not need the dispatcher, which may wait for the disk.
type alarm struct {
	ring func(now time.Time) (next time.Time) // ends what is overdue; zero: there is no next deadline

	mu    sync.Mutex
	timer *time.Timer
	at    time.Time // when it goes off; zero: never
}

// set makes the alarm go off at a deadline, unless it is zero or the alarm goes off before.
func (a *alarm) set(deadline time.Time) {
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
func (a *alarm) goOff() {
	a.mu.Lock()
	a.at = time.Time{}
	a.mu.Unlock()

	a.set(a.ring(time.Now()))
}
