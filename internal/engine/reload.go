package engine

import (
	"context"
	"fmt"

	"redrive/internal/retry"
)

// Reloaded tells the engine that Options.Handlers and Options.Workers answer
// otherwise than before. What runs goes on; where there are fewer workers than jobs
// that run, no more start until enough have ended. Jobs that waited for a handler
// which exists now can run.
func (e *Engine) Reloaded(ctx context.Context) error {
	e.active.forgetWorkers()
	e.reloaded.Store(true)
	e.notify()
	if err := e.unhold(ctx); err != nil {
		return fmt.Errorf("free the jobs that waited for a handler: %w", err)
	}
	return nil
}

// unhold frees the jobs whose handlers exist now.
func (e *Engine) unhold(ctx context.Context) error {
	free := e.knows
	if e.o.UnknownType != retry.UnknownHold {
		free = func(string) bool { return true }
	}
	_, err := e.o.Store.Unhold(ctx, free)
	return err
}

// forgetWorkers makes the number of workers of each queue be asked for again.
func (s *executions) forgetWorkers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.workers)
}

// askAgain takes over the numbers of workers, and looks for jobs that can start now.
func (d *dispatcher) askAgain() {
	for name, q := range d.queues {
		q.workers = d.active.workersOf(name)
	}
	d.lookEverywhere()
}
