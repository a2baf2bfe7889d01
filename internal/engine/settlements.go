package engine

import (
	"slices"
	"sync"

	"redrive/internal/job"
)

// outcome is an execution that ended, and how that is written down.
type outcome struct {
	job        *job.Job // as it was claimed
	settlement job.Settlement
	sends      bool // its dead letter is still to be sent, and to become part of the settlement
}

// delivered returns the outcome with what became of its dead letter.
func (o outcome) delivered(d job.Delivery) outcome {
	return outcome{job: o.job, settlement: o.settlement.Delivered(d)}
}

// givenBack is the outcome of a job that was claimed and does not begin.
func givenBack(x *execution) outcome {
	return outcome{job: x.job, settlement: x.job.GiveBack()}
}

// settlements are the outcomes that are to be written, in the order in which they were
// decided. Whatever ends an execution adds to them; the dispatcher takes them all.
type settlements struct {
	mu        sync.Mutex
	unwritten []outcome
}

func (s *settlements) add(o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.unwritten = append(s.unwritten, o)
}

// take moves all outcomes to the end of a list, and returns it.
func (s *settlements) take(to []outcome) []outcome {
	s.mu.Lock()
	defer s.mu.Unlock()

	to = append(to, s.unwritten...)
	clear(s.unwritten) // their texts can be large
	s.unwritten = s.unwritten[:0]

	return to
}

func (s *settlements) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unwritten)
}

// appendSettlements appends those of outcomes to a list.
func appendSettlements(to []job.Settlement, outcomes []outcome) []job.Settlement {
	to = slices.Grow(to, len(outcomes))
	for i := range outcomes {
		to = append(to, outcomes[i].settlement)
	}

	return to
}

// add takes an outcome that is to be written.
func (e *Engine) add(o outcome) {
	e.settlements.add(o)
	e.notify()
}

// noteWritten forgets the leases of outcomes that were written, and announces them. Those of
// stale tokens changed nothing.
func (e *Engine) noteWritten(batch []outcome, stale []job.Token) {
	e.executions.release(batch)

	fenced := make(map[job.Token]bool, len(stale))
	for _, token := range stale {
		fenced[token] = true
	}

	for _, o := range batch {
		switch {
		case o.settlement.GivenBack:
		case fenced[o.job.Token]:
			e.o.Log.Info("An execution had already been ended. Its outcome was dropped.",
				"job", o.job.ID, "type", o.job.Type, "outcome", o.settlement.Attempt.Outcome)
		default:
			e.o.Settled(*o.job, o.settlement)
		}
	}
}
