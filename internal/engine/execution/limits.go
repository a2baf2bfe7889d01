package execution

import (
	"time"

	"redrive/internal/engine/when"
)

// EndOverdue ends the contexts whose deadline has come, and returns the next deadline.
func (s *Set) EndOverdue(now time.Time) (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, x := range s.leased {
		switch {
		case x.returned:
		case when.Reached(x.ctx.deadline, now):
			x.EndContext(ErrTimeout)
		default:
			next = when.Earlier(next, x.ctx.deadline)
		}
	}

	return next
}

// AbandonOverdue ends the executions whose handlers should have returned by now.
func (s *Set) AbandonOverdue(now time.Time) []*Execution {
	return s.abandon(ErrTimeout, func(x *Execution) bool { return !x.returned && when.Reached(x.limit, now) })
}

// NewLimit is the first limit that the dispatcher did not know of: of a handler, or
// of the wait for an earlier one.
func (s *Set) NewLimit() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()

	limit := s.limit
	s.limit = time.Time{}

	return limit
}

// NextLimit is the first moment at which a handler may have to be given up, or
// has been waited for long enough.
func (s *Set) NextLimit(now time.Time) (limit time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, x := range s.leased {
		if !x.ended && !x.returned {
			limit = when.Earlier(limit, x.limit)
		}
	}

	return when.Earlier(limit, s.waits.nextLimit(now))
}

// DueWaits lists the waits that are over.
func (s *Set) DueWaits(now time.Time) []*Wait {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.closed {
		return nil
	}

	return s.waits.due(now)
}
