package engine

import (
	"context"
	"time"

	"redrive/internal/fault"
	"redrive/internal/job"
)

// The pauses before a queue is asked again whose claim was refused.
const (
	minAside = time.Second
	maxAside = time.Minute
)

// write settles outcomes in one transaction. When the database refuses one of
// them for its own fault, the others are written without it. It returns what
// could not be written for the state of the database.
func (e *Engine) write(ctx context.Context, batch []outcome) (left []outcome, err error) {
	_, stale, err := e.o.Store.Exchange(ctx, appendSettlements(nil, batch), job.Claim{})
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
func (e *Engine) writePlainly(ctx context.Context, o outcome, refusal error) (left []outcome, err error) {
	if err := e.o.Store.Ping(ctx); err != nil {
		return []outcome{o}, err
	}

	plain := o
	plain.settlement = o.settlement.Plain(o.job.Type, refusal.Error())
	_, stale, err := e.o.Store.Exchange(ctx, []job.Settlement{plain.settlement}, job.Claim{})

	about := []any{"job", o.job.ID, "type", o.job.Type, "queue", o.job.Queue, "outcome", o.settlement.Attempt.Outcome, "error", refusal}
	switch {
	case err == nil:
		e.o.Log.Error("The database refused the record of an attempt. The record was written without the texts of the attempt.", about...)
		e.noteWritten([]outcome{plain}, stale)
		return nil, nil
	case !fault.InInput(err) || !e.executions.quarantine(o):
		return []outcome{o}, err
	}

	e.o.Log.Error("The database refuses to record how an execution ended. "+
		"Its job stays active until the next start of the program, which settles it as lost.", about...)

	return nil, nil
}

// separate does one by one what the database refused as a whole: first the
// settlements, and when there are none, the claims of each queue on its own.
func (d *dispatcher) separate(claim job.Claim) {
	if err := d.o.Store.Ping(context.Background()); err != nil {
		d.fail(err)
		return
	}

	if len(d.pending) == 0 {
		d.claimApart(claim)
		return
	}

	left, err := d.write(context.Background(), d.pending)
	d.pending = left
	if err != nil {
		d.fail(err)
		return
	}

	d.recovered()
	d.notify() // nothing was claimed
}

// claimApart asks each queue on its own, so that one from which nothing can be
// claimed holds up no other. That one is asked again after a pause.
func (d *dispatcher) claimApart(claim job.Claim) {
	for name := range d.queues {
		if claim.Free[name]+claim.Prefetch[name] == 0 {
			continue
		}

		one := claim
		one.Free = map[string]int{name: claim.Free[name]}

		one.Prefetch = map[string]int{name: claim.Prefetch[name]}
		claimed, _, err := d.o.Store.Exchange(context.Background(), nil, one)
		switch {
		case err == nil:
			d.queues[name].aside = 0
			d.startClaimed(one, claimed)
			d.noteEmpty(one, claimed)
		case fault.InInput(err):
			d.putAside(name, err)
		default:
			d.fail(err)
			return
		}
	}

	d.recovered()
	d.notify() // the next time is not known
}

// putAside lets a queue wait.
func (d *dispatcher) putAside(name string, refusal error) {
	q := d.queues[name]
	q.aside = min(max(2*q.aside, minAside), maxAside)
	q.again = time.Now().Add(q.aside)
	d.limit = earlier(d.limit, q.again)

	d.o.Log.Error("The database refused to claim from a queue. Other queues continue, and Redrive will try this one again.",
		"queue", name, "error", refusal, "again_in", q.aside)
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
