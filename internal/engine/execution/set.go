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

// maxQuarantined is how many outcomes can be in quarantine. If the database refuses more than that,
// the reason is hardly in the outcomes.
const maxQuarantined = 100

// Set has the executions whose leases this process has, from the claim of a job until its settlement
// is written. It decides once for each execution how it ended. It is safe for concurrent use.
type Set struct {
	// unwritten gets an outcome in the same step that decides it. So when all executions have ended,
	// a stop finds all outcomes there.
	unwritten  *outcome.Unwritten
	stuckAfter time.Duration // how long a job waits for the handler of an earlier execution

	mu     sync.Mutex
	closed bool // no more executions may begin

	// By token: the executions whose leases are extended, and those whose outcomes cannot be written.
	// The leases of the latter are neither extended nor reaped until the next start.
	leased      map[job.Token]*Execution
	quarantined map[job.Token]bool

	waits waits
	limit time.Time // see NewLimit
}

// NewSet returns a set without executions, which adds their outcomes to u. stuckAfter is how long a job
// waits for the handler of an earlier execution.
func NewSet(u *outcome.Unwritten, stuckAfter time.Duration) *Set {
	return &Set{
		unwritten: u, stuckAfter: stuckAfter,
		leased: map[job.Token]*Execution{}, quarantined: map[job.Token]bool{}, waits: newWaits(),
	}
}

// Close makes Admit and DueWaits begin no more executions.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.closed = true
}

// Keep adds an execution that does not begin now, so that its lease is extended.
func (s *Set) Keep(x *Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.leased[x.Job.Token] = x
}

// KeepEnded adds an execution of another process that has ended, so that its lease is extended until
// its settlement is written.
func (s *Set) KeepEnded(x *Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()

	x.begun = true
	x.ended = true
	s.leased[x.Job.Token] = x
}

// Admit begins an execution with a task, and returns true. It does not begin an execution that was
// ended while it was prefetched, nor any after Close: that one is given back. If the execution has to
// wait for an earlier one, Admit returns the wait.
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

	// The lease is extended from now on, even while the job waits.
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

// AdmitWaiting begins an execution that has waited, unless it was ended meanwhile. late reports whether
// the handler of the earlier execution is still running.
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

// Returned records that a handler has returned, so that its ttr does not count any longer while the
// rules decide. It reports whether the outcome was decided before.
func (s *Set) Returned(x *Execution) (decided bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	x.returned = true

	return x.cause != nil
}

// Decide ends an execution whose handler has returned with an outcome. If another outcome was decided
// before, it does nothing, and returns the cause of that. The outcome is added to the unwritten ones,
// unless its dead letter has to be sent first.
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

// Fence ends an execution for a cause from outside the engine, and returns it. Its outcome is not
// written, and its lease is not extended any more. It returns nil if the execution is not ours or has
// ended. A context that has ended before keeps its first cause.
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

// abandon ends all executions that have not ended and for which a condition holds, and returns them.
// What their handlers return is ignored.
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

// AbandonWaiting ends the executions that wait for an earlier one, because the engine stops, and
// returns them.
func (s *Set) AbandonWaiting() []*Execution {
	return s.abandon(ErrStopping, s.waits.has)
}

// AbandonAll ends all executions that have not ended, because the engine stops, and returns them.
func (s *Set) AbandonAll() []*Execution {
	return s.abandon(ErrStopping, func(*Execution) bool { return true })
}

// GiveBack ends prefetched executions that have not begun, so that their jobs are given back. It ignores
// those that were ended from outside.
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

// CancelAll ends the contexts of all executions for a cause.
func (s *Set) CancelAll(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, x := range s.leased {
		x.EndContext(cause)
	}
}

// Release removes the executions of outcomes that were written.
func (s *Set) Release(batch []outcome.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, o := range batch {
		delete(s.leased, o.Job.Token)
	}
}

// Quarantine gives up an outcome that cannot be written, so that its lease is neither extended nor
// reaped. It returns false, and does nothing, if too many are in quarantine.
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

// Tokens returns the tokens of all leases that have to be extended, including those of outcomes that are
// not written yet.
func (s *Set) Tokens() []job.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.leased))
}

// Has reports whether an execution is in the set or in quarantine.
func (s *Set) Has(token job.Token) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leased[token] != nil || s.quarantined[token]
}

// StillRunning returns those of the executions that are in the set and have not ended. It changes the
// slice.
func (s *Set) StillRunning(tokens []job.Token) []job.Token {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.DeleteFunc(tokens, func(token job.Token) bool {
		x := s.leased[token]
		return x == nil || x.ended
	})
}

// Began returns when an execution began. ok is false if it is not in the set, or has not begun.
func (s *Set) Began(token job.Token) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	x := s.leased[token]
	if x == nil || !x.begun {
		return time.Time{}, false
	}

	return x.Job.StartedAt, true
}

// WaitOf reports whether a job waits for the handler of an earlier execution: see Engine.Waiting.
func (s *Set) WaitOf(id string) (since, until time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits.of(id, time.Now())
}

// Stuck lists the handlers that were given up and have not returned, the oldest first.
func (s *Set) Stuck() []job.Stuck {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits.list()
}
