package engine

import (
	"context"
	"time"

	"redrive/internal/engine/execution"
)

// flushLimit bounds how long a stop tries to write the last outcomes.
const flushLimit = 10 * time.Second

// Stop stops the engine gracefully, and returns when it has ended. Nothing is claimed from now on.
// Handlers can run for the length of the grace; then their contexts end, and the jobs of those that
// have not returned after ReturnLimit are given back without losing an attempt. Every outcome is
// written. If Start is running, Stop waits for it.
//
// The end of ctx, or a second call of Stop, ends the grace early. The error says how many outcomes
// could not be written; the next Start settles their jobs as lost.
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

// beginStop sets the phase to stopping, so that no more executions begin. How life.done is closed
// depends on the phase before. A second stop hurries the first one.
func (e *Engine) beginStop() {
	e.executions.Close()

	before := phase(e.life.phase.Load())
	for before < stopping && !e.life.advance(before, stopping) {
		before = phase(e.life.phase.Load())
	}

	switch before {
	case fresh: // nothing runs
		close(e.life.done)
	case starting: // Start will notice, and close done
	case running:
		go e.shutdown()
	default:
		e.rush()
	}
}

// rush ends the grace, and every other wait that can end early.
func (e *Engine) rush() {
	e.life.rush.Do(func() { close(e.life.hurry) })
	e.notify()
}

// shutdown is the goroutine that stops a running engine. Stop waits for it.
func (e *Engine) shutdown() {
	defer close(e.life.done)

	// Nothing starts any more.
	e.onCommit.stop()
	e.interrupt(e.executions.AbandonWaiting())
	e.notify()

	// Handlers have the grace to return. Then their contexts end, and they have ReturnLimit. Then they
	// are given up.
	drained := await(e.life.drained, e.o.Grace, e.life.hurry)
	if !drained {
		e.outbox.Interrupt(execution.ErrStopping)
		e.executions.CancelAll(execution.ErrStopping)
		drained = await(e.life.drained, execution.ReturnLimit, nil)
		e.interrupt(e.executions.AbandonAll())
	}

	// All executions have ended: the dispatcher writes the last outcomes.
	e.outbox.Close()
	e.life.advance(stopping, flushing)
	e.notify()

	if !await(e.life.settled, flushLimit, nil) {
		e.rush()
		<-e.life.settled
	}

	// Wait for all goroutines, except those of handlers that do not return.
	e.heartbeat.Wait()

	if drained {
		e.pool.Wait()
		e.outbox.Wait()
	}
}

// interrupt settles executions that were ended because the engine stops, as interrupted. Their
// handlers keep their workers.
func (e *Engine) interrupt(all []*execution.Execution) {
	e.logAbandoned(all)

	for _, x := range all {
		e.outbox.Post(e.settle(x.Job, execution.Interrupted()))
	}
}
