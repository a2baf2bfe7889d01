package bulk

import (
	"time"

	"redrive/internal/operation"
)

// pace is the rhythm of one running operation: the first job at once, each
// further one a fraction of a second after the one before.
type pace struct {
	stride
	rate  float64   // jobs a second, 0: as fast as it goes
	since time.Time // when the operation was resumed last
	base  time.Time // when the first job of this rhythm was due
	taken int       // since then
	last  time.Time // when the newest was taken

	suspects int // one of the next so many spoils every step that it is in; 0: none is known
}

func newPace(o operation.Operation, now time.Time) *pace {
	return &pace{stride: firstStride, rate: o.Pace.Rate, since: o.ResumedAt, base: now}
}

// due is how many jobs are due now; when none is, the time at which there will
// be. Jobs that follow one another fast come in small bundles.
func (p *pace) due(now time.Time) (n int, at time.Time) {
	if p.rate <= 0 {
		return int(p.stride), now
	}
	at = p.dueAt(p.taken)
	if ready := p.last.Add(stepPause); p.taken > 0 && at.Before(ready) {
		at = ready
	}
	if at.After(now) {
		return 0, at
	}
	n = int(now.Sub(p.base).Seconds()*p.rate) + 1 - p.taken
	return min(max(n, 1), int(p.stride)), now
}

// careful is how many of n items a step takes: half of those among which the one
// is that spoils it.
func (p *pace) careful(n int) int {
	if p.suspects > 0 {
		n = min(n, max(1, p.suspects/2))
	}
	return n
}

// dueAt is when the job after n others is due.
func (p *pace) dueAt(n int) time.Time {
	return p.base.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
}

// took notes that n jobs were worked through. Time that was lost, because the
// database was busy or the machine asleep, is not made up for: the rate is a
// promise about every second.
func (p *pace) took(n int, now time.Time) {
	p.taken += n
	p.last = now
	if p.rate > 0 && now.Sub(p.dueAt(p.taken)) > time.Second {
		p.base, p.taken = now, 0
	}
}

// stride is how many items one step takes at most: as many as keep others who
// write from waiting long for its transaction.
type stride int

const (
	leastStride stride = 100
	firstStride stride = 250
	stepWithin         = 20 * time.Millisecond
)

// measured notes how long a step of n items took, from its turn to its commit: for
// so long others waited. One slow step says little, so none changes much.
func (s *stride) measured(n int, took time.Duration) {
	if stride(n) < *s {
		return // it says nothing of larger ones
	}
	fit := stride(float64(*s) * float64(stepWithin) / float64(max(took, time.Microsecond)))
	fit = min(max(fit, *s/2), *s+*s/4)
	*s = min(max(fit, leastStride), operation.MaxStep)
}
