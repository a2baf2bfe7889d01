package live

import (
	"sync"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
)

// inbox has the changes that were not yet dispatched.
type inbox struct {
	mu       sync.Mutex
	changes  []job.Change
	overflow bool // some were dropped: every client must look again
	wake     chan struct{}
}

// put keeps changes for the next round. When too many wait it drops them all:
// to look again costs less than memory without a bound.
func (b *inbox) put(changes []job.Change) {
	b.mu.Lock()

	if len(b.changes)+len(changes) > inboxLimit {
		b.changes, b.overflow = b.changes[:0], true
	} else {
		b.changes = append(b.changes, changes...)
	}
	b.mu.Unlock()

	signal(b.wake)
}

// take empties the inbox, which goes on with the memory of spare.
func (b *inbox) take(spare []job.Change) (changes []job.Change, overflow bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	changes, overflow = b.changes, b.overflow
	b.changes, b.overflow = spare[:0], false

	return changes, overflow
}

// signal leaves a wake-up call unless one is waiting already.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// dispatch moves changes from the inbox to the mailboxes until the hub closes.
// Between two rounds it pauses, so that a burst of small commits costs
// one round and not thousands.
func (h *Hub) dispatch() {
	var spare []job.Change
	for {
		select {
		case <-h.done:
			return
		case <-h.inbox.wake:
		}

		changes, overflow := h.inbox.take(spare)
		h.deliver(changes, overflow)
		spare = changes

		select {
		case <-h.done:
			return
		case <-time.After(dispatchPause):
		}
	}
}

// deliver puts changes into the mailboxes of the clients that show them, and tells
// all clients that the totals have moved.
func (h *Hub) deliver(changes []job.Change, overflow bool) {
	h.mu.Lock()
	defer h.mu.Unlock()

	for _, change := range changes {
		for c := range h.rows[change.ID] {
			c.patch(change)
		}
	}

	// Each list once, however many clients show it.
	for filter, clients := range h.newer {
		if n := entered(filter, changes); n > 0 {
			for c := range clients {
				c.addNewer(n)
			}
		}
	}

	for c := range h.clients {
		c.touch(overflow)
	}
}

// entered counts the changes by which a job came into a list. A list of one
// status begins with the jobs that entered it last; a list of every status with those that
// were enqueued last.
func entered(f filter.Filter, changes []job.Change) (n int) {
	for _, c := range changes {
		if f.Queue != "" && f.Queue != c.Queue || !f.MatchesType(c.Type) {
			continue
		}

		switch f.Status {
		case "":
			if c.Run == 1 && c.Execution == 0 && !c.Held && (c.State == job.Available || c.State == job.Scheduled) {
				n++
			}
		case c.Status(), job.Status(c.State):
			n++
		}
	}

	return n
}

// subscribe replaces what a client shows.
func (h *Hub) subscribe(c *client, s subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()

	for _, id := range c.sub.ids {
		drop(h.rows, id, c)
	}

	if c.sub.newer {
		drop(h.newer, c.sub.list.Filter, c)
	}

	c.sub = s
	for _, id := range s.ids {
		add(h.rows, id, c)
	}

	if s.newer {
		add(h.newer, s.list.Filter, c)
	}

	c.renew(s)
}

// add notes that a client shows something.
func add[K comparable](index map[K]map[*client]struct{}, key K, c *client) {
	if index[key] == nil {
		index[key] = map[*client]struct{}{}
	}

	index[key][c] = struct{}{}
}

// drop is the opposite of add; it deletes a key that no client shows any more.
func drop[K comparable](index map[K]map[*client]struct{}, key K, c *client) {
	delete(index[key], c)

	if len(index[key]) == 0 {
		delete(index, key)
	}
}
