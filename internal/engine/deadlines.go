package engine

import (
	"context"
	"errors"
	"time"
)

// runContext is the context of a handler. It ends with a cause of ours and has
// a deadline; a context with a deadline below one with a cause would be the
// most expensive part of a small job.
type runContext struct {
	context.Context // ended at the deadline with errTimeout, by the clock
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

// clock ends the contexts of the handlers whose ttr is over. One timer does for all
// of them: nearly every handler returns long before, and a timer of its own would
// double what its context costs. It does not need the dispatcher, which may wait for
// the disk.
type clock struct {
	timer *time.Timer
	next  time.Time // when it fires; zero: never
}

// endBy sets the clock for a deadline, unless it is set for an earlier one. The caller
// holds the mutex.
func (s *executions) endBy(deadline time.Time) {
	c := &s.clock
	if deadline.IsZero() || !c.next.IsZero() && !deadline.Before(c.next) {
		return
	}
	c.next = deadline
	if wait := time.Until(deadline); c.timer == nil {
		c.timer = time.AfterFunc(wait, s.endOverdue)
	} else {
		c.timer.Reset(wait)
	}
}

// endOverdue ends the contexts whose deadline has come, and sets the clock for the
// next one.
func (s *executions) endOverdue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, next := time.Now(), time.Time{}
	for _, x := range s.leased {
		switch {
		case x.returned:
		case reached(x.ctx.deadline, now):
			x.endContext(errTimeout)
		default:
			next = earlier(next, x.ctx.deadline)
		}
	}
	s.clock.next = time.Time{}
	s.endBy(next)
}
