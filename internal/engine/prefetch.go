package engine

import (
	"slices"
	"time"

	"redrive/internal/job"
)

// A worker that ends a job while a commit is written would be idle until the next
// one, so the engine claims more jobs than can start at once: as many as its
// workers will end during a commit. They are in hand: leased, and started by the
// workers themselves as these become free.
//
// A job in hand has not begun, and is charged no attempt when the process dies.
// That one has begun is written down with the next claim, which the end of the job
// before it brings about. A job that begins and takes its process with it before
// that is taken in hand once more without being charged, and no further time.
//
// No other job waits for those in hand: a job of a higher priority that arrives is
// claimed on top of them and starts first, and a job that has not begun within handFor
// is given back, as it is when its queue or the engine is paused.

const (
	// aheadOfWorkers bounds what is in hand for each worker.
	aheadOfWorkers = 4
	// handFor is how long a job is in hand at most.
	handFor = time.Second
)

// inHand is a job that was claimed before a worker was free.
type inHand struct {
	x     *execution // has the lease, and no task
	taken time.Time
}

// keepInHand takes a claimed job in hand, behind those of the same priority.
func (s *executions) keepInHand(x *execution, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leased[x.job.Token] = x
	all := s.hand[x.job.Queue]
	at, _ := slices.BinarySearchFunc(all, x.job.Priority, func(h inHand, priority int) int {
		if h.x.job.Priority >= priority {
			return -1
		}
		return 1
	})
	s.hand[x.job.Queue] = slices.Insert(all, at, inHand{x, now})
}

// fromHand takes the next job out of the hand, if it may begin; nil: none. The
// caller holds the mutex.
func (s *executions) fromHand(queue string) *execution {
	for len(s.hand[queue]) > 0 && !s.closed && s.mayBegin(queue) {
		x := s.hand[queue][0].x
		s.setHand(queue, s.hand[queue][1:])
		if !x.ended { // it was not fenced off
			return x
		}
	}
	return nil
}

// setHand keeps no queue without jobs. The caller holds the mutex.
func (s *executions) setHand(queue string, left []inHand) {
	if len(left) == 0 {
		delete(s.hand, queue)
		return
	}
	s.hand[queue] = left
}

// passOn gives the worker of an execution that has ended to the next job in hand,
// or frees it. The caller holds the mutex.
func (s *executions) passOn(queue string) (next *execution) {
	if s.busy[queue] <= s.allWorkers(queue) { // otherwise a reload left the queue fewer
		next = s.fromHand(queue)
	}
	if next == nil {
		s.free(queue)
	}
	return next
}

// beginFromHand lets an execution begin that was taken out of the hand. When it
// cannot, next is the one that has its worker now, if any.
func (s *executions) beginFromHand(x *execution, t task, now time.Time, stuckAfter time.Duration) (begun bool, w *wait, next *execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case x.ended:
	case s.closed:
		x.ended = true
		s.ended = append(s.ended, givenBack(x))
	default:
		if w = s.postpone(x, now.Add(stuckAfter)); w == nil {
			x.job.StartedAt = now.UTC()
			s.begin(x, t)
			s.news.began = append(s.news.began, x.job.Token)
			return true, nil, nil
		}
	}
	return false, w, s.passOn(x.job.Queue)
}

// startNext starts the job to which a worker was passed on, or the next one that
// can begin; nil: none can. Here its ttr begins.
func (e *Engine) startNext(held *execution) *execution {
	for held != nil {
		now := time.Now()
		t := e.newTask(held.job, now)
		begun, w, next := e.active.beginFromHand(held, t, now, e.o.StuckAfter)
		if begun {
			return held
		}
		t.endContext(nil)
		if w != nil {
			e.logWait(w)
		}
		held = next
	}
	return nil
}

// fillWorkers gives free workers to what is in hand: they became free while it was
// claimed.
func (d *dispatcher) fillWorkers() {
	for x := d.active.forFreeWorker(d.o.MaxRunning); x != nil; x = d.active.forFreeWorker(d.o.MaxRunning) {
		if x = d.startNext(x); x != nil {
			d.handlers.hand(x)
			d.notify() // that it has begun is to be written down
		}
	}
}

// forFreeWorker takes a free worker for a job in hand; nil: there is no such pair.
func (s *executions) forFreeWorker(most int) *execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hand) == 0 || s.inUseOrPromised() >= most {
		return nil
	}
	for queue := range s.hand {
		if s.busy[queue]+s.promised[queue] >= s.allWorkers(queue) {
			continue
		}
		if x := s.fromHand(queue); x != nil {
			s.busy[queue]++
			return x
		}
	}
	return nil
}

// giveBack takes out of the hand what may not begin now, or did not in time, and
// hands it on to be written. It says when to look again.
func (s *executions) giveBack(now time.Time, all bool) (again time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for queue, held := range s.hand {
		every := all || !s.mayBegin(queue)
		kept := held[:0:0]
		for _, h := range held {
			late := h.taken.Add(handFor)
			switch {
			case h.x.ended:
			case every || !late.After(now):
				h.x.ended = true
				s.ended = append(s.ended, givenBack(h.x))
			default:
				kept = append(kept, h)
				again = earlier(again, late)
			}
		}
		s.setHand(queue, kept)
	}
	return again
}

// givenBack is the outcome of a job in hand that does not begin.
func givenBack(x *execution) outcome {
	return outcome{job: x.job, settlement: x.job.GiveBack()}
}

// overtakes reports whether a job would start before one that is in hand. The
// caller holds the mutex.
func (s *executions) overtakes(c job.Change) bool {
	held := s.hand[c.Queue]
	return len(held) > 0 && held[len(held)-1].x.job.Priority < c.Priority
}

// stillRunning says which of these executions still run.
func (s *executions) stillRunning(tokens []job.Token) []job.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(tokens, func(token job.Token) bool {
		x := s.leased[token]
		return x == nil || x.ended
	})
}

// pace is how many jobs of a queue its workers end while a commit is written, as
// far as the last ones showed.
type pace struct {
	took  time.Duration // of an execution
	ended bool          // one has, since the last claim
}

// measured takes in an execution.
func (p *pace) measured(took time.Duration) { p.took, p.ended = smooth(p.took, took), true }

// smooth takes a new figure in; the newest ones count most.
func smooth(before, now time.Duration) time.Duration {
	if before == 0 {
		return now
	}
	return before + (now-before)/8
}

// during is how many jobs so many workers end in a time, as far as is useful.
func (p *pace) during(commit time.Duration, workers int) int {
	each := float64(commit) / float64(max(p.took, 1))
	return int(float64(workers) * min(each, aheadOfWorkers))
}
