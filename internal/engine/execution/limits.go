package execution

import (
	"time"

	"redrive/internal/engine/when"
)

// EndOverdue ends the contexts whose deadlines have come, and returns the next deadline; zero: there
// is none.
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

// AbandonOverdue ends the executions whose handlers should have returned by now, and returns them.
func (s *Set) AbandonOverdue(now time.Time) []*Execution {
	return s.abandon(ErrTimeout, func(x *Execution) bool { return !x.returned && when.Reached(x.limit, now) })
}

// NewLimit returns the first of the limits that were added since the last call: of handlers that began,
// or of waits for earlier ones. The zero time means that there is none.
func (s *Set) NewLimit() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()

	limit := s.limit
	s.limit = time.Time{}

	return limit
}

// NextLimit returns the first time at which a handler may have to be given up, or at which a wait for
// an earlier handler ends.
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

// DueWaits returns the waits that are over, unless no more executions may begin.
func (s *Set) DueWaits(now time.Time) []*Wait {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.closed {
		return nil
	}

	return s.waits.due(now)
}
