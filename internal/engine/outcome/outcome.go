// Package outcome has the ends of executions until they are written: the list that the
// dispatcher writes, and the outbox that first sends the dead letters of some. Its types lock
// themselves.
package outcome

import (
	"slices"
	"sync"

	"redrive/internal/job"
)

// Outcome is an execution that ended, and how that is written down.
type Outcome struct {
	Job        *job.Job // as it was claimed
	Settlement job.Settlement
	Sends      bool // its dead letter is still to be sent, and to become part of the settlement
}

// GivenBack is the outcome of a job that was claimed and does not begin.
func GivenBack(j *job.Job) Outcome {
	return Outcome{Job: j, Settlement: j.GiveBack()}
}

// Delivered returns the outcome with what became of its dead letter.
func (o Outcome) Delivered(d job.Delivery) Outcome {
	return Outcome{Job: o.Job, Settlement: o.Settlement.Delivered(d)}
}

// AppendSettlements appends those of outcomes to a list.
func AppendSettlements(to []job.Settlement, outcomes []Outcome) []job.Settlement {
	to = slices.Grow(to, len(outcomes))
	for i := range outcomes {
		to = append(to, outcomes[i].Settlement)
	}

	return to
}

// Unwritten are the outcomes that are to be written, in the order in which they were decided.
// Whatever ends an execution adds to them; the dispatcher takes them all.
type Unwritten struct {
	mu  sync.Mutex
	all []Outcome
}

// Add adds one at the end.
func (u *Unwritten) Add(o Outcome) {
	u.mu.Lock()
	defer u.mu.Unlock()

	u.all = append(u.all, o)
}

// Take moves all outcomes to the end of a list, and returns it.
func (u *Unwritten) Take(to []Outcome) []Outcome {
	u.mu.Lock()
	defer u.mu.Unlock()

	to = append(to, u.all...)
	clear(u.all) // their texts can be large
	u.all = u.all[:0]

	return to
}

// Count counts them.
func (u *Unwritten) Count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.all)
}
