// Package outcome has the outcomes of executions until they are written: the list of those that the
// dispatcher writes next, and the outbox of those whose dead letters are sent first. Its types are
// safe for concurrent use.
package outcome

import (
	"slices"
	"sync"

	"redrive/internal/job"
)

// Outcome is how an execution ended.
type Outcome struct {
	Job        *job.Job       // the job as it was claimed
	Settlement job.Settlement // what is written
	Sends      bool           // the dead letter has to be sent first, and the settlement lacks what becomes of it
}

// GivenBack returns the outcome of a job that was claimed and does not begin.
func GivenBack(j *job.Job) Outcome {
	return Outcome{Job: j, Settlement: j.GiveBack()}
}

// Delivered returns the outcome with what became of its dead letter, so that it can be written.
func (o Outcome) Delivered(d job.Delivery) Outcome {
	return Outcome{Job: o.Job, Settlement: o.Settlement.Delivered(d)}
}

// AppendSettlements appends the settlements of outcomes to a list, and returns the list.
func AppendSettlements(to []job.Settlement, outcomes []Outcome) []job.Settlement {
	to = slices.Grow(to, len(outcomes))
	for i := range outcomes {
		to = append(to, outcomes[i].Settlement)
	}

	return to
}

// Unwritten are the outcomes that have to be written, in the order in which they were decided. The
// code that decides an outcome adds it, and the dispatcher takes all of them.
type Unwritten struct {
	mu  sync.Mutex
	all []Outcome
}

// Add adds an outcome at the end.
func (u *Unwritten) Add(o Outcome) {
	u.mu.Lock()
	defer u.mu.Unlock()

	u.all = append(u.all, o)
}

// Take moves all outcomes to the end of a list, and returns the list.
func (u *Unwritten) Take(to []Outcome) []Outcome {
	u.mu.Lock()
	defer u.mu.Unlock()

	to = append(to, u.all...)
	clear(u.all) // their texts can be large
	u.all = u.all[:0]

	return to
}

// Count returns how many outcomes have to be written.
func (u *Unwritten) Count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.all)
}
