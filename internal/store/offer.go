package store

import (
	"maps"
	"slices"
	"sync"

	"redrive/internal/job"
	"redrive/internal/store/book"
	"redrive/internal/store/db"
)

// offer lets jobs be claimed in the very transaction that makes them available, when
// a taker has workers for them: between a caller and the start of a handler there is
// one commit instead of two.
type offer struct {
	store *Store
	fresh map[string]bool // queues in which the transaction made jobs available

	mu    sync.Mutex // held from the question until the answer to it
	taker *taker     // nil: nothing is offered
	asked bool
	claim job.Claim
	taken []job.Job
}

// taker has workers.
type taker struct {
	offer func(queues []string) job.Claim
	took  func(job.Claim, []job.Job)
}

// Serve lets the caller take jobs as they become available, in place of the previous
// taker. offer says how many jobs of these queues could start at once; took follows
// it when the transaction has ended, with what was claimed: nothing when it failed.
// Both are called by the goroutine that is writing at the time. Once end has returned, nothing is
// taken any more.
func (s *Store) Serve(offer func(queues []string) job.Claim, took func(job.Claim, []job.Job)) (end func()) {
	o, to := s.offer, &taker{offer, took}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taker = to
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.taker == to {
			o.taker = nil
		}
	}
}

// Begin starts a transaction.
func (o *offer) Begin() {
	o.taken = nil
	o.answer() // of one that failed
	clear(o.fresh)
}

// Moved notes where jobs became available.
func (o *offer) Moved(m book.Move) {
	if m.To != nil && m.To.State == job.Available && !m.To.Held {
		o.fresh[m.To.Queue] = true
	}
}

// Flush claims what can start at once.
func (o *offer) Flush(t *db.Tx) error {
	if len(o.fresh) == 0 {
		return nil
	}
	o.mu.Lock()
	if o.taker == nil {
		o.mu.Unlock()
		return nil
	}
	o.asked = true
	o.claim = o.taker.offer(slices.Sorted(maps.Keys(o.fresh)))
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

// answer tells the taker that was asked what was taken.
func (o *offer) answer() {
	if !o.asked {
		return
	}
	o.asked = false
	o.taker.took(o.claim, o.taken)
	o.mu.Unlock()
}

// Committed has nothing to make known (see publisher).
func (o *offer) Committed(*db.Tx) {}
