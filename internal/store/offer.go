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
//
// All fields but to belong to the goroutine that is writing.
type offer struct {
	store *Store
	to    atomic.Pointer[dispatcher] // nil: jobs wait to be claimed

	fresh map[string]bool // queues in which the transaction made jobs available
	asked *dispatcher     // has reserved workers for the transaction, and is to be answered; nil: none
	claim job.Claim       // what it reserved
	taken []job.Job       // what was claimed for it
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

// Begin starts a transaction.
func (o *offer) Begin() {
	o.taken = nil
	o.answer() // the one before failed
	clear(o.fresh)
}

// Moved notes where jobs became available.
func (o *offer) Moved(m projection.Move) {
	if m.To != nil && m.To.State == job.Available && !m.To.Held {
		o.fresh[m.To.Queue] = true
	}
}

// Flush claims what can start at once.
func (o *offer) Flush(t *db.Tx) error {
	to := o.to.Load()
	if to == nil || len(o.fresh) == 0 {
		return nil
	}

	o.claim = to.reserve(slices.Sorted(maps.Keys(o.fresh)))
	o.asked = to

	for queue, n := range o.claim.Free {
		if o.store.known.isPaused(queue) {
			continue
		}

		if err := o.take(t, queue, n); err != nil {
			return err
		}
	}

	return nil
}

// take claims from a queue. An error that keeps it from doing so is not the
// transaction's fault: the claim is undone, and the next claim from the queue meets
// the error again and handles it. A queue with a job of an unknown type is left to
// that claim too.
func (o *offer) take(t *db.Tx, queue string, n int) error {
	const begin, undo = `SAVEPOINT offer`, `ROLLBACK TO offer`
	if err := t.Run(begin); err != nil {
		return err
	}

	next, err := o.store.candidates(t, queue, o.claim.Now, n)
	if err == nil {
		if _, unknown := sortOut(next, o.claim.Knows); len(unknown) > 0 {
			return nil
		}

		err = o.store.take(t, o.claim, next, false)
	}

	if err != nil {
		return t.Run(undo)
	}

	o.taken = joined(o.taken, next)

	return nil
}

// answer tells the dispatcher that was asked what was taken.
func (o *offer) answer() {
	if o.asked == nil {
		return
	}

	asked := o.asked
	o.asked = nil
	asked.start(o.claim, o.taken)
}

// Committed has nothing to make known (see publisher).
func (o *offer) Committed(*db.Tx) {}
