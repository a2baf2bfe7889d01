package access

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// The bounds on guessing passwords.
const (
	perPerson     = 5
	personWindow  = 15 * time.Minute
	perMinute     = 100 // by everybody together
	minuteWindow  = time.Minute
	auditedMinute = 10 // failures that are written to the audit log

	// maxPeople is more than can have tried within a quarter of an hour.
	maxPeople = 2 * perMinute * int(personWindow/minuteWindow)
)

// Limiter bounds how many logins are tried: five within a quarter of an hour
// for one name from one address, and a hundred a minute by everybody. The
// latter bounds its memory as well. It never reads a clock.
type Limiter struct {
	mu      sync.Mutex
	people  map[person][]time.Time // tries of the last quarter of an hour, the oldest first
	all     []time.Time            // tries of the last minute
	audited []time.Time            // failures of the last minute that were written down
}

type person struct{ name, address string }

// NewLimiter returns a limiter that has seen nothing.
func NewLimiter() *Limiter { return &Limiter{people: map[person][]time.Time{}} }

// Try counts one try, unless there were too many: then it says how long to wait
// for the next. It is called before the password is looked at, so that many at
// once get no more tries than one after the other.
func (l *Limiter) Try(now time.Time, name, address string) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = since(l.all, now.Add(-minuteWindow))
	if len(l.all) >= perMinute {
		return l.all[0].Add(minuteWindow).Sub(now)
	}
	who := person{name, address}
	tries := since(l.people[who], now.Add(-personWindow))
	if len(tries) >= perPerson {
		l.people[who] = tries
		return tries[0].Add(personWindow).Sub(now)
	}
	if len(l.all) == 0 || len(l.people) >= maxPeople {
		l.forget(now)
	}
	l.all = append(l.all, now)
	l.people[who] = append(tries, now)
	return 0
}

// Passed takes back the tries of somebody who knew the password.
func (l *Limiter) Passed(name, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.people, person{name, address})
}

// Audits reports whether one more failure is worth a line in the audit log: a
// flood of them must not fill the disk.
func (l *Limiter) Audits(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.audited = since(l.audited, now.Add(-minuteWindow))
	if len(l.audited) >= auditedMinute {
		return false
	}
	l.audited = append(l.audited, now)
	return true
}

// forget removes the people who have not tried lately.
func (l *Limiter) forget(now time.Time) {
	maps.DeleteFunc(l.people, func(_ person, tries []time.Time) bool { return len(since(tries, now.Add(-personWindow))) == 0 })
}

// since drops the times before the bound. What is left is moved to the front,
// so that the list does not creep through memory.
func since(times []time.Time, bound time.Time) []time.Time {
	return slices.DeleteFunc(times, func(t time.Time) bool { return !t.After(bound) })
}
