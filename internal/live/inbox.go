package live

import (
	"sync"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
)

// inbox has the changes that are not yet dispatched to clients.
type inbox struct {
	mu       sync.Mutex
	changes  []job.Change
	overflow bool          // changes were dropped, so every client must look its rows up again
	wake     chan struct{} // has an element if there is something to take
}

// put adds changes. If there would be more than inboxLimit, it drops all of them, which makes every
// client look its rows up again. So the inbox is bounded.
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

// take returns the content of the inbox and empties it. The inbox uses the memory of spare from then
// on.
func (b *inbox) take(spare []job.Change) (changes []job.Change, overflow bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	changes, overflow = b.changes, b.overflow
	b.changes, b.overflow = spare[:0], false

	return changes, overflow
}

// signal puts an element into a channel with one slot, unless it has one.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// dispatch moves changes from the inbox to the mailboxes until the hub is closed. It pauses after
// each round, so that a burst of small commits costs one round and not thousands.
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

	// Count the newer jobs of each list once, for all clients that show it.
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

// entered counts the changes by which a job entered a list at its top. At the top of a list of one
// status are the jobs that came into this status last. At the top of a list of all statuses are the
// jobs that were enqueued last.
func entered(f filter.Filter, changes []job.Change) (n int) {
	for _, c := range changes {
		if f.Queue != "" && f.Queue != c.Queue || !f.MatchesType(c.Type) {
			continue
		}

		switch f.Status {
		case "": // was the job just enqueued?
			if c.Run == 1 && c.Execution == 0 && !c.Held && (c.State == job.Available || c.State == job.Scheduled) {
				n++
			}
		case c.Status(), job.Status(c.State):
			n++
		}
	}

	return n
}

// subscribe replaces the subscription of a client.
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

// add adds a client to those of a key.
func add[K comparable](index map[K]map[*client]struct{}, key K, c *client) {
	if index[key] == nil {
		index[key] = map[*client]struct{}{}
	}

	index[key][c] = struct{}{}
}

// drop removes a client from those of a key, and the key if it has no more clients.
func drop[K comparable](index map[K]map[*client]struct{}, key K, c *client) {
	delete(index[key], c)

	if len(index[key]) == 0 {
		delete(index, key)
	}
}
