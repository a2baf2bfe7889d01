package engine

import (
	"maps"
	"slices"
	"sync"
	"time"

	"redrive/internal/job"
)

// executions are those that this process has: from the claim of a job until its
// settlement is written, and until its handler has returned. Beside them stands
// what the dispatcher has to hear of, which it takes out all at once.
type executions struct {
	mu          sync.Mutex
	closed      bool                     // no more begin
	leased      map[job.Token]*execution // whose leases are ours, until their settlements are written
	quarantined map[job.Token]bool       // their settlements can never be written: they are left alone until the next start
	busy        map[string]int           // workers in use, by queue
	ended       []outcome                // to be written; for the dispatcher
	news        news                     // for the dispatcher
	limit       time.Time                // the first limit that the dispatcher does not know of
	stuck       map[string]*execution    // ended, but the handler has not returned; the newest of each job, by its id
	waiting     map[string]*wait         // jobs that wait for one of these, by their id
	hand        map[string][]inHand      // claimed, and without a worker; by queue, in the order in which they start
	workers     map[string]int           // of each queue
	askWorkers  func(queue string) int   // once for each queue, until forgetWorkers
	taken       map[string]bool          // jobs that were claimed in the transaction that made them available, of which we hear next
	promised    map[string]int           // free workers for which a claim is under way, by queue
	mayBegin    func(queue string) bool  // what is in hand; called with the mutex held
	clock       clock
}

// close lets no more executions begin.
func (s *executions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// begin lets an execution begin, which has its worker. The caller holds the mutex.
func (s *executions) begin(x *execution, t task) {
	x.task = t
	s.leased[x.job.Token] = x
	s.limit = earlier(s.limit, t.limit)
	s.endBy(t.ctx.deadline)
}

// free gives back a worker. The caller holds the mutex.
func (s *executions) free(queue string) {
	if s.busy[queue]--; s.busy[queue] == 0 {
		delete(s.busy, queue)
	}
}

// freeLater passes on a worker that finish left in use.
func (s *executions) freeLater(x *execution) (next *execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passOn(x.job.Queue)
}

// promise keeps free workers of a queue for a claim, at most so many; cut says that
// more are free.
func (s *executions) promise(queue string, workers, most int) (n int, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := workers - s.busy[queue] - s.promised[queue]
	if n = min(free, most); n > 0 {
		s.promised[queue] += n
	}
	return max(0, n), free > most
}

// workersOf is how many workers a queue has.
func (s *executions) workersOf(queue string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allWorkers(queue)
}

// allWorkers is workersOf for a caller that holds the mutex.
func (s *executions) allWorkers(queue string) int {
	n, known := s.workers[queue]
	if !known {
		n = s.askWorkers(queue)
		s.workers[queue] = n
	}
	return n
}

// took notes jobs that need not be claimed when we hear that they are available.
func (s *executions) took(claimed []job.Job) {
	if len(claimed) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = make(map[string]bool, len(claimed))
	for _, j := range claimed {
		s.taken[j.ID] = true
	}
}

// redeem ends the promises of a claim: its jobs have their workers.
func (s *executions) redeem(c job.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for queue, n := range c.Free {
		if s.promised[queue] -= n; s.promised[queue] == 0 {
			delete(s.promised, queue)
		}
	}
}

// keep holds the lease of an execution that another process had, until its
// settlement is written.
func (s *executions) keep(x *execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.ended = true
	s.leased[x.job.Token] = x
}

// returned notes that a handler has returned: from now on its ttr is over,
// however long the rules take. It reports whether the execution has ended
// before.
func (s *executions) returned(x *execution) (ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.returned = true
	return x.cause != nil
}

// finish takes the outcome of an execution whose handler returned, unless its
// end was decided before, for the cause that it gives. It passes the worker on,
// unless the dead letter is to be sent first.
func (s *executions) finish(x *execution, o outcome) (next *execution, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stuck[x.job.ID] == x {
		delete(s.stuck, x.job.ID)
	}
	if x.cause == nil {
		x.ended = true
		if o.sends {
			return nil, nil
		}
		s.ended = append(s.ended, o)
	}
	return s.passOn(x.job.Queue), x.cause
}

// add takes an outcome that is to be written.
func (s *executions) add(o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, o)
}

// take returns the outcomes that are to be written, and the news.
func (s *executions) take() ([]outcome, news) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended, heard := slices.Clone(s.ended), s.news
	clear(s.ended) // their texts can be large
	s.ended, s.news = s.ended[:0], news{}
	return ended, heard
}

// left counts the workers in use, and the outcomes that are to be written, now or
// when what is in hand is given back.
func (s *executions) left() (busy, unwritten int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unwritten = len(s.ended)
	for _, held := range s.hand {
		unwritten += len(held)
	}
	return len(s.busy), unwritten
}

// running counts the workers in use by queue.
func (s *executions) running() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.busy)
}

// allInUse counts the workers in use, and those that are promised.
func (s *executions) allInUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inUseOrPromised()
}

// inUseOrPromised is allInUse for a caller that holds the mutex.
func (s *executions) inUseOrPromised() (n int) {
	for _, workers := range []map[string]int{s.busy, s.promised} {
		for _, busy := range workers {
			n += busy
		}
	}
	return n
}

// inHand counts the jobs of a queue that are in hand.
func (s *executions) inHand(queue string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hand[queue])
}

// release forgets the leases of executions that are settled.
func (s *executions) release(batch []outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range batch {
		delete(s.leased, o.job.Token)
	}
}

// tokens lists the leases, those of outcomes that are not yet written included.
func (s *executions) tokens() []job.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.leased))
}

// has reports whether a lease is ours, or of an execution that is quarantined.
func (s *executions) has(token job.Token) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leased[token] != nil || s.quarantined[token]
}

// fence stops an execution that was ended from outside the engine. A context that
// ended before keeps its first cause.
func (s *executions) fence(token job.Token, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.quarantined, token)
	if x := s.leased[token]; x != nil && !x.ended {
		s.abandon(x, cause)
		delete(s.leased, token)
	}
}

// cancelAll ends the contexts of all executions.
func (s *executions) cancelAll(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.leased {
		x.endContext(cause)
	}
}

// abandon decides that an execution has ended, whatever its handler will say.
// The caller holds the mutex.
func (s *executions) abandon(x *execution, cause error) {
	x.ended, x.cause = true, cause
	x.endContext(cause)
	id := x.job.ID
	if x.handler != nil {
		x.gone = time.Now()
		s.stuck[id] = x
	} else if s.waits(x) {
		delete(s.waiting, id)
	}
}

// abandonAll does so for all that have not ended and are chosen by which, which
// is called with the mutex held.
func (s *executions) abandonAll(cause error, which func(*execution) bool) (all []*execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.leased {
		if !x.ended && which(x) {
			s.abandon(x, cause)
			all = append(all, x)
		}
	}
	return all
}

// newLimit is the first limit that the dispatcher did not know of: of a handler, or
// of the wait for an earlier one.
func (s *executions) newLimit() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.limit
	s.limit = time.Time{}
	return limit
}

// nextLimit is the first moment at which a handler may have to be given up, or
// has been waited for long enough.
func (s *executions) nextLimit(now time.Time) (limit time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.leased {
		if !x.ended && !x.returned {
			limit = earlier(limit, x.limit)
		}
	}
	for _, w := range s.waiting {
		if w.until.After(now) { // otherwise it waits for a worker
			limit = earlier(limit, w.until)
		}
	}
	return limit
}

// began is when an execution began that is ours.
func (s *executions) began(token job.Token) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.leased[token]
	if x == nil || s.waits(x) || s.isInHand(x) {
		return time.Time{}, false
	}
	return x.job.StartedAt, true
}

// isInHand reports whether an execution waits for a worker. The caller holds the
// mutex.
func (s *executions) isInHand(x *execution) bool {
	return slices.ContainsFunc(s.hand[x.job.Queue], func(h inHand) bool { return h.x == x })
}

// stuckHandlers lists those that go on although their executions have ended,
// the oldest first.
func (s *executions) stuckHandlers() []job.Stuck {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []job.Stuck
	for _, x := range s.stuck {
		all = append(all, job.Stuck{Job: *x.job, Since: x.gone})
	}
	slices.SortFunc(all, func(a, b job.Stuck) int { return a.Since.Compare(b.Since) })
	return all
}

// wait is a claimed job that has not begun, because the handler of an earlier
// execution of it has not returned.
type wait struct {
	x      *execution // has the lease, and no task
	before *execution // whose handler still runs
	until  time.Time  // not longer
}

// waits reports whether an execution only waits for an earlier one. The caller
// holds the mutex.
func (s *executions) waits(x *execution) bool {
	w := s.waiting[x.job.ID]
	return w != nil && w.x == x
}

// admit takes a worker for the execution, unless it has to wait for an earlier
// one; ok is false when no more begin.
func (s *executions) admit(x *execution, t task, until time.Time) (w *wait, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	if w := s.postpone(x, until); w != nil {
		return w, true
	}
	s.busy[x.job.Queue]++
	s.begin(x, t)
	return nil, true
}

// postpone lets an execution wait when an earlier handler of its job still
// runs; nil: it need not. It takes no worker meanwhile: the handler that it
// waits for has one. The caller holds the mutex.
func (s *executions) postpone(x *execution, until time.Time) *wait {
	before := s.stuck[x.job.ID]
	if before == nil || before.waitedFor {
		return nil
	}
	w := &wait{x: x, before: before, until: until}
	s.waiting[x.job.ID] = w
	s.leased[x.job.Token] = x
	s.limit = earlier(s.limit, until)
	return w
}

// startWaiting starts the jobs that need wait no longer, as far as workers are
// free: here their ttr begins.
func (d *dispatcher) startWaiting(now time.Time) {
	for w := d.active.nextWait(now); w != nil; w = d.active.nextWait(now) {
		j, t := w.x.job, d.newTask(w.x.job, now)
		began, late := d.active.beginWaiting(w, t, now)
		if !began {
			t.endContext(nil)
			continue
		}
		if late {
			d.o.Log.Warn("A job runs again although the handler of an earlier execution has not returned: the job waited as long as it should.",
				"job", j.ID, "type", j.Type, "queue", j.Queue, "given_up", w.before.gone)
		}
		d.handlers.hand(w.x)
	}
}

// nextWait is a wait that is over, in a queue with a free worker.
func (s *executions) nextWait(now time.Time) *wait {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	for _, w := range s.waiting {
		if queue := w.x.job.Queue; s.over(w, now) && s.busy[queue]+s.promised[queue] < s.allWorkers(queue) {
			return w
		}
	}
	return nil
}

// over reports whether the handler for which a job waits has returned, or was
// waited for long enough. The caller holds the mutex.
func (s *executions) over(w *wait, now time.Time) bool {
	return s.stuck[w.x.job.ID] != w.before || reached(w.until, now)
}

// beginWaiting lets an execution begin that waited; began is false when the job was
// taken back meanwhile. late says that the earlier handler still runs.
func (s *executions) beginWaiting(w *wait, t task, now time.Time) (began, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := w.x.job.ID
	if s.waiting[id] != w {
		return false, false
	}
	delete(s.waiting, id)
	w.x.job.StartedAt = now.UTC()
	if late = s.stuck[id] == w.before; late {
		w.before.waitedFor = true
	}
	s.busy[w.x.job.Queue]++
	s.begin(w.x, t)
	return true, late
}

// waitOf is what [Engine.Waiting] tells.
func (s *executions) waitOf(id string) (since, until time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting[id]
	if w == nil || s.over(w, time.Now()) {
		return time.Time{}, time.Time{}, w != nil
	}
	return w.before.gone, w.until, true
}
