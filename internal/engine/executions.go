package engine

import (
	"maps"
	"slices"
	"sync"
	"time"

	"redrive/internal/job"
)

// maxQuarantined is how many outcomes are given up at most. When the database
// refuses more than that, the fault is not theirs.
const maxQuarantined = 100

// executions are those whose leases this process has: from the claim of a job until its
// settlement is written. They decide, once for each, how it ended.
type executions struct {
	settlements *settlements  // gets an outcome in the step that decides it, so that a stop that has ended all executions misses none
	stuckAfter  time.Duration // how long a job waits for an earlier handler of it

	mu          sync.Mutex
	closed      bool // no more begin
	leased      map[job.Token]*execution
	quarantined map[job.Token]bool // their settlements can never be written: they are left alone until the next start
	waits       waits
	limit       time.Time // the first limit that the dispatcher does not know of
}

func newExecutions(s *settlements, stuckAfter time.Duration) *executions {
	return &executions{
		settlements: s, stuckAfter: stuckAfter,
		leased: map[job.Token]*execution{}, quarantined: map[job.Token]bool{}, waits: newWaits(),
	}
}

// close lets no more executions begin.
func (s *executions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.closed = true
}

// keep keeps the lease of an execution that does not begin now.
func (s *executions) keep(x *execution) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.leased[x.job.Token] = x
}

// keepEnded keeps the lease of an execution that another process had, until its settlement
// is written.
func (s *executions) keepEnded(x *execution) {
	s.mu.Lock()
	defer s.mu.Unlock()

	x.begun = true
	x.ended = true
	s.leased[x.job.Token] = x
}

// admit lets an execution begin its task, unless it was ended while it was prefetched, no
// more may begin, or it has to wait for an earlier one.
func (s *executions) admit(x *execution, t task, now time.Time) (w *wait, begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if x.ended {
		return nil, false
	}

	if s.closed {
		x.ended = true
		s.settlements.add(givenBack(x))
		return nil, false
	}

	s.leased[x.job.Token] = x
	w = s.waits.postpone(x, now.Add(s.stuckAfter))
	if w != nil {
		s.limit = earlier(s.limit, w.until)
		return w, false
	}

	if x.prefetched {
		x.job.StartedAt = now.UTC()
	}

	x.setTask(t)
	s.limit = earlier(s.limit, t.limit)

	return nil, true
}

// admitWaiting lets an execution begin that waited, unless it was ended meanwhile. late says
// that the earlier handler still runs.
func (s *executions) admitWaiting(w *wait, t task, now time.Time) (begun, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if !s.waits.has(w.x) {
		return false, false
	}

	late = s.waits.end(w)
	w.x.job.StartedAt = now.UTC()
	w.x.setTask(t)
	s.limit = earlier(s.limit, t.limit)

	return true, late
}

// returned says that a handler has returned: from now on its ttr is over, however long the
// rules take. It reports whether the end of the execution was decided before.
func (s *executions) returned(x *execution) (decided bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	x.returned = true

	return x.cause != nil
}

// decide ends an execution whose handler has returned with an outcome, unless its end was
// decided before, for the cause that it returns. The outcome is written, unless its dead
// letter is to be sent first.
func (s *executions) decide(x *execution, o outcome) (cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.waits.returned(x)

	if x.cause != nil {
		return x.cause
	}

	x.ended = true

	if !o.sends {
		s.settlements.add(o)
	}

	return nil
}

// fence ends an execution that was ended from outside the engine, and returns it; nil: it is
// not ours, or has ended. A context that ended before keeps its first cause.
func (s *executions) fence(token job.Token, cause error) *execution {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.quarantined, token)

	x := s.leased[token]
	if x == nil || x.ended {
		return nil
	}

	x.abandon(cause)
	s.waits.abandoned(x)
	delete(s.leased, token)

	return x
}

// abandon ends all executions that have not ended and are chosen by which, whatever their
// handlers will say. It returns them.
func (s *executions) abandon(cause error, which func(*execution) bool) (all []*execution) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, x := range s.leased {
		if !x.ended && which(x) {
			x.abandon(cause)
			s.waits.abandoned(x)
			all = append(all, x)
		}
	}

	return all
}

// abandonWaiting does so for those that wait for an earlier one.
func (s *executions) abandonWaiting(cause error) []*execution {
	return s.abandon(cause, s.waits.has)
}

// giveBack ends prefetched executions that have not begun, except those that were ended from
// outside.
func (s *executions) giveBack(all []*execution) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, x := range all {
		if !x.ended {
			x.ended = true
			s.settlements.add(givenBack(x))
		}
	}
}

// cancelAll ends the contexts of all executions.
func (s *executions) cancelAll(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, x := range s.leased {
		x.endContext(cause)
	}
}

// endOverdue ends the contexts whose deadline has come, and returns the next deadline.
func (s *executions) endOverdue(now time.Time) (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, x := range s.leased {
		switch {
		case x.returned:
		case reached(x.ctx.deadline, now):
			x.endContext(errTimeout)
		default:
			next = earlier(next, x.ctx.deadline)
		}
	}

	return next
}

// release forgets the leases of executions that are settled.
func (s *executions) release(batch []outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, o := range batch {
		delete(s.leased, o.job.Token)
	}
}

// quarantine gives up an outcome that cannot be written: its lease is neither extended nor
// reaped. It reports false when that were too many.
func (s *executions) quarantine(o outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	if len(s.quarantined) >= maxQuarantined {
		return false
	}

	delete(s.leased, o.job.Token)
	s.quarantined[o.job.Token] = true

	return true
}

// tokens lists the leases, those of outcomes that are not yet written included.
func (s *executions) tokens() []job.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.leased))
}

// has reports whether a lease is ours, or of an execution that is quarantined.
func (s *executions) has(token job.Token) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leased[token] != nil || s.quarantined[token]
}

// stillRunning says which of these executions have not ended.
func (s *executions) stillRunning(tokens []job.Token) []job.Token {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.DeleteFunc(tokens, func(token job.Token) bool {
		x := s.leased[token]
		return x == nil || x.ended
	})
}

// began is when an execution began that is ours.
func (s *executions) began(token job.Token) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	x := s.leased[token]
	if x == nil || !x.begun {
		return time.Time{}, false
	}

	return x.job.StartedAt, true
}

// newLimit is the first limit that the dispatcher did not know of: of a handler, or
// of the wait for an earlier one.
func (s *executions) newLimit() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()

	limit := s.limit
	s.limit = time.Time{}

	return limit
}

// nextLimit is the first moment at which a handler may have to be given up, or
// has been waited for long enough.
func (s *executions) nextLimit(now time.Time) (limit time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, x := range s.leased {
		if !x.ended && !x.returned {
			limit = earlier(limit, x.limit)
		}
	}

	return earlier(limit, s.waits.nextLimit(now))
}

// dueWaits lists the waits that are over.
func (s *executions) dueWaits(now time.Time) []*wait {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.closed {
		return nil
	}

	return s.waits.due(now)
}

// waitOf is what [Engine.Waiting] tells.
func (s *executions) waitOf(id string) (since, until time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits.of(id, time.Now())
}

// stuck lists the handlers that go on although their executions have ended, the oldest first.
func (s *executions) stuck() []job.Stuck {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits.list()
}
