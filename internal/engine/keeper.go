package engine

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/wire"
)

// keep extends our leases and ends those of others that ran out, until the
// last outcome is written.
func (e *Engine) keep() {
	ticker := time.NewTicker(e.o.Lease / 3)
	defer ticker.Stop()
	lost := map[job.Token]bool{}
	for {
		select {
		case <-e.settled:
			return
		case <-ticker.C:
			if e.extend() {
				lost = e.reap(lost)
			}
		}
	}
}

// extend gives a sign of life for all leases in one call, and reports whether
// all that are ours can be told from those that ran out.
func (e *Engine) extend() bool {
	tokens := e.leases()
	if len(tokens) == 0 {
		return true
	}
	now := time.Now()
	stale, err := e.o.Store.Extend(context.Background(), now, now.Add(e.o.Lease), tokens)
	if err != nil {
		e.o.Log.Warn("Leases could not be extended. It is tried again.", "leases", len(tokens), "error", err)
		return false
	}
	for _, token := range stale {
		e.mu.Lock()
		x := e.held[token]
		e.mu.Unlock()
		if x != nil {
			e.fence(x, errLeaseLost)
		}
	}
	return true
}

// leases lists what we hold, outcomes that are not yet written included.
func (e *Engine) leases() []job.Token {
	e.mu.Lock()
	defer e.mu.Unlock()
	tokens := make([]job.Token, 0, len(e.held))
	for token := range e.held {
		tokens = append(tokens, token)
	}
	return tokens
}

// reap ends the executions whose leases ran out, except those that it ended
// before and that still wait to be written. It returns the ones it saw.
func (e *Engine) reap(before map[job.Token]bool) map[job.Token]bool {
	now := time.Now()
	jobs, err := e.o.Store.Leases(context.Background(), now)
	if err != nil {
		e.o.Log.Warn("Leases that ran out could not be read. It is tried again.", "error", err)
		return before
	}
	seen := make(map[job.Token]bool, len(jobs))
	var lost []job.Job
	for _, j := range jobs {
		if seen[j.Token] = true; !before[j.Token] && !e.holds(j.Token) {
			lost = append(lost, j)
		}
	}
	e.sendLost(e.lose(lost, now))
	return seen
}

// sendLost hands on the outcomes of executions that others had.
func (e *Engine) sendLost(outcomes []outcome) {
	for _, o := range outcomes {
		e.send(e.without(*o.job), o)
	}
}

// holds reports whether an execution is ours, or not to be ended by the reaper
// for another reason.
func (e *Engine) holds(token job.Token) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held[token] != nil || e.behind || e.phase > running
}

// lose settles executions whose workers are gone.
func (e *Engine) lose(jobs []job.Job, now time.Time) []outcome {
	outcomes := make([]outcome, len(jobs))
	for i, j := range jobs {
		verb := "ran out"
		if j.LeaseUntil.After(now) {
			verb = "would have run out"
		}
		end := job.Ending{Outcome: job.Lost, FinishedAt: now.UTC(), Error: job.ErrorInfo{
			Type: "lost",
			Message: fmt.Sprintf("worker %s is gone: its last sign of life was at %s, its lease %s at %s",
				j.Worker, wire.FormatTime(j.LastSeen), verb, wire.FormatTime(j.LeaseUntil)),
		}}
		outcomes[i] = e.settle(&jobs[i], end)
	}
	return outcomes
}
