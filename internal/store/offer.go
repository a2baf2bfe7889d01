package store

import (
	"maps"
	"slices"
	"sync/atomic"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// offer dispatches jobs on commit: it lets them be claimed in the very transaction that
// makes them available, when a dispatcher has workers for them. Between a caller and the
// start of a handler there is one commit instead of two.
type offer struct {
	store   *Store
	to      atomic.Pointer[dispatcher] // nil: jobs wait to be claimed
	offered *db.Slot[offered]
}

// offered is what one transaction dispatches.
type offered struct {
	fresh map[string]bool // queues in which the transaction made jobs available
	asked *dispatcher     // has reserved workers for the transaction, and is to be answered; nil: none
	claim job.Claim       // what it reserved
	taken []job.Job       // what was claimed for it
}

func newOffer(s *Store) *offer {
	return &offer{store: s, offered: db.NewSlot(func() *offered { return &offered{fresh: map[string]bool{}} })}
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
	s.offer.to.Store(d)
	return func() { s.offer.to.CompareAndSwap(d, nil) }
}

// Moved notes where jobs became available.
func (o *offer) Moved(t *db.Tx, m projection.Move) {
	if m.To != nil && m.To.State == job.Available && !m.To.Held {
		o.offered.In(t).fresh[m.To.Queue] = true
	}
}

// Flush claims what can start at once.
func (o *offer) Flush(t *db.Tx) error {
	to, in := o.to.Load(), o.offered.In(t)
	if to == nil || len(in.fresh) == 0 {
		return nil
	}

	in.claim = to.reserve(slices.Sorted(maps.Keys(in.fresh)))
	in.asked = to
	t.Undone(func() {
		in.taken = nil
		in.answer()
	})

	for queue, n := range in.claim.Free {
		paused, err := o.store.pauses.isPaused(t, queue)
		if err != nil {
			return err
		}

		if paused {
			continue
		}

		err = o.take(t, in, queue, n)
		if err != nil {
			return err
		}
	}

	return nil
}

// take claims from a queue. An error that keeps it from doing so is not the
// transaction's fault: the claim is undone, and the next claim from the queue meets
// the error again and handles it. A queue with a job of an unknown type is left to
// that claim too.
func (o *offer) take(t *db.Tx, in *offered, queue string, n int) error {
	const begin, undo = `SAVEPOINT offer`, `ROLLBACK TO offer`
	if err := t.Run(begin); err != nil {
		return err
	}

	next, err := o.store.candidates(t, queue, in.claim.Now, n)
	if err == nil {
		if _, unknown := sortOut(next, in.claim.Knows); len(unknown) > 0 {
			return nil
		}

		err = o.store.take(t, in.claim, next, false)
	}

	if err != nil {
		return t.Run(undo)
	}

	in.taken = joined(in.taken, next)

	return nil
}

// answer tells the dispatcher that was asked by a transaction what was taken.
func (o *offer) answer(t *db.Tx) { o.offered.In(t).answer() }

// answer tells the dispatcher once, if one was asked.
func (in *offered) answer() {
	if in.asked == nil {
		return
	}

	asked := in.asked
	in.asked = nil
	asked.start(in.claim, in.taken)
}

// Committed has nothing to make known (see publisher).
func (o *offer) Committed(*db.Tx) {}
