package execution

import (
	"maps"
	"slices"
	"sync"
	"time"

	"redrive/internal/engine/outcome"
	"redrive/internal/engine/when"
	"redrive/internal/job"
)

// maxQuarantined is how many outcomes are given up at most. When the database
// refuses more than that, the fault is not theirs.
const maxQuarantined = 100

// Set is the executions whose leases this process has: from the claim of a job until its
// settlement is written. It decides, once for each, how it ended.
type Set struct {
	// unwritten gets an outcome in the step that decides it, so that a stop that has ended all
	// executions misses none.
	unwritten  *outcome.Unwritten
	stuckAfter time.Duration // how long a job waits for an earlier handler of it

	mu     sync.Mutex
	closed bool // no more begin

	// By token: the leases that are extended, and those of settlements that can never be
	// written, which are left alone until the next start.
	leased      map[job.Token]*Execution
	quarantined map[job.Token]bool

	// What the dispatcher has to come back to.
	waits waits
	limit time.Time // the first limit that the dispatcher does not know of
}

// NewSet returns a set without executions. stuckAfter is how long a job waits for an earlier
// handler of it.
func NewSet(u *outcome.Unwritten, stuckAfter time.Duration) *Set {
	return &Set{
		unwritten: u, stuckAfter: stuckAfter,
		leased: map[job.Token]*Execution{}, quarantined: map[job.Token]bool{}, waits: newWaits(),
	}
}

// Close lets no more executions begin.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.closed = true
}

// Keep keeps the lease of an execution that does not begin now.
func (s *Set) Keep(x *Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.leased[x.Job.Token] = x
}

// KeepEnded keeps the lease of an execution that another process had, until its settlement
// is written.
func (s *Set) KeepEnded(x *Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()

	x.begun = true
	x.ended = true
	s.leased[x.Job.Token] = x
}

// Admit lets an execution begin its task, unless it was ended while it was prefetched, no
// more may begin, or it has to wait for an earlier one.
func (s *Set) Admit(x *Execution, t Task, now time.Time) (w *Wait, begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if x.ended {
		return nil, false
	}

	if s.closed {
		x.ended = true
		s.unwritten.Add(outcome.GivenBack(x.Job))
		return nil, false
	}

	// From now on the lease is extended, also while the job waits.
	s.leased[x.Job.Token] = x
	w = s.waits.postpone(x, now.Add(s.stuckAfter))
	if w != nil {
		s.limit = when.Earlier(s.limit, w.Until)
		return w, false
	}

	if x.Prefetched {
		x.Job.StartedAt = now.UTC()
	}

	x.begin(t)
	s.limit = when.Earlier(s.limit, t.limit)

	return nil, true
}

// AdmitWaiting lets an execution begin that waited, unless it was ended meanwhile. late says
// that the earlier handler still runs.
func (s *Set) AdmitWaiting(w *Wait, t Task, now time.Time) (begun, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if !s.waits.has(w.Execution) {
		return false, false
	}

	late = s.waits.end(w)
	w.Execution.Job.StartedAt = now.UTC()
	w.Execution.begin(t)
	s.limit = when.Earlier(s.limit, t.limit)

	return true, late
}

// Returned says that a handler has returned: from now on its ttr is over, however long the
// rules take. It reports whether the end of the execution was decided before.
func (s *Set) Returned(x *Execution) (decided bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	x.returned = true

	return x.cause != nil
}

// Decide ends an execution whose handler has returned with an outcome, unless its end was
// decided before, for the cause that it returns. The outcome is written, unless its dead
// letter is to be sent first.
func (s *Set) Decide(x *Execution, o outcome.Outcome) (cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.waits.returned(x)

	if x.cause != nil {
		return x.cause
	}

	x.ended = true

	if !o.Sends {
		s.unwritten.Add(o)
	}

	return nil
}

// Fence ends an execution that was ended from outside the engine, and returns it; nil: it is
// not ours, or has ended. A context that ended before keeps its first cause.
func (s *Set) Fence(token job.Token, cause error) *Execution {
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
func (s *Set) abandon(cause error, which func(*Execution) bool) (all []*Execution) {
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

// AbandonWaiting ends the executions that wait for an earlier one, because the engine stops.
func (s *Set) AbandonWaiting() []*Execution {
	return s.abandon(ErrStopping, s.waits.has)
}

// AbandonAll ends all executions, because the engine stops.
func (s *Set) AbandonAll() []*Execution {
	return s.abandon(ErrStopping, func(*Execution) bool { return true })
}

// GiveBack ends prefetched executions that have not begun, except those that were ended from
// outside.
func (s *Set) GiveBack(all []*Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, x := range all {
		if !x.ended {
			x.ended = true
			s.unwritten.Add(outcome.GivenBack(x.Job))
		}
	}
}

// CancelAll ends the contexts of all executions.
func (s *Set) CancelAll(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, x := range s.leased {
		x.EndContext(cause)
	}
}

// Release forgets the leases of executions that are settled.
func (s *Set) Release(batch []outcome.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, o := range batch {
		delete(s.leased, o.Job.Token)
	}
}

// Quarantine gives up an outcome that cannot be written: its lease is neither extended nor
// reaped. It reports false when that were too many.
func (s *Set) Quarantine(o outcome.Outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	if len(s.quarantined) >= maxQuarantined {
		return false
	}

	delete(s.leased, o.Job.Token)
	s.quarantined[o.Job.Token] = true

	return true
}

// Tokens lists the leases, those of outcomes that are not yet written included.
func (s *Set) Tokens() []job.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.leased))
}

// Has reports whether a lease is ours, or of an execution that is quarantined.
func (s *Set) Has(token job.Token) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leased[token] != nil || s.quarantined[token]
}

// StillRunning says which of these executions have not ended.
func (s *Set) StillRunning(tokens []job.Token) []job.Token {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.DeleteFunc(tokens, func(token job.Token) bool {
		x := s.leased[token]
		return x == nil || x.ended
	})
}

// Began is when an execution began that is ours.
func (s *Set) Began(token job.Token) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	x := s.leased[token]
	if x == nil || !x.begun {
		return time.Time{}, false
	}

	return x.Job.StartedAt, true
}

// WaitOf is what [Engine.Waiting] tells.
func (s *Set) WaitOf(id string) (since, until time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits.of(id, time.Now())
}

// Stuck lists the handlers that go on although their executions have ended, the oldest first.
func (s *Set) Stuck() []job.Stuck {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits.list()
}
