package engine

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/job"
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
	case <-e.done:
	case <-ctx.Done():
		e.rush()
		<-e.done
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopErr
}

func (e *Engine) beginStop() {
	e.mu.Lock()
	before := e.phase
	e.phase = max(before, stopping)
	e.mu.Unlock()
	switch before {
	case fresh: // there is no loop, and there will be none
		close(e.done)
	case starting: // Start sees it, and closes done
	case running:
		go e.shutdown()
	default:
		e.rush()
	}
}

// rush ends every wait that is only for politeness.
func (e *Engine) rush() {
	e.mu.Lock()
	first := !e.hurried
	e.hurried = true
	e.mu.Unlock()
	if first {
		close(e.hurry)
		e.nudge()
	}
}

// shutdown is the goroutine that Stop waits for.
func (e *Engine) shutdown() {
	defer close(e.done)
	e.releaseAll(e.waits)
	e.nudge()
	drained := await(e.drained, e.o.Grace, e.hurry)
	if !drained {
		e.interruptAll()
		drained = await(e.drained, patience, nil)
		e.releaseAll(func(*execution) bool { return true })
	}
	e.flush()
	if !await(e.settled, flushLimit, nil) {
		e.rush()
		<-e.settled
	}
	e.keeper.Wait()
	if drained {
		e.handlers.Wait()
		e.couriers.Wait()
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
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// interruptAll ends the contexts of all handlers and deliveries.
func (e *Engine) interruptAll() {
	e.interrupt(errStopping)
	e.mu.Lock()
	var all []*execution
	for _, x := range e.held {
		all = append(all, x)
	}
	e.mu.Unlock()
	for _, x := range all {
		x.cancel(errStopping)
	}
}

// interrupted describes an execution that a stop ended: it does not count.
func (x *execution) interrupted() job.Ending {
	return job.Ending{Outcome: job.Interrupted, FinishedAt: time.Now().UTC(), Error: job.ErrorInfo{
		Type: "interrupted", Message: "the engine was stopped before the job ended",
	}}
}

// unwritten notes, for Stop, what the dispatcher leaves behind. The caller
// holds the mutex.
func (e *Engine) unwritten(left int, problem error) {
	if left > 0 {
		e.stopErr = fmt.Errorf("stop the engine: %d outcomes were not written, and their jobs will be settled as lost at the next start: %w", left, problem)
	}
}
