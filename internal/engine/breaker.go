package engine

import (
	"maps"
	"sync"
	"time"

	"redrive/internal/job"
)

const (
	minProbe = 2 * time.Second // from the beginning of a hold to the first look whether it is over
	maxProbe = 10 * time.Second
	trialFor = time.Second // how long so many jobs run before twice as many may
	stall    = 5 * time.Second
)

// hold keeps the engine from claiming while this process or machine has run out
// of something. Handlers and deliveries say that they met a shortage; the
// dispatcher looks every few seconds whether it is over, then lets one job run, a
// second later two, then four. When one of them meets a shortage it waits again,
// and longer; when none does although all run that could, the hold is over.
//
// A database that refuses or does not answer keeps the engine from claiming
// anyway. The hold remembers since when, for those who ask.
type hold struct {
	mu     sync.Mutex
	now    job.Hold // of a shortage; zero: none
	met    int      // executions that were given back in this hold
	pause  time.Duration
	next   time.Time // when to look whether it is over; in a trial: when that has succeeded
	trial  bool
	may    int // jobs run at once in a trial
	counts map[job.Resource]job.Shortages

	refused job.Hold  // of the database
	asked   time.Time // since when it has not answered; zero: it is not asked
}

// meet notes that an execution or a delivery met a shortage.
func (e *Engine) meet(s *job.Shortage) {
	if e.hold.begin(s, time.Now()) {
		e.o.Log.Warn("Something has run out, so no jobs are claimed. The affected jobs run again and lose no attempt.",
			"resource", s.Of, "error", s)
	}
	e.notify()
}

// begin reports whether this is the first that is heard of it.
func (h *hold) begin(s *job.Shortage, now time.Time) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first = h.now.Since.IsZero(); first {
		h.now.Since, h.pause, h.met, h.trial = now.UTC(), minProbe, 0, false
	}
	h.count(s.Of, first)
	h.now.Of, h.now.Reason = s.Of, s.Of.Lack()
	h.met++
	switch {
	case first:
		h.next = now.Add(h.pause)
	case h.trial:
		h.pause = min(2*h.pause, maxProbe)
		h.trial, h.next = false, now.Add(h.pause)
	}
	return first
}

// count adds to the counters. The caller holds the mutex.
func (h *hold) count(of job.Resource, begins bool) {
	if h.counts == nil {
		h.counts = map[job.Resource]job.Shortages{}
	}
	c := h.counts[of]
	if of != job.Database {
		c.GivenBack++
	}
	if begins {
		c.Holds++
	}
	h.counts[of] = c
}

// watch looks after the hold: whether it is time to try, and whether a trial has
// succeeded.
func (d *dispatcher) watch(now time.Time) {
	h := &d.hold
	of, look := h.due(now)
	switch {
	case !look:
	case of == "" && d.cut && h.more(now, d.o.MaxRunning):
	case of == "":
		began, met := h.end()
		d.o.Log.Info("Jobs are claimed again.", "held_for", now.Sub(began).Round(time.Millisecond), "given_back", met)
	case d.o.Probe(of) != nil:
		h.later(time.Now().Add(minProbe))
	default:
		h.try(time.Now(), d.active.allInUse()+1)
	}
}

// due reports whether the hold is to be looked after: what to probe, or nothing
// when a step of a trial has succeeded.
func (h *hold) due(now time.Time) (of job.Resource, look bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.now.Since.IsZero() || now.Before(h.next):
		return "", false
	case h.trial:
		return "", true
	}
	return h.now.Of, true
}

// end ends the hold.
func (h *hold) end() (began time.Time, met int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	began, met = h.now.Since, h.met
	h.now, h.trial = job.Hold{}, false
	return began, met
}

// later puts off the next look.
func (h *hold) later(next time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next = next
}

// try begins a trial of so many jobs.
func (h *hold) try(now time.Time, may int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trial, h.may, h.next = true, may, now.Add(trialFor)
}

// more lets twice as many jobs run, and reports whether that is a step at all.
func (h *hold) more(now time.Time, most int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.may >= most {
		return false
	}
	h.may, h.next = 2*h.may, now.Add(trialFor)
	return true
}

// room is how many jobs may be claimed while some run, of the most that ever may.
func (h *hold) room(running, most int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.now.Since.IsZero():
		return most - running
	case h.trial:
		return min(h.may, most) - running
	}
	return 0
}

// on reports whether there is a shortage, or the database refuses.
func (h *hold) on() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.now.Since.IsZero() || !h.refused.Since.IsZero()
}

// wakes is when the hold is to be looked after; zero: never.
func (h *hold) wakes() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now.Since.IsZero() {
		return time.Time{}
	}
	return h.next
}

// asks notes that the database is asked.
func (h *hold) asks(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = now.UTC()
}

// answered notes that the database has answered. When it no longer refuses, answered
// says how long it had refused before.
func (h *hold) answered(now time.Time, problem error) (first bool, lasted time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case problem == nil && !h.refused.Since.IsZero():
		lasted = now.Sub(h.refused.Since)
		h.refused = job.Hold{}
	case problem != nil:
		if first = h.refused.Since.IsZero(); first {
			h.refused = databaseHold(now)
			h.count(job.Database, true)
		}
	}
	return first, lasted
}

func databaseHold(since time.Time) job.Hold {
	return job.Hold{Of: job.Database, Since: since.UTC(), Reason: job.Database.Lack()}
}

// Held says since when no jobs are claimed for want of something, and of what.
func (e *Engine) Held() (job.Hold, bool) {
	h, now := &e.hold, time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.now.Since.IsZero():
		return h.now, true
	case !h.refused.Since.IsZero():
		return h.refused, now.Sub(h.refused.Since) >= time.Second // another process may keep it busy for a moment
	case !h.asked.IsZero() && now.Sub(h.asked) >= stall:
		return databaseHold(h.asked), true
	}
	return job.Hold{}, false
}

// Shortages counts what has run out since the start, and what met it.
func (e *Engine) Shortages() map[job.Resource]job.Shortages {
	e.hold.mu.Lock()
	defer e.hold.mu.Unlock()
	return maps.Clone(e.hold.counts)
}
