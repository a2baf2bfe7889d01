package engine

import (
	"sync"
	"time"

	"redrive/internal/job"
)

// news is what the dispatcher has not yet heard of jobs that moved. Its zero
// value is ready to use.
type news struct {
	mu sync.Mutex
	report
}

// report is a part of the news.
type report struct {
	queues map[string]bool // queues of which there is news; true: with jobs that can be claimed
	due    time.Time       // when the earliest of the waiting jobs that we heard of may run
	look   bool            // something changed that names no job
}

// add takes in changes, none for those that name no job, and reports whether
// the dispatcher cares.
func (n *news) add(changes []job.Change) (cares bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if cares = len(changes) == 0; cares {
		n.look = true
	}
	if n.queues == nil {
		n.queues = map[string]bool{}
	}
	for _, c := range changes {
		switch {
		case c.State != job.Available && c.State != job.Scheduled && c.State != job.Retryable:
			continue
		case c.State != job.Available && c.RunAt.After(time.Now()):
			n.queues[c.Queue] = n.queues[c.Queue] // known from now on, whatever it holds
			n.due = earlier(n.due, c.RunAt)
		default: // also when it was held: a claim that had to hold many may have left more
			n.queues[c.Queue] = true
		}
		cares = true
	}
	return cares
}

// take returns the news and forgets them.
func (n *news) take() report {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.report
	n.report = report{}
	return r
}

// earlier returns the earlier of two times, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// reached reports whether a moment has come; zero never does.
func reached(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }
