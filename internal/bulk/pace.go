package bulk

import (
	"time"

	"redrive/internal/job"
)

// pace is the rhythm of one running operation: the first job at once, each
// further one a fraction of a second after the one before.
type pace struct {
	rate  float64   // jobs a second, 0: as fast as it goes
	since time.Time // when the operation was resumed last
	base  time.Time // when the first job of this rhythm was due
	taken int       // since then
	last  time.Time // when the newest was taken
}

func newPace(o job.Operation, now time.Time) *pace {
	return &pace{rate: o.Pace.Rate, since: o.ResumedAt, base: now}
}

// due is how many jobs are due now; when none is, the time at which there will
// be. Jobs that follow one another fast come in small bundles.
func (p *pace) due(now time.Time) (n int, at time.Time) {
	if p.rate <= 0 {
		return job.OperationStep, now
	}
	at = p.dueAt(p.taken)
	if ready := p.last.Add(breath); p.taken > 0 && at.Before(ready) {
		at = ready
	}
	if at.After(now) {
		return 0, at
	}
	n = int(now.Sub(p.base).Seconds()*p.rate) + 1 - p.taken
	return min(max(n, 1), job.OperationStep), now
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
