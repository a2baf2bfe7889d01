package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// phase is how far an engine has come. It only rises, except that a start that failed sets it back
// to fresh.
type phase int32

const (
	fresh    phase = iota // not started
	starting              // in Start
	running
	stopping // nothing more is claimed or begins
	flushing // no handler runs and no dead letter is being sent: what is in memory is written
)

// life has the phase of an engine, and the channels that are closed as it ends.
type life struct {
	phase   atomic.Int32
	drained chan struct{} // closed when the engine is stopping, no handler runs and no dead letter is being sent
	settled chan struct{} // closed when the dispatcher has ended
	hurry   chan struct{} // closed when a stop must not wait any longer
	rush    sync.Once     // closes hurry
	done    chan struct{} // closed when everything has ended

	err error // of the dispatcher; to be read when it has ended
}

func newLife() life {
	return life{drained: make(chan struct{}), settled: make(chan struct{}), hurry: make(chan struct{}), done: make(chan struct{})}
}

// advance changes the phase from one to another. It returns false, and changes nothing, if the phase
// is not from.
func (l *life) advance(from, to phase) bool { return l.phase.CompareAndSwap(int32(from), int32(to)) }

// reached reports whether the engine is in a phase or past it.
func (l *life) reached(p phase) bool { return l.phase.Load() >= int32(p) }

// await waits until done or hurry is closed, but not longer than limit. It reports whether done is
// closed.
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

// closed reports whether a channel is closed to which nothing is sent.
func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
