package engine

import (
	"context"
	"time"

	"redrive/internal/engine/execution"
)

// flushLimit bounds how long a stop tries to write the last outcomes.
const flushLimit = 10 * time.Second

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

// beginStop lets no more executions begin, and sees to it that done is closed at
// the end of everything, depending on how far the engine has come.
func (e *Engine) beginStop() {
	e.executions.Close()

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
	e.interrupt(e.executions.AbandonWaiting())
	e.notify()

	// What runs has the grace to end, then its context ends, and then it is given up.
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

// interrupt settles executions that were ended because the engine stops. Those with a
// handler keep their workers.
func (e *Engine) interrupt(all []*execution.Execution) {
	e.logAbandoned(all)

	for _, x := range all {
		e.outbox.Post(e.settle(x.Job, execution.Interrupted()))
	}
}
