package engine

import (
	"log/slog"
	"maps"
	"redrive/internal/shortage"
	"sync"
	"time"
)

const (
	minProbe = 2 * time.Second // from the opening of the breaker to the first probe
	maxProbe = 10 * time.Second
	stepFor  = time.Second // how long so many jobs run while the breaker is half-open, before twice as many may
)

// breakerState says how many jobs may start.
type breakerState int

const (
	breakerClosed   breakerState = iota // as many as there are workers
	breakerOpen                         // none: something has run out
	breakerHalfOpen                     // a few, which find out whether there is enough again
)

// breaker is a circuit breaker: it keeps the engine from claiming while this process or
// machine has run out of something.
//
//	closed ── a handler or a delivery meets a shortage ──▶ open
//	open ── a probe every few seconds finds some again ──▶ half-open
//	half-open ── a job meets the shortage ──▶ open, with a longer pause
//	half-open ── a second passes without ──▶ twice as many jobs may run; closed when none had to wait
type breaker struct {
	probe func(shortage.Resource) error // looks whether there is some of a resource again
	most  int                           // jobs may ever run at once
	log   *slog.Logger

	mu     sync.Mutex
	state  breakerState
	why    shortage.OpenBreaker // what has run out, and since when; zero: nothing has, it is closed
	hits   int                  // shortages since it opened
	pause  time.Duration        // from the opening to the next probe
	next   time.Time            // when to look after it
	limit  int                  // jobs may run at once while it is half-open
	counts map[shortage.Resource]shortage.Counts
}

func newBreaker(probe func(shortage.Resource) error, most int, log *slog.Logger) *breaker {
	return &breaker{probe: probe, most: most, log: log, counts: map[shortage.Resource]shortage.Counts{}}
}

// trip opens the breaker for a shortage that an execution or a delivery met.
func (b *breaker) trip(s *shortage.Error) {
	if b.open(s, time.Now()) {
		b.log.Warn("Something has run out, so no jobs are claimed. The affected jobs run again and lose no attempt.",
			"resource", s.Of, "error", s)
	}
}

// open reports whether the breaker was closed before.
func (b *breaker) open(s *shortage.Error, now time.Time) (wasClosed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	count := b.counts[s.Of]
	count.GivenBack++
	switch b.state {
	case breakerClosed:
		wasClosed = true
		count.Openings++
		b.why.Since = now.UTC()
		b.hits = 0
		b.pause = minProbe
		b.next = now.Add(b.pause)
	case breakerHalfOpen:
		b.pause = min(2*b.pause, maxProbe)
		b.next = now.Add(b.pause)
	}

	b.counts[s.Of] = count

	b.state = breakerOpen
	b.why.Of = s.Of
	b.why.Reason = s.Of.Lack()
	b.hits++

	return wasClosed
}

// attend does what is due: it probes while the breaker is open, and takes the next step
// while it is half-open. full says that jobs wait because no more may run; running counts
// those that run.
func (b *breaker) attend(now time.Time, full bool, running func() int) {
	of, due := b.probeDue(now)
	if due {
		if b.probe(of) != nil {
			b.probeAt(time.Now().Add(minProbe))
		} else {
			b.halfOpen(time.Now(), running()+1)
		}

		return
	}

	ended, hits := b.step(now, full)
	if hits > 0 {
		b.log.Info("Jobs are claimed again.", "held_for", now.Sub(ended.Since).Round(time.Millisecond), "given_back", hits)
	}
}

// probeDue says which resource is to be probed now.
func (b *breaker) probeDue(now time.Time) (of shortage.Resource, due bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why.Of, b.state == breakerOpen && !now.Before(b.next)
}

func (b *breaker) probeAt(next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.next = next
}

// halfOpen lets so many jobs run.
func (b *breaker) halfOpen(now time.Time, limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.state = breakerHalfOpen
	b.limit = limit
	b.next = now.Add(stepFor)
}

// step lets twice as many jobs run once so many have run for a while without a shortage,
// or closes the breaker where that would change nothing. It returns what ended then, and how
// many met it; zero: the breaker is not closed.
func (b *breaker) step(now time.Time, full bool) (ended shortage.OpenBreaker, hits int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.state != breakerHalfOpen || now.Before(b.next) {
		return shortage.OpenBreaker{}, 0
	}

	if full && b.limit < b.most {
		b.limit *= 2
		b.next = now.Add(stepFor)
		return shortage.OpenBreaker{}, 0
	}

	ended = b.why
	b.state = breakerClosed
	b.why = shortage.OpenBreaker{}

	return ended, b.hits
}

// room is how many more jobs may be claimed while so many run.
func (b *breaker) room(running int) int {
	b.mu.Lock()
	defer b.mu.Unlock()

	switch b.state {
	case breakerOpen:
		return 0
	case breakerHalfOpen:
		return min(b.limit, b.most) - running
	}

	return b.most - running
}

// closed reports whether as many jobs may start as there are workers.
func (b *breaker) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == breakerClosed
}

// wakes is when there is something to attend to; zero: never.
func (b *breaker) wakes() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.state == breakerClosed {
		return time.Time{}
	}

	return b.next
}

// held says since when the breaker is not closed, and why; ok is false when it is closed.
func (b *breaker) held() (why shortage.OpenBreaker, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why, b.state != breakerClosed
}

// shortages counts what has run out since the start.
func (b *breaker) shortages() map[shortage.Resource]shortage.Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.counts)
}

// ranOut opens the breaker for a shortage that a handler or a delivery met.
func (e *Engine) ranOut(s *shortage.Error) {
	e.breaker.trip(s)
	e.notify()
}
