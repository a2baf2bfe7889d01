package engine

import (
	"context"

	"redrive/internal/engine/outcome"
	"redrive/internal/fault"
	"redrive/internal/job"
)

// write settles outcomes in one transaction. When the database refuses one of
// them for its own fault, the others are written without it. It returns what
// could not be written for the state of the database.
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

	// Find the refused one by halves.
	half := len(batch) / 2

	left, err = e.write(ctx, batch[:half])
	if err != nil {
		return append(left[:len(left):len(left)], batch[half:]...), err
	}

	return e.write(ctx, batch[half:])
}

// writePlainly settles an outcome that the database refused, without the texts
// that came with it. One that is refused even so is quarantined: its job stays
// active, and the next start settles it as lost. Neither is done while the
// database refuses everything.
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

// noteWritten forgets the leases of outcomes that were written, and reports them to Options.Settled. Those of
// stale tokens changed nothing.
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
