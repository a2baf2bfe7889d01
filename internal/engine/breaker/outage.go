package breaker

import (
	"sync"
	"time"

	"redrive/internal/shortage"
)

const (
	// refusesFor is how long the database refuses before that is an outage: another process
	// may keep it busy for a moment.
	refusesFor = time.Second
	// silentFor is how long the database does not answer before that is one.
	silentFor = 5 * time.Second
)

// Outage remembers since when the database refuses what the dispatcher asks of it, or does
// not answer. Nothing is claimed then anyway; people and monitoring want to know why.
type Outage struct {
	mu       sync.Mutex
	refusing time.Time // since when the database refuses; zero: it does not
	asked    time.Time // since when it has not answered; zero: it is not asked
	count    int64     // how often it has begun to refuse
}

// Ask says that the database is asked now.
func (o *Outage) Ask(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.asked = now
}

// Answered says that the database has answered.
func (o *Outage) Answered() {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.asked = time.Time{}
}

// Refuses says that the database refused, and reports whether it did not before.
func (o *Outage) Refuses(now time.Time) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if !o.refusing.IsZero() {
		return false
	}

	o.refusing = now
	o.count++

	return true
}

// Accepts says that the database no longer refuses, and returns for how long it did.
func (o *Outage) Accepts(now time.Time) (lasted time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.refusing.IsZero() {
		return 0
	}

	lasted = now.Sub(o.refusing)
	o.refusing = time.Time{}

	return lasted
}

// Refusing reports whether the database refuses.
func (o *Outage) Refusing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.refusing.IsZero()
}

// Why says since when the database is away; ok is false when it is not, or only briefly.
func (o *Outage) Why(now time.Time) (why shortage.OpenBreaker, ok bool) {
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

// Times counts how often the database has begun to refuse.
func (o *Outage) Times() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}
