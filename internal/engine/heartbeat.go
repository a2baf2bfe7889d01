package engine

import (
	"context"
	"time"

	"redrive/internal/engine/execution"
	"redrive/internal/fault"
	"redrive/internal/job"
)

// beat is the goroutine of the heartbeat. Three times within the length of a lease, it extends our
// leases, reaps those of others that ran out, and frees the jobs that a reload could not free. It
// ends when the dispatcher has ended.
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

// extend extends all our leases. Executions whose leases were lost are ended. It reports whether the
// database did so: only then can leases that ran out be known not to be ours.
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

// reap ends the executions of others whose leases ran out. It returns all leases that ran out, and
// gets those of the last call as before: it has ended these already, and they only wait to be
// written.
func (e *Engine) reap(before map[job.Token]bool) map[job.Token]bool {
	now := time.Now()

	jobs, err := e.o.Store.Leases(context.Background(), now)
	if err != nil {
		e.o.Log.Warn("Leases that ran out could not be read. Redrive will try again.", "error", err)
		return before
	}

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

// reapable reports whether the execution of a lease that ran out may be ended: it is not ours, and
// the dispatcher is not about to take it over.
func (e *Engine) reapable(token job.Token) bool {
	return !e.behind.Load() && !e.life.reached(stopping) && !e.executions.Has(token)
}

// extendAll extends leases. If the database refuses one because of its content, the others are
// extended without it. It returns the leases that were lost, and how many the database refused.
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

	// Find the refused lease by extending each half on its own.
	half := len(tokens) / 2

	first, refused, err := e.extendAll(now, tokens[:half])
	if err != nil {
		return nil, 0, err
	}

	second, more, err := e.extendAll(now, tokens[half:])

	return append(first, second...), refused + more, err
}

// unholdLater frees the jobs that a reload could not free, if there are any.
func (e *Engine) unholdLater() {
	if !e.unfreed.Swap(false) {
		return
	}

	// Leases have to be extended again after this time.
	ctx, cancel := context.WithTimeout(context.Background(), e.o.Lease/3)
	defer cancel()

	err := e.unhold(ctx)
	if err != nil {
		e.unfreed.Store(true)
		return
	}

	e.o.Log.Info("The jobs that waited for a handler were freed.")
}
