package engine

import (
	"context"

	"redrive/internal/retry"
)

// Reloaded tells the engine that Options.Handlers and Options.Workers answer
// otherwise than before. What runs goes on; where there are fewer workers than jobs
// that run, no more start until enough have ended. Jobs that waited for a handler
// which exists now can run. While the store refuses to free them, the heartbeat tries
// it again.
func (e *Engine) Reloaded(ctx context.Context) {
	e.workers.askAgain()
	e.reloaded.Store(true)
	e.notify()

	err := e.unhold(ctx)
	if err != nil {
		e.unfreed.Store(true)
		e.o.Log.Warn("The jobs that waited for a handler could not be freed. Redrive will try again.", "error", err, "again_in", e.o.Lease/3)
	}
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

// unholdLater frees the jobs that a reload could not free.
func (e *Engine) unholdLater() {
	if !e.unfreed.Swap(false) {
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), e.o.Lease/3) // leases have to be extended meanwhile
	defer cancel()

	err := e.unhold(ctx)
	if err != nil {
		e.unfreed.Store(true)
		return
	}

	e.o.Log.Info("The jobs that waited for a handler were freed.")
}
