package engine

import (
	"context"
	"errors"

	"redrive/internal/job"
)

// couriers is how many dead letters are on the way at once, beside those that
// workers deliver themselves.
const couriers = 32

// errBudget is why a delivery ends whose receiver did not answer in time.
var errBudget = errors.New("the time for its delivery was over")

// settle decides what becomes of a job whose execution ended. A dead letter
// that it leaves may still have to be sent.
func (e *Engine) settle(j *job.Job, end job.Ending) outcome {
	if end.Outcome.Counted() && end.Outcome != job.Succeeded {
		end.Ruling, end.Note = e.o.Rules(*j, end)
	}
	o := outcome{job: j, settlement: j.Settle(end, e.o.Random)}
	if o.settlement.Letter != job.NoLetter {
		kept, known := e.o.Kept(j.Queue)
		o.settlement, o.sends = o.settlement.Delivered(kept), !known
	}
	return o
}

// partLetters parts the outcomes that can be written at once from those whose
// dead letters are to be sent before.
func partLetters(all []outcome) (plain, letters []outcome) {
	for _, o := range all {
		if o.sends {
			letters = append(letters, o)
		} else {
			plain = append(plain, o)
		}
	}
	return plain, letters
}

// conclude decides the outcome of an execution. It reports whether a dead
// letter is to be sent before that can be written; the caller does so. The
// lease is kept until then. After a stop has ended all deliveries there are no
// new ones. The caller holds the mutex.
func (e *Engine) conclude(x *execution, o outcome) (delivers bool) {
	x.ended = true
	switch {
	case !o.sends:
	case e.phase >= flushing:
		o.settlement = o.settlement.Delivered(undelivered())
	default:
		letter := o // o itself stays off the heap: most outcomes leave none
		x.letter = &letter
		e.held[x.job.Token] = x
		e.letters++
		return true
	}
	e.box.ended = append(e.box.ended, o)
	return false
}

// send hands on the outcome of an execution; its dead letter, if it leaves one,
// goes by a courier.
func (e *Engine) send(x *execution, o outcome) {
	e.mu.Lock()
	delivers := e.conclude(x, o)
	e.mu.Unlock()
	if !delivers {
		e.nudge()
		return
	}
	e.couriers.Go(func() {
		select {
		case e.bags <- struct{}{}:
			defer func() { <-e.bags }()
		case <-e.sending.Done():
		}
		e.deliver(x, o)
	})
}

// deliver takes a dead letter where it belongs, then hands on the outcome.
func (e *Engine) deliver(x *execution, o outcome) {
	letter, _ := o.settlement.DeadLetter(o.job.Queue)
	ctx, cancel := context.WithTimeoutCause(e.sending, e.o.DeliverWithin, errBudget)
	d := e.o.Deliver(ctx, *o.job, letter)
	cancel()
	e.mu.Lock()
	e.delivered(x, d)
	e.mu.Unlock()
	e.nudge()
}

// delivered hands on an outcome whose dead letter was accepted or refused,
// unless that was done before. The caller holds the mutex.
func (e *Engine) delivered(x *execution, d job.Delivery) {
	if x.letter == nil {
		return
	}
	o := outcome{job: x.letter.job, settlement: x.letter.settlement.Delivered(d)}
	x.letter = nil
	e.letters--
	e.box.ended = append(e.box.ended, o)
}

// flush begins the end: what was not delivered by now is refused and kept. Only
// writing is left.
func (e *Engine) flush() {
	e.mu.Lock()
	e.phase = flushing
	for _, x := range e.held {
		e.delivered(x, undelivered())
	}
	e.mu.Unlock()
	e.nudge()
}

func undelivered() job.Delivery {
	return job.Delivery{Problem: "the engine stopped before it was known whether the dead letter was accepted"}
}
