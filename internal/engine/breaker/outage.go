package breaker

import (
	"sync"
	"time"

	"redrive/internal/shortage"
)

const (
	// refusesFor is how long the database has to refuse calls before that is reported as an outage:
	// another process may keep it busy for a moment.
	refusesFor = time.Second
	// silentFor is how long the database has to leave a call without an answer before that is.
	silentFor = 5 * time.Second
)

// Outage records since when the database refuses the calls of the dispatcher, or has not answered
// one. It stops nothing: the dispatcher cannot claim jobs then. It tells people and monitoring why.
type Outage struct {
	mu       sync.Mutex
	refusing time.Time // since when the database refuses calls; zero: it does not
	asked    time.Time // when the call began that has no answer yet; zero: there is none
	count    int64     // how often the database has begun to refuse calls
}

// Ask records that a call of the database begins.
func (o *Outage) Ask(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.asked = now
}

// Answered records that the call has ended, with or without an error.
func (o *Outage) Answered() {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.asked = time.Time{}
}

// Refuses records that the database refused a call. It reports whether that begins an outage: whether
// the call before it was not refused.
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

// Accepts records that the database does not refuse calls any more, and returns for how long it did.
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

// Refusing reports whether the database refuses calls.
func (o *Outage) Refusing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.refusing.IsZero()
}

// Why returns since when the database refuses calls or does not answer. ok is false if it does
// neither, or only for a short time.
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

// Times returns how often the database has begun to refuse calls.
func (o *Outage) Times() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}
