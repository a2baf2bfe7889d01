package store

import (
	"maps"
	"slices"
	"sync/atomic"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// commitDispatch dispatches jobs on commit: it lets them be claimed in the very transaction
// that makes them available, when a dispatcher has workers for them. Between a caller and the
// start of a handler there is one commit instead of two.
type commitDispatch struct {
	store *Store
	to    atomic.Pointer[dispatcher] // nil: jobs wait to be claimed
	in    *db.Slot[dispatch]
}

// dispatch is what one transaction dispatches.
type dispatch struct {
	queues  map[string]bool // in which the transaction made jobs available
	asked   *dispatcher     // has reserved workers for the transaction, and is to be answered; nil: none
	claim   job.Claim       // what it reserved
	claimed []job.Job       // what was claimed for it
}

func newCommitDispatch(s *Store) *commitDispatch {
	return &commitDispatch{store: s, in: db.NewSlot(func() *dispatch { return &dispatch{queues: map[string]bool{}} })}
}

// dispatcher has workers.
type dispatcher struct {
	reserve func(queues []string) job.Claim
	start   func(job.Claim, []job.Job)
}

// DispatchOnCommit lets the caller start jobs in the transactions that make them available,
// in place of the previous caller. reserve says how many jobs of these queues could start at
// once; start follows it when the transaction has ended, with what was claimed: nothing when
// it failed. Both are called by the goroutine that is writing at the time. Once end has
// returned, no further transaction asks; one that has asked before is still answered.
func (s *Store) DispatchOnCommit(reserve func(queues []string) job.Claim, start func(job.Claim, []job.Job)) (end func()) {
	d := &dispatcher{reserve, start}
	s.dispatch.to.Store(d)
	return func() { s.dispatch.to.CompareAndSwap(d, nil) }
}

// Moved notes where jobs became available.
func (c *commitDispatch) Moved(t *db.Tx, m projection.Move) {
	if m.To != nil && m.To.State == job.Available && !m.To.Held {
		c.in.In(t).queues[m.To.Queue] = true
	}
}

// Flush claims what can start at once.
func (c *commitDispatch) Flush(t *db.Tx) error {
	to, d := c.to.Load(), c.in.In(t)
	if to == nil || len(d.queues) == 0 {
		return nil
	}

	// From here on the dispatcher keeps workers free and must be answered, also if the
	// transaction fails: then nothing was claimed.
	d.claim = to.reserve(slices.Sorted(maps.Keys(d.queues)))
	d.asked = to
	t.Undone(func() {
		d.claimed = nil
		d.answer()
	})

	for queue, n := range d.claim.Free {
		paused, err := c.store.pauses.isPaused(t, queue)
		if err != nil {
			return err
		}

		if paused {
			continue
		}

		err = c.claim(t, d, queue, n)
		if err != nil {
			return err
		}
	}

	return nil
}

// claim claims from a queue. An error that keeps it from doing so is not the
// transaction's fault: the claim is undone, and the next claim from the queue meets
// the error again and handles it. A queue with a job of an unknown type is left to
// that claim too.
func (c *commitDispatch) claim(t *db.Tx, d *dispatch, queue string, n int) error {
	const begin, undo = `SAVEPOINT dispatch`, `ROLLBACK TO dispatch`

	err := t.Run(begin)
	if err != nil {
		return err
	}

	next, err := c.store.candidates(t, queue, d.claim.Now, n)
	if err == nil {
		_, unknown := sortOut(next, d.claim.Knows)
		if len(unknown) > 0 {
			return nil
		}

		err = c.store.start(t, d.claim, next, false)
	}

	if err != nil {
		return t.Run(undo)
	}

	d.claimed = joined(d.claimed, next)

	return nil
}

// answer tells the dispatcher that was asked by a transaction what was claimed.
func (c *commitDispatch) answer(t *db.Tx) { c.in.In(t).answer() }

// answer tells the dispatcher once, if one was asked.
func (d *dispatch) answer() {
	if d.asked == nil {
		return
	}

	asked := d.asked
	d.asked = nil
	asked.start(d.claim, d.claimed)
}

// Committed has nothing to make known (see publisher).
func (c *commitDispatch) Committed(*db.Tx) {}
