package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// flushLimit bounds how long a stop tries to write the last outcomes.
const flushLimit = 10 * time.Second

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
	drained chan struct{} // closed when the engine is stopping, no handler runs and no letter is on the way
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

// Stop ends the engine gracefully. It claims no more at once, lets handlers
// run for the grace, ends the contexts of the rest, releases what did not
// finish without counting it, and writes every outcome. A Start under way it
// waits for. The end of ctx, or a second Stop, ends the grace. The error says
// how many outcomes could not be written; their jobs are settled as lost by the
// next Start.
func (e *Engine) Stop(ctx context.Context) error {
	e.beginStop()

	select {
	case <-e.life.done:
	case <-ctx.Done():
		e.rush()
		<-e.life.done
	}

	return e.life.err
}

// beginStop lets no more executions begin, and sees to it that the end of everything is
// announced, depending on how far the engine has come.
func (e *Engine) beginStop() {
	e.executions.close()

	before := phase(e.life.phase.Load())
	for before < stopping && !e.life.advance(before, stopping) {
		before = phase(e.life.phase.Load())
	}

	switch before {
	case fresh: // there is no loop, and there will be none
		close(e.life.done)
	case starting: // Start sees it, and closes done
	case running:
		go e.shutdown()
	default:
		e.rush()
	}
}

// rush ends the grace, and every other wait that can be cut short.
func (e *Engine) rush() {
	e.life.rush.Do(func() { close(e.life.hurry) })
	e.notify()
}

// shutdown is the goroutine that Stop waits for.
func (e *Engine) shutdown() {
	defer close(e.life.done)

	// Nothing starts any more.
	e.onCommit.stop()
	e.interrupt(e.executions.abandonWaiting(errStopping))
	e.notify()

	// What runs has the grace to end, then its context ends, and then it is given up.
	drained := await(e.life.drained, e.o.Grace, e.life.hurry)
	if !drained {
		e.outbox.interrupt(errStopping)
		e.executions.cancelAll(errStopping)
		drained = await(e.life.drained, returnLimit, nil)
		e.interrupt(e.executions.abandon(errStopping, func(*execution) bool { return true }))
	}

	// All executions have ended: the dispatcher writes the last outcomes.
	e.outbox.close()
	e.life.advance(stopping, flushing)
	e.notify()

	if !await(e.life.settled, flushLimit, nil) {
		e.rush()
		<-e.life.settled
	}

	// Wait for all goroutines, except those of handlers that do not return.
	e.heartbeat.Wait()

	if drained {
		e.pool.all.Wait()
		e.outbox.senders.Wait()
	}
}

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

// interrupt settles executions that were ended because the engine stops. Those with a
// handler keep their workers.
func (e *Engine) interrupt(all []*execution) {
	e.logAbandoned(all)

	for _, x := range all {
		e.outbox.post(e.settle(x.job, interrupted()))
	}
}
