// Package breaker has two reasons for the engine to claim no jobs: the Breaker, a circuit breaker
// for what this machine can run out of, and the Outage of the database. Both are safe for concurrent
// use.
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
	stepFor  = time.Second // how long a limit applies while the breaker is half-open, before it is doubled
)

// state is the state of a breaker, which says how many jobs may start.
type state int

const (
	closed   state = iota // as many as there are workers
	open                  // none, because something has run out
	halfOpen              // a few, which find out whether there is enough again
)

// Breaker is a circuit breaker, which keeps the engine from claiming jobs while this process or
// machine has run out of something.
//
//	closed ── a handler or a delivery meets a shortage ──▶ open
//	open ── a probe every few seconds finds some again ──▶ half-open
//	half-open ── a job meets the shortage ──▶ open, with a longer pause
//	half-open ── a second passes without ──▶ twice as many jobs may run; closed when none had to wait
type Breaker struct {
	probe func(shortage.Resource) error // returns an error while a resource is missing
	most  int                           // how many jobs may run at once while the breaker is closed
	log   *slog.Logger

	mu     sync.Mutex
	state  state
	why    shortage.OpenBreaker // what has run out, and since when; zero while the breaker is closed
	hits   int                  // how many shortages were met since the breaker opened
	pause  time.Duration        // from the opening to the next probe
	next   time.Time            // when Attend has something to do
	limit  int                  // how many jobs may run at once while the breaker is half-open
	counts map[shortage.Resource]shortage.Counts
}

// New returns a closed breaker. probe returns an error while a resource is missing. most is how many
// jobs may run at once while the breaker is closed.
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

// record counts a shortage, and opens the breaker. It reports whether the breaker was closed before.
func (b *Breaker) record(s *shortage.Error, now time.Time) (wasClosed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	count := b.counts[s.Of]
	count.GivenBack++

	// While the breaker is open, jobs that began before can still meet a shortage. It does not make
	// the pause longer.
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

// Attend does what is due: while the breaker is open, it probes the resource, and while it is
// half-open, it lets more jobs run or closes the breaker. full says that the last claim left jobs
// because no more may run, and running returns how many run.
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

// probeDue returns the resource that has run out, and whether it is time to probe it.
func (b *Breaker) probeDue(now time.Time) (of shortage.Resource, due bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why.Of, b.state == open && !now.Before(b.next)
}

// probeAt sets the time of the next probe.
func (b *Breaker) probeAt(next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.next = next
}

// allow makes the breaker half-open, so that at most limit jobs run at once.
func (b *Breaker) allow(now time.Time, limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.state = halfOpen
	b.limit = limit
	b.next = now.Add(stepFor)
}

// step does what is due while the breaker is half-open and no shortage was met for stepFor: it doubles
// the limit or, if no jobs wait for that, closes the breaker. Then it returns the shortage that has
// ended, and how many jobs or deliveries met it. Otherwise hits is 0.
func (b *Breaker) step(now time.Time, full bool) (ended shortage.OpenBreaker, hits int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.state != halfOpen || now.Before(b.next) {
		return shortage.OpenBreaker{}, 0
	}

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

// Room returns how many more jobs may be claimed, given how many run.
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

// Closed reports whether the breaker is closed, so that as many jobs may start as there are workers.
func (b *Breaker) Closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == closed
}

// NextAt returns when Attend has something to do; zero: never.
func (b *Breaker) NextAt() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.state == closed {
		return time.Time{}
	}

	return b.next
}

// Why returns what has run out, and since when. ok is false while the breaker is closed.
func (b *Breaker) Why() (why shortage.OpenBreaker, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why, b.state != closed
}

// Shortages returns, for each resource that has run out since the start, how often it did, and how
// many jobs or deliveries met that.
func (b *Breaker) Shortages() map[shortage.Resource]shortage.Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.counts)
}
