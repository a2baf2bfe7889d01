package engine

import (
	"sync"
	"time"

	"redrive/internal/engine/prefetch"
	"redrive/internal/engine/when"
	"redrive/internal/job"
)

// changes gathers what commits have changed until the dispatcher takes it.
type changes struct {
	prefetch *prefetch.Jobs

	mu         sync.Mutex
	unseen     unseen
	dispatched map[string]bool // the ids of jobs that were dispatched on commit, until add is called for that commit
}

// unseen is what the dispatcher does not know yet of jobs that moved.
type unseen struct {
	queues     map[string]bool // the queues of jobs that moved; true: a job can be claimed now; false: only later
	urgent     map[string]int  // by queue, how many jobs should start before a prefetched one
	due        time.Time       // when the first of the jobs that can be claimed later may run; zero: there is none
	everywhere bool            // anything may have changed
}

// startedOnCommit records which jobs a commit has dispatched. add ignores them when it is called for
// that commit.
func (c *changes) startedOnCommit(claimed []job.Job) {
	if len(claimed) == 0 {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.dispatched = make(map[string]bool, len(claimed))
	for _, j := range claimed {
		c.dispatched[j.ID] = true
	}
}

// add records the jobs that a commit has moved, and reports whether the dispatcher needs to know.
// Without jobs, anything may have changed.
func (c *changes) add(moved []job.Change) (relevant bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	// The jobs that this commit has dispatched need no claim.
	dispatched := c.dispatched
	c.dispatched = nil

	u := &c.unseen
	if u.queues == nil {
		u.queues = map[string]bool{}
		u.urgent = map[string]int{}
	}

	if len(moved) == 0 {
		u.everywhere = true
		return true
	}

	for _, m := range moved {
		switch {
		case !claimable(m.State) || dispatched[m.Token.ID]:
			continue
		case m.State != job.Available && m.RunAt.After(time.Now()):
			_, known := u.queues[m.Queue]
			if !known {
				u.queues[m.Queue] = false
			}

			u.due = when.Earlier(u.due, m.RunAt)
		default: // the job can be claimed now, or a claim has just held it, which may have left other jobs
			u.queues[m.Queue] = true
			if c.prefetch.IsOvertakenBy(m) {
				u.urgent[m.Queue]++
			}
		}

		relevant = true
	}

	return relevant
}

// claimable reports whether jobs of a state can be claimed, now or later.
func claimable(s job.State) bool {
	return s == job.Available || s == job.Scheduled || s == job.Retryable
}

// take returns what was recorded since the last call.
func (c *changes) take() unseen {
	c.mu.Lock()
	defer c.mu.Unlock()

	u := c.unseen
	c.unseen = unseen{}

	return u
}
