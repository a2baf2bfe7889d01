package access

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// The bounds on guessing passwords that cannot be set.
const (
	guessWindow   = 15 * time.Minute    // in which tries of one person, or from one address, are counted
	minuteWindow  = time.Minute         // in which those of all are
	knownFor      = 30 * 24 * time.Hour // that a user who logged in is remembered
	maxKnown      = 10_000              // people who are remembered
	auditedMinute = 10                  // failures that are written to the audit log
)

// Tries is how many logins may be tried: within a quarter of an hour for one name
// from one address and from one address with any names, and within a minute by
// all clients together.
type Tries struct{ Person, Address, Minute int }

// Limiter bounds how many logins are tried. The bound on all clients together comes last,
// and bounds the memory as well. A user who logged in from an address before is bound by
// the first one alone, so that others cannot shut them out. A Limiter never reads a clock.
type Limiter struct {
	most Tries

	mu        sync.Mutex
	people    map[person][]time.Time // tries of the last quarter of an hour, the oldest first
	addresses map[string][]time.Time
	all       []time.Time          // tries of the last minute
	audited   []time.Time          // failures of the last minute that were written down
	known     map[person]time.Time // when the person logged in
}

type person struct{ name, address string }

// NewLimiter returns a limiter that has seen nothing.
func NewLimiter(most Tries) *Limiter {
	return &Limiter{most: most, people: map[person][]time.Time{}, addresses: map[string][]time.Time{}, known: map[person]time.Time{}}
}

// Try counts one try, unless there were too many: then it says how long to wait
// for the next. The caller calls it before it looks at the password, so that many tries
// at once are no more than one after the other. When the tries of others are in the way,
// Try calls seen, which reports whether a user of this name is known to have logged in
// from this address, beside those that the limiter remembers.
func (l *Limiter) Try(now time.Time, name, address string, seen func() bool) (wait time.Duration) {
	wait, others := l.try(now, person{name, address}, false)
	if others && seen() {
		wait, _ = l.try(now, person{name, address}, true)
	}

	return wait
}

// try reports as well whether the tries of others are in the way.
func (l *Limiter) try(now time.Time, who person, known bool) (wait time.Duration, others bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.forget(now)

	known = known || now.Sub(l.known[who]) < knownFor
	own, near := since(l.people[who], now.Add(-guessWindow)), since(l.addresses[who.address], now.Add(-guessWindow))
	switch {
	case len(own) >= l.most.Person:
		return own[0].Add(guessWindow).Sub(now), false
	case known: // the tries of others do not matter
	case len(near) >= l.most.Address:
		return near[0].Add(guessWindow).Sub(now), true
	case len(l.all) >= l.most.Minute:
		return l.all[0].Add(minuteWindow).Sub(now), true
	default:
		l.all, l.addresses[who.address] = append(l.all, now), append(near, now)
	}

	l.people[who] = append(own, now)

	return 0, false
}

// Passed takes back the tries of a user who knew the password, and remembers the user.
func (l *Limiter) Passed(now time.Time, name, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	who := person{name, address}
	near := l.addresses[address]
	for _, own := range l.people[who] { // never one of another person: it would let them try again
		if i := slices.Index(near, own); i >= 0 {
			near = slices.Delete(near, i, i+1)
		}
	}

	delete(l.people, who)

	if len(near) > 0 {
		l.addresses[address] = near
	} else {
		delete(l.addresses, address)
	}

	if len(l.known) >= maxKnown { // they are known by their sessions
		clear(l.known)
	}

	l.known[who] = now
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

// forget removes the tries that no longer count, once a minute at most: when none
// of the last minute are left, or when there are more than can have been made.
func (l *Limiter) forget(now time.Time) {
	l.all = since(l.all, now.Add(-minuteWindow))
	if most := 2 * l.most.Minute * int(guessWindow/minuteWindow); len(l.all) > 0 && len(l.people) < most {
		return
	}

	old := func(tries []time.Time) bool { return len(since(tries, now.Add(-guessWindow))) == 0 }
	maps.DeleteFunc(l.people, func(_ person, tries []time.Time) bool { return old(tries) })
	maps.DeleteFunc(l.addresses, func(_ string, tries []time.Time) bool { return old(tries) })
}

// since drops the times before the bound. What is left is moved to the front,
// so that the list does not creep through memory.
func since(times []time.Time, bound time.Time) []time.Time {
	return slices.DeleteFunc(times, func(t time.Time) bool { return !t.After(bound) })
}
