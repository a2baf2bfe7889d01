package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// phase is how far an engine has come. It only rises, unless the start fails.
type phase int32

const (
	fresh    phase = iota
	starting       // Start is at work
	running
	stopping // no more claims
	flushing // no more handlers and deliveries: write what is in memory, and end
)

// life has the phase of an engine and the signals of its end.
type life struct {
	phase   atomic.Int32
	drained chan struct{} // closed when the engine is stopping, no handler runs and no dead letter is on the way
	settled chan struct{} // closed when the dispatcher has ended
	hurry   chan struct{} // closed when a stop must not wait any longer
	rush    sync.Once     // closes it
	done    chan struct{} // closed when everything has ended

	err error // of the dispatcher; to be read when it has ended
}

func newLife() life {
	return life{drained: make(chan struct{}), settled: make(chan struct{}), hurry: make(chan struct{}), done: make(chan struct{})}
}

// advance moves from one phase to another; false when it is not in the first.
func (l *life) advance(from, to phase) bool { return l.phase.CompareAndSwap(int32(from), int32(to)) }

func (l *life) reached(p phase) bool { return l.phase.Load() >= int32(p) }

// await waits for done, at most for a time, and not longer than until hurry.
func await(done <-chan struct{}, limit time.Duration, hurry <-chan struct{}) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()

	select {
	case <-done:
	case <-hurry:
	case <-timer.C:
	}

	return closed(done)
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
