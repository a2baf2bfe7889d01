// Package breaker knows why the engine claims no jobs: a circuit breaker for what this machine can
// run out of, and the outages of the database. Its types lock themselves.
package breaker

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"redrive/internal/shortage"
)

const (
	minProbe = 2 * time.Second // from the opening of the breaker to the first probe
	maxProbe = 10 * time.Second
	stepFor  = time.Second // how long so many jobs run while the breaker is half-open, before twice as many may
)

// state says how many jobs may start.
type state int

const (
	closed   state = iota // as many as there are workers
	open                  // none: something has run out
	halfOpen              // a few, which find out whether there is enough again
)

// Breaker is a circuit breaker: it keeps the engine from claiming while this process or
// machine has run out of something.
//
//	closed ── a handler or a delivery meets a shortage ──▶ open
//	open ── a probe every few seconds finds some again ──▶ half-open
//	half-open ── a job meets the shortage ──▶ open, with a longer pause
//	half-open ── a second passes without ──▶ twice as many jobs may run; closed when none had to wait
type Breaker struct {
	probe func(shortage.Resource) error // looks whether there is some of a resource again
	most  int                           // jobs may ever run at once
	log   *slog.Logger

	mu     sync.Mutex
	state  state
	why    shortage.OpenBreaker // what has run out, and since when; zero: nothing has, it is closed
	hits   int                  // shortages since it opened
	pause  time.Duration        // from the opening to the next probe
	next   time.Time            // when to look after it
	limit  int                  // jobs may run at once while it is half-open
	counts map[shortage.Resource]shortage.Counts
}

// New returns a breaker that is closed. probe looks whether there is some of a resource again;
// most is how many jobs may run at once when it is closed.
func New(probe func(shortage.Resource) error, most int, log *slog.Logger) *Breaker {
	return &Breaker{probe: probe, most: most, log: log, counts: map[shortage.Resource]shortage.Counts{}}
}

// Trip opens the breaker for a shortage that an execution or a delivery met.
func (b *Breaker) Trip(s *shortage.Error) {
	if b.record(s, time.Now()) {
		b.log.Warn("Something has run out, so no jobs are claimed. The affected jobs run again and lose no attempt.",
			"resource", s.Of, "error", s)
	}
}

// record counts a shortage and opens the breaker. It reports whether that was closed before.
func (b *Breaker) record(s *shortage.Error, now time.Time) (wasClosed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	count := b.counts[s.Of]
	count.GivenBack++

	// Shortages of jobs that began before it opened change nothing more.
	switch b.state {
	case closed:
		wasClosed = true
		count.Openings++
		b.why.Since = now.UTC()
		b.hits = 0
		b.pause = minProbe
		b.next = now.Add(b.pause)
	case halfOpen:
		b.pause = min(2*b.pause, maxProbe)
		b.next = now.Add(b.pause)
	}

	b.counts[s.Of] = count

	b.state = open
	b.why.Of = s.Of
	b.why.Reason = s.Of.Lack()
	b.hits++

	return wasClosed
}

// Attend does what is due: it probes while the breaker is open, and takes the next step
// while it is half-open. full says that jobs wait because no more may run; running counts
// those that run.
func (b *Breaker) Attend(now time.Time, full bool, running func() int) {
	of, due := b.probeDue(now)
	if due {
		// A probe takes a while, so the clock is read again after it.
		if b.probe(of) != nil {
			b.probeAt(time.Now().Add(minProbe))
		} else {
			b.allow(time.Now(), running()+1)
		}

		return
	}

	ended, hits := b.step(now, full)
	if hits > 0 {
		b.log.Info("Jobs are claimed again.", "held_for", now.Sub(ended.Since).Round(time.Millisecond), "given_back", hits)
	}
}

// probeDue says which resource is to be probed now.
func (b *Breaker) probeDue(now time.Time) (of shortage.Resource, due bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why.Of, b.state == open && !now.Before(b.next)
}

func (b *Breaker) probeAt(next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.next = next
}

// allow makes the breaker half-open, and lets so many jobs run.
func (b *Breaker) allow(now time.Time, limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.state = halfOpen
	b.limit = limit
	b.next = now.Add(stepFor)
}

// step lets twice as many jobs run once so many have run for a while without a shortage,
// or closes the breaker where that would change nothing. It returns what ended then, and how
// many met it; zero: the breaker is not closed.
func (b *Breaker) step(now time.Time, full bool) (ended shortage.OpenBreaker, hits int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.state != halfOpen || now.Before(b.next) {
		return shortage.OpenBreaker{}, 0
	}

	// More jobs are there than may run.
	if full && b.limit < b.most {
		b.limit *= 2
		b.next = now.Add(stepFor)
		return shortage.OpenBreaker{}, 0
	}

	ended = b.why
	b.state = closed
	b.why = shortage.OpenBreaker{}

	return ended, b.hits
}

// Room is how many more jobs may be claimed while so many run.
func (b *Breaker) Room(running int) int {
	b.mu.Lock()
	defer b.mu.Unlock()

	switch b.state {
	case open:
		return 0
	case halfOpen:
		return min(b.limit, b.most) - running
	}

	return b.most - running
}

// Closed reports whether as many jobs may start as there are workers.
func (b *Breaker) Closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == closed
}

// NextAt is when there is something to attend to; zero: never.
func (b *Breaker) NextAt() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.state == closed {
		return time.Time{}
	}

	return b.next
}

// Why says since when the breaker is not closed, and why; ok is false when it is closed.
func (b *Breaker) Why() (why shortage.OpenBreaker, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why, b.state != closed
}

// Shortages counts what has run out since the start.
func (b *Breaker) Shortages() map[shortage.Resource]shortage.Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.counts)
}
