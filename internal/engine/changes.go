package engine

import (
	"sync"
	"time"

	"redrive/internal/engine/prefetch"
	"redrive/internal/engine/when"
	"redrive/internal/job"
)

// changes gathers what commits have changed, until the dispatcher takes it.
type changes struct {
	prefetch *prefetch.Jobs

	mu         sync.Mutex
	unseen     unseen
	dispatched map[string]bool // jobs that started on commit, and of which that commit tells next
}

// unseen is what the dispatcher has not seen of jobs that moved.
type unseen struct {
	queues     map[string]bool // queues of which jobs moved; true: jobs that can be claimed
	urgent     map[string]int  // jobs that should start before some that are prefetched, by queue
	due        time.Time       // when the earliest of the jobs that wait may run; zero: there is none
	everywhere bool            // something changed that names no job
}

// startedOnCommit takes in jobs that need not be claimed when their commit tells of them.
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

// add takes in jobs that moved, none when something changed that names no job. It reports
// whether the dispatcher needs to know.
func (c *changes) add(moved []job.Change) (relevant bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	// What the last commit started needs no claim. This is the commit that tells of it.
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
				u.queues[m.Queue] = false // its jobs can only run later
			}

			u.due = when.Earlier(u.due, m.RunAt)
		default: // also a job that waited for a handler: a claim that skipped many may have left more
			u.queues[m.Queue] = true
			if c.prefetch.IsOvertakenBy(m) {
				u.urgent[m.Queue]++
			}
		}

		relevant = true
	}

	return relevant
}

// claimable reports whether jobs of a state can be claimed, at once or later.
func claimable(s job.State) bool {
	return s == job.Available || s == job.Scheduled || s == job.Retryable
}

// take returns what the dispatcher has not seen.
func (c *changes) take() unseen {
	c.mu.Lock()
	defer c.mu.Unlock()

	u := c.unseen
	c.unseen = unseen{}

	return u
}
