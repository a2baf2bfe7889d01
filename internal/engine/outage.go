package engine

import (
	"sync"
	"time"

	"redrive/internal/job"
)

const (
	// briefly is how long the database may refuse before that is said: another process may
	// keep it busy for a moment.
	briefly = time.Second
	// mute is how long the database may take for an answer before that is said.
	mute = 5 * time.Second
)

// outage remembers since when the database refuses what the dispatcher asks of it, or does
// not answer. Nothing is claimed then anyway; people and monitoring want to know why.
type outage struct {
	mu      sync.Mutex
	refused time.Time // since when the database refuses; zero: it does not
	asked   time.Time // since when it has not answered; zero: it is not asked
	count   int64     // how often it has begun to refuse
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

// begin says that the database refused, and reports whether it did not before.
func (o *outage) begin(now time.Time) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.refused.IsZero() {
		return false
	}
	o.refused = now
	o.count++
	return true
}

// end says that the database no longer refuses, and returns for how long it did.
func (o *outage) end(now time.Time) (lasted time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refused.IsZero() {
		return 0
	}
	lasted = now.Sub(o.refused)
	o.refused = time.Time{}
	return lasted
}

// on reports whether the database refuses.
func (o *outage) on() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.refused.IsZero()
}

// held says since when the database is away; ok is false when it is not, or only briefly.
func (o *outage) held(now time.Time) (hold job.Hold, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	hold = job.Hold{Of: job.Database, Reason: job.Database.Lack()}
	switch {
	case !o.refused.IsZero():
		hold.Since = o.refused.UTC()
		return hold, now.Sub(o.refused) >= briefly
	case !o.asked.IsZero() && now.Sub(o.asked) >= mute:
		hold.Since = o.asked.UTC()
		return hold, true
	}
	return job.Hold{}, false
}

// outages counts how often the database has begun to refuse.
func (o *outage) outages() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}

// Held says since when no jobs are claimed for want of something, and of what.
func (e *Engine) Held() (job.Hold, bool) {
	if hold, open := e.breaker.held(); open {
		return hold, true
	}
	return e.outage.held(time.Now())
}

// Shortages counts what has run out since the start, and what met it.
func (e *Engine) Shortages() map[job.Resource]job.Shortages {
	counts := e.breaker.shortages()
	if n := e.outage.outages(); n > 0 {
		counts[job.Database] = job.Shortages{Holds: n}
	}
	return counts
}
