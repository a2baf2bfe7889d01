// Package loglimit keeps a log readable when the same thing happens thousands of times, as
// when a disk is full or a service is down: the first times are logged one by one, and how
// often it happened after that in one line.
package loglimit

import (
	"sync"
	"time"
)

// What is logged of each kind.
const (
	Burst  = 10               // times in each period, one by one
	Period = 10 * time.Second // after which the others are counted in one line
)

// Limit tells which lines are logged. Each kind has its own share, so that none is drowned
// out by another. A period begins with the first line of its kind.
type Limit[K comparable] struct {
	more func(kind K, times int) // logs how many lines of a period were not logged

	mu      sync.Mutex
	periods map[K]*period // that have not ended
}

// period is what happened of one kind since its first line.
type period struct {
	times int
	end   *time.Timer
}

// New returns a limit that has seen nothing. more is called at the end of each period in
// which lines were not logged, one call at a time; it must not use the limit.
func New[K comparable](more func(kind K, times int)) *Limit[K] {
	return &Limit[K]{more: more, periods: map[K]*period{}}
}

// Log calls log unless the kind had its share in this period.
func (l *Limit[K]) Log(kind K, log func()) {
	l.mu.Lock()
	defer l.mu.Unlock()

	p := l.periods[kind]
	if p == nil {
		p = &period{}
		p.end = time.AfterFunc(Period, func() { l.finish(kind, p) })
		l.periods[kind] = p
	}

	p.times++
	if p.times <= Burst {
		log()
	}
}

// Flush ends all periods at once, as before the end of the process.
func (l *Limit[K]) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()

	for kind, p := range l.periods {
		p.end.Stop()
		l.count(kind, p)
	}
}

// finish ends a period when its time is over, unless Flush was faster.
func (l *Limit[K]) finish(kind K, p *period) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.periods[kind] == p {
		l.count(kind, p)
	}
}

// count removes a period, and has the lines counted that were not logged in it.
func (l *Limit[K]) count(kind K, p *period) {
	delete(l.periods, kind)

	if rest := p.times - Burst; rest > 0 {
		l.more(kind, rest)
	}
}
