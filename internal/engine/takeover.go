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

// temporary reports whether an error of the store may pass, so that the engine starts all the same:
// the dispatcher tries again, and people can see pages meanwhile.
func temporary(err error) bool {
	return errors.Is(err, fault.ErrStorageFull) || errors.Is(err, fault.ErrReadOnly) || errors.Is(err, fault.ErrUnsafe) ||
		errors.Is(err, fault.ErrBusy)
}

// takeOver settles the executions of the process that had the store before, in batches, and frees
// the jobs that waited for a handler which exists now. It returns the outcomes that are not written,
// because their dead letters have to be sent first. After an error it can be called again, and finds
// what is not written.
func (e *Engine) takeOver(ctx context.Context) (deadLetters []outcome.Outcome, _ error) {
	orphans, err := e.o.Store.Leases(ctx, time.Time{})
	if err != nil {
		return nil, err
	}

	for batch := range slices.Chunk(orphans, 500) {
		if e.life.reached(stopping) {
			return nil, execution.ErrStopping
		}

		// Write the outcomes that need not wait for their dead letters to be sent.
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

// logOrphans logs how many jobs a dead process had left active: those that it was running, and those
// that it had only prefetched, which lose no attempt.
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

// tookOver ends takeOver. It posts the outcomes whose dead letters have to be sent before it allows
// the heartbeat to reap, so that their leases are known to be ours by then.
func (e *Engine) tookOver(deadLetters []outcome.Outcome) {
	e.post(deadLetters)
	e.behind.Store(false)
}

// post passes on the outcomes of executions of other processes. It keeps the leases of those whose
// dead letters are sent first.
func (e *Engine) post(outcomes []outcome.Outcome) {
	for _, o := range outcomes {
		if o.Sends {
			e.executions.KeepEnded(&execution.Execution{Job: o.Job})
		}

		e.outbox.Post(o)
	}
}

// settleLost returns the outcomes of executions of a process that is gone.
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

// doubtful returns how the execution of a job ends that was prefetched by a process that died. It
// loses no attempt.
func doubtful(j job.Job, now time.Time) job.Ending {
	return job.Ending{Outcome: job.Interrupted, Doubtful: true, FinishedAt: now.UTC(), Error: job.ErrorInfo{
		Type: "not_begun",
		Message: "worker " + j.Worker + " is gone. It had claimed the job in advance, and nothing shows that the job had begun, " +
			"so this attempt does not count.",
	}}
}

// unhold frees the jobs that waited for a handler which exists now. If such jobs do not wait any more,
// because Options.UnknownType has changed, it frees all of them.
func (e *Engine) unhold(ctx context.Context) error {
	free := e.knows
	if e.o.UnknownType != retry.UnknownHold {
		free = func(string) bool { return true }
	}

	_, err := e.o.Store.Unhold(ctx, free)

	return err
}
