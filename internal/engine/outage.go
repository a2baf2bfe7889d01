package engine

import (
	"redrive/internal/shortage"
	"sync"
	"time"
)

const (
	// refusesFor is how long the database refuses before that is an outage: another process
	// may keep it busy for a moment.
	refusesFor = time.Second
	// silentFor is how long the database does not answer before that is one.
	silentFor = 5 * time.Second
)

// outage remembers since when the database refuses what the dispatcher asks of it, or does
// not answer. Nothing is claimed then anyway; people and monitoring want to know why.
type outage struct {
	mu       sync.Mutex
	refusing time.Time // since when the database refuses; zero: it does not
	asked    time.Time // since when it has not answered; zero: it is not asked
	count    int64     // how often it has begun to refuse
}

// ask says that the database is asked now.
func (o *outage) ask(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.asked = now
}

// answered says that the database has answered.
func (o *outage) answered() {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.asked = time.Time{}
}

// refuses says that the database refused, and reports whether it did not before.
func (o *outage) refuses(now time.Time) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if !o.refusing.IsZero() {
		return false
	}

	o.refusing = now
	o.count++

	return true
}

// accepts says that the database no longer refuses, and returns for how long it did.
func (o *outage) accepts(now time.Time) (lasted time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.refusing.IsZero() {
		return 0
	}

	lasted = now.Sub(o.refusing)
	o.refusing = time.Time{}

	return lasted
}

// on reports whether the database refuses.
func (o *outage) on() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.refusing.IsZero()
}

// held says since when the database is away; ok is false when it is not, or only briefly.
func (o *outage) held(now time.Time) (why shortage.OpenBreaker, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()

	why = shortage.OpenBreaker{Of: shortage.Database, Reason: shortage.Database.Lack()}
	switch {
	case !o.refusing.IsZero():
		why.Since = o.refusing.UTC()
		return why, now.Sub(o.refusing) >= refusesFor
	case !o.asked.IsZero() && now.Sub(o.asked) >= silentFor:
		why.Since = o.asked.UTC()
		return why, true
	}

	return shortage.OpenBreaker{}, false
}

// times counts how often the database has begun to refuse.
func (o *outage) times() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}

// Held says since when no jobs are claimed for want of something, and of what.
func (e *Engine) Held() (shortage.OpenBreaker, bool) {
	why, open := e.breaker.held()
	if open {
		return why, true
	}

	return e.outage.held(time.Now())
}

// Shortages counts what has run out since the start, and what met it.
func (e *Engine) Shortages() map[shortage.Resource]shortage.Counts {
	counts := e.breaker.shortages()
	n := e.outage.times()
	if n > 0 {
		counts[shortage.Database] = shortage.Counts{Openings: n}
	}

	return counts
}
