package engine

import (
	"context"
	"time"

	"redrive/internal/engine/execution"
	"redrive/internal/fault"
	"redrive/internal/job"
)

// beat extends our leases, reaps those of others that ran out, and frees the jobs
// that a reload could not free, until the last outcome is written.
func (e *Engine) beat() {
	ticker := time.NewTicker(e.o.Lease / 3)
	defer ticker.Stop()

	reaped := map[job.Token]bool{}
	for {
		select {
		case <-e.life.settled:
			return
		case <-ticker.C:
			if e.extend() {
				reaped = e.reap(reaped)
			}

			e.unholdLater()
		}
	}
}

// extend gives a sign of life for all leases in one call, and reports whether
// all that are ours can be told from those that ran out.
func (e *Engine) extend() bool {
	tokens := e.executions.Tokens()
	if len(tokens) == 0 {
		return true
	}

	stale, refused, err := e.extendAll(time.Now(), tokens)
	if refused > 0 {
		e.o.Log.Error("The database refused to extend some leases.", "leases", refused)
	}

	if err != nil {
		e.o.Log.Warn("Leases could not be extended. Redrive will try again.", "leases", len(tokens), "error", err)
		return false
	}

	for _, token := range stale {
		e.fence(token, execution.ErrLeaseLost)
	}

	return true
}

// reap ends the executions whose leases ran out, except those that it ended
// before and that still wait to be written. It returns the ones it saw.
func (e *Engine) reap(before map[job.Token]bool) map[job.Token]bool {
	now := time.Now()

	jobs, err := e.o.Store.Leases(context.Background(), now)
	if err != nil {
		e.o.Log.Warn("Leases that ran out could not be read. Redrive will try again.", "error", err)
		return before
	}

	// Each of them once: its settlement may wait to be written.
	seen := make(map[job.Token]bool, len(jobs))
	var lost []job.Job
	for _, j := range jobs {
		seen[j.Token] = true
		if !before[j.Token] && e.reapable(j.Token) {
			lost = append(lost, j)
		}
	}

	e.post(e.settleLost(lost, now))

	return seen
}

// reapable reports whether an execution has no owner: it is not ours, and not one
// that the dispatcher is about to take over.
func (e *Engine) reapable(token job.Token) bool {
	return !e.behind.Load() && !e.life.reached(stopping) && !e.executions.Has(token)
}

// extendAll gives a sign of life for leases. One that is refused for its own
// fault does not keep the others from it.
func (e *Engine) extendAll(now time.Time, tokens []job.Token) (stale []job.Token, refused int, err error) {
	stale, err = e.o.Store.Extend(context.Background(), now, now.Add(e.o.Lease), tokens)
	switch {
	case err == nil:
		return stale, 0, nil
	case !fault.InInput(err):
		return nil, 0, err
	case len(tokens) == 1:
		return nil, 1, e.o.Store.Ping(context.Background())
	}

	// Find the refused one by halves.
	half := len(tokens) / 2

	first, refused, err := e.extendAll(now, tokens[:half])
	if err != nil {
		return nil, 0, err
	}

	second, more, err := e.extendAll(now, tokens[half:])

	return append(first, second...), refused + more, err
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
