package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"redrive/internal/engine/execution"
	"redrive/internal/engine/outcome"
	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/wire"
)

// temporary reports whether an error of the store is no reason not to start:
// people can look at pages meanwhile, and the dispatcher tries again.
func temporary(err error) bool {
	return errors.Is(err, fault.ErrStorageFull) || errors.Is(err, fault.ErrReadOnly) || errors.Is(err, fault.ErrUnsafe) ||
		errors.Is(err, fault.ErrBusy)
}

// takeOver ends the executions of the process that had the file before, in
// batches, and frees the jobs whose handlers exist now. It returns the outcomes
// whose dead letters are to be delivered before they can be written; with an
// error none, since what is not written is found again.
func (e *Engine) takeOver(ctx context.Context) (deadLetters []outcome.Outcome, _ error) {
	orphans, err := e.o.Store.Leases(ctx, time.Time{})
	if err != nil {
		return nil, err
	}

	for batch := range slices.Chunk(orphans, 500) {
		if e.life.reached(stopping) {
			return nil, execution.ErrStopping
		}

		// Dead letters that are to be sent are not waited for here.
		var outcomes []outcome.Outcome
		for _, o := range e.settleLost(batch, time.Now()) {
			if o.Sends {
				deadLetters = append(deadLetters, o)
			} else {
				outcomes = append(outcomes, o)
			}
		}

		_, err := e.write(ctx, outcomes)
		if err != nil {
			return nil, err
		}
	}

	e.logOrphans(orphans)

	return deadLetters, e.unhold(ctx)
}

// logOrphans says what a dead process left. Jobs that it had only claimed in advance lost
// nothing.
func (e *Engine) logOrphans(orphans []job.Job) {
	unbegun := 0
	for _, j := range orphans {
		if j.Unbegun {
			unbegun++
		}
	}

	begun := len(orphans) - unbegun
	if begun > 0 {
		e.o.Log.Warn("Jobs that a dead process left running were settled as lost.", "jobs", begun)
	}

	if unbegun > 0 {
		e.o.Log.Info("Jobs that a dead process had claimed and that had not begun were put back.", "jobs", unbegun)
	}
}

// tookOver ends the taking over: from now on leases that ran out are looked
// for, so the dead letters that are on the way have to be known by then.
func (e *Engine) tookOver(deadLetters []outcome.Outcome) {
	e.post(deadLetters)
	e.behind.Store(false)
}

// post passes on the outcomes of executions that others had.
func (e *Engine) post(outcomes []outcome.Outcome) {
	for _, o := range outcomes {
		if o.Sends {
			e.executions.KeepEnded(&execution.Execution{Job: o.Job})
		}

		e.outbox.Post(o)
	}
}

// settleLost settles executions whose workers are gone.
func (e *Engine) settleLost(jobs []job.Job, now time.Time) []outcome.Outcome {
	outcomes := make([]outcome.Outcome, len(jobs))
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

// doubtful is the end of a job that was prefetched by a process that died.
func doubtful(j job.Job, now time.Time) job.Ending {
	return job.Ending{Outcome: job.Interrupted, Doubtful: true, FinishedAt: now.UTC(), Error: job.ErrorInfo{
		Type: "not_begun",
		Message: "worker " + j.Worker + " is gone. It had claimed the job in advance, and nothing shows that the job had begun, " +
			"so this attempt does not count.",
	}}
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
