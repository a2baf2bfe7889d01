package engine

import (
	"time"

	"redrive/internal/job"
)

// mailbox collects what the dispatcher has to look at.
type mailbox struct {
	ended  []outcome       // to be written
	queues map[string]bool // queues with news; true: with jobs that can be claimed
	due    time.Time       // when the earliest of the waiting jobs that we heard of may run
	look   bool            // something changed that names no job
}

// newMailbox has room for so many outcomes: as many will come again.
func newMailbox(room int) mailbox {
	return mailbox{ended: make([]outcome, 0, room), queues: map[string]bool{}}
}

// outcome is an execution that ended, and how that is written down.
type outcome struct {
	job        *job.Job // as it was claimed
	settlement job.Settlement
	sends      bool // its dead letter is still to be sent, and to become part of the settlement
}

func settlements(outcomes []outcome) []job.Settlement {
	list := make([]job.Settlement, len(outcomes))
	for i, o := range outcomes {
		list[i] = o.settlement
	}
	return list
}

// note takes in a change and reports whether the dispatcher cares.
func (b *mailbox) note(c job.Change) bool {
	switch {
	case c.State == job.Available: // also when it was held: a claim that had to hold many may have left more
		b.queues[c.Queue] = true
	case c.State != job.Scheduled && c.State != job.Retryable:
		return false
	case c.RunAt.After(time.Now()):
		ready := b.queues[c.Queue]
		b.queues[c.Queue] = ready // known from now on, whatever it holds
		b.due = earlier(b.due, c.RunAt)
	default:
		b.queues[c.Queue] = true
	}
	return true
}

// earlier returns the earlier of two times, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Changed tells the engine that jobs moved: it claims what became available
// and stops what a person cancelled. It never blocks. Call it after every
// commit, and without changes when something else let jobs run, as the end of
// a queue's pause. A cancellation that comes between a claim and its start is
// noticed at the next heartbeat.
func (e *Engine) Changed(changes []job.Change) {
	var cancelled []*execution
	e.mu.Lock()
	news := len(changes) == 0
	e.box.look = e.box.look || news
	for _, c := range changes {
		if c.State != job.Cancelled {
			news = e.box.note(c) || news
		} else if x := e.held[c.Token]; x != nil {
			cancelled = append(cancelled, x)
		}
	}
	e.mu.Unlock()
	for _, x := range cancelled {
		e.fence(x, errCancelled)
	}
	if news {
		e.nudge()
	}
}

// nudge wakes the dispatcher; many nudges are one.
func (e *Engine) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}
