package engine

import (
	"context"

	"redrive/internal/engine/outcome"
	"redrive/internal/fault"
	"redrive/internal/job"
)

// write writes the settlements of outcomes in one transaction. If the database refuses one of them
// because of its content, the others are written in several transactions, and this one as
// writePlainly does. If the database refuses everything, write returns its error, and the outcomes
// that are left to be written.
func (e *Engine) write(ctx context.Context, batch []outcome.Outcome) (left []outcome.Outcome, err error) {
	_, stale, err := e.o.Store.Exchange(ctx, outcome.AppendSettlements(nil, batch), job.Claim{})
	switch {
	case err == nil:
		e.noteWritten(batch, stale)
		return nil, nil
	case !fault.InInput(err) || len(batch) == 0:
		return batch, err
	case len(batch) == 1:
		return e.writePlainly(ctx, batch[0], err)
	}

	// Find the refused outcome by writing each half on its own.
	half := len(batch) / 2

	left, err = e.write(ctx, batch[:half])
	if err != nil {
		return append(left[:len(left):len(left)], batch[half:]...), err
	}

	return e.write(ctx, batch[half:])
}

// writePlainly writes the settlement of an outcome that the database refused, without the texts of
// the attempt. If that is refused as well, it puts the outcome into quarantine: the job stays
// active, and the next start settles it as lost. It does neither while the database refuses
// everything: then it returns the outcome and the error.
func (e *Engine) writePlainly(ctx context.Context, o outcome.Outcome, refusal error) (left []outcome.Outcome, err error) {
	if err := e.o.Store.Ping(ctx); err != nil {
		return []outcome.Outcome{o}, err
	}

	plain := o
	plain.Settlement = o.Settlement.Plain(o.Job.Type, refusal.Error())
	_, stale, err := e.o.Store.Exchange(ctx, []job.Settlement{plain.Settlement}, job.Claim{})

	about := []any{"job", o.Job.ID, "type", o.Job.Type, "queue", o.Job.Queue, "outcome", o.Settlement.Attempt.Outcome, "error", refusal}
	switch {
	case err == nil:
		e.o.Log.Error("The database refused the record of an attempt. The record was written without the texts of the attempt.", about...)
		e.noteWritten([]outcome.Outcome{plain}, stale)
		return nil, nil
	case !fault.InInput(err) || !e.executions.Quarantine(o):
		return []outcome.Outcome{o}, err
	}

	e.o.Log.Error("The database refuses to record how an execution ended. "+
		"Its job stays active until the next start of the program, which settles it as lost.", about...)

	return nil, nil
}

// noteWritten removes the leases of outcomes that were written, and reports the outcomes to
// Options.Settled. Outcomes with a stale token changed nothing, and are only logged.
func (e *Engine) noteWritten(batch []outcome.Outcome, stale []job.Token) {
	e.executions.Release(batch)

	fenced := make(map[job.Token]bool, len(stale))
	for _, token := range stale {
		fenced[token] = true
	}

	for _, o := range batch {
		switch {
		case o.Settlement.GivenBack:
		case fenced[o.Job.Token]:
			e.o.Log.Info("An execution had already been ended. Its outcome was dropped.",
				"job", o.Job.ID, "type", o.Job.Type, "outcome", o.Settlement.Attempt.Outcome)
		default:
			e.o.Settled(*o.Job, o.Settlement)
		}
	}
}
