package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/job"
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

func (e *Engine) beginStop() {
	e.active.close()
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
	e.onCommit.stop()
	e.interrupt(e.active.waits)
	e.notify()
	drained := await(e.life.drained, e.o.Grace, e.life.hurry)
	if !drained {
		e.outbox.interrupt(errStopping)
		e.active.cancelAll(errStopping)
		drained = await(e.life.drained, returnLimit, nil)
		e.interrupt(func(*execution) bool { return true })
	}
	e.outbox.close()
	e.life.advance(stopping, flushing)
	e.notify()
	if !await(e.life.settled, flushLimit, nil) {
		e.rush()
		<-e.life.settled
	}
	e.heartbeat.Wait()
	if drained {
		e.handlers.all.Wait()
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

// interrupt ends executions because the engine stops. Those with a handler keep
// their workers.
func (e *Engine) interrupt(which func(*execution) bool) {
	for _, x := range e.abandon(errStopping, which) {
		e.outbox.post(e.settle(x.job, x.interrupted()))
	}
}

// interrupted describes an execution that a stop ended: it does not count.
func (x *execution) interrupted() job.Ending {
	return job.Ending{Outcome: job.Interrupted, FinishedAt: time.Now().UTC(), Error: job.ErrorInfo{
		Type: "interrupted", Message: "the engine was stopped before the job ended",
	}}
}
