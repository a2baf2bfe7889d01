package engine

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/wire"
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
	tokens := e.active.tokens()
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
		e.active.fence(token, errLeaseLost)
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
	seen := make(map[job.Token]bool, len(jobs))
	var lost []job.Job
	for _, j := range jobs {
		if seen[j.Token] = true; !before[j.Token] && e.reapable(j.Token) {
			lost = append(lost, j)
		}
	}
	e.post(e.settleLost(lost, now))
	return seen
}

// reapable reports whether an execution has no owner: it is not ours, and not one
// that the dispatcher is about to take over.
func (e *Engine) reapable(token job.Token) bool {
	return !e.behind.Load() && !e.life.reached(stopping) && !e.active.has(token)
}

// post hands on the outcomes of executions that others had.
func (e *Engine) post(outcomes []outcome) {
	for _, o := range outcomes {
		if o.sends {
			e.active.keep(&execution{job: o.job})
		}
		e.outbox.post(o)
	}
}

// settleLost settles executions whose workers are gone.
func (e *Engine) settleLost(jobs []job.Job, now time.Time) []outcome {
	outcomes := make([]outcome, len(jobs))
	for i, j := range jobs {
		if j.Unbegun {
			outcomes[i] = e.settle(&jobs[i], doubtful(j, now))
			continue
		}
		verb := "ran out"
		if j.LeaseUntil.After(now) {
			verb = "would have run out"
		}
		end := job.Ending{Outcome: job.Lost, FinishedAt: now.UTC(), Error: job.ErrorInfo{
			Type: "lost",
			Message: fmt.Sprintf("worker %s is gone: its last heartbeat was at %s, its lease %s at %s",
				j.Worker, wire.FormatTime(j.LastSeen), verb, wire.FormatTime(j.LeaseUntil)),
		}}
		outcomes[i] = e.settle(&jobs[i], end)
	}
	return outcomes
}

// doubtful is the end of a job that was in the hand of a process that died.
func doubtful(j job.Job, now time.Time) job.Ending {
	return job.Ending{Outcome: job.Interrupted, Doubtful: true, FinishedAt: now.UTC(), Error: job.ErrorInfo{
		Type: "not_begun",
		Message: "worker " + j.Worker + " is gone. It had claimed the job in advance, and nothing shows that the job had begun, " +
			"so this attempt does not count.",
	}}
}
