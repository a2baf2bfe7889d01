package engine

import (
	"sync"
	"time"

	"redrive/internal/job"
)

// onCommit is the engine's side of dispatch on commit. In each transaction that makes jobs
// available, the store asks the engine to reserve workers (reserveOnCommit) and claims as many
// jobs; after it, the store answers with these jobs (startOnCommit). onCommit knows whether an
// answer is outstanding, so that a stop can wait for it.
type onCommit struct {
	end func() // makes the store ask no more; set by Start

	mu          sync.Mutex
	stopped     bool
	outstanding sync.WaitGroup // does not grow once stopped
}

// enter says that an answer will come; false when none is wanted any more.
func (o *onCommit) enter() bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	if !o.stopped {
		o.outstanding.Add(1)
	}

	return !o.stopped
}

// leave says that the answer has come.
func (o *onCommit) leave() { o.outstanding.Done() }

// stop lets no more jobs start on commit, and waits for the answer that is outstanding.
func (o *onCommit) stop() {
	o.end()

	o.mu.Lock()
	o.stopped = true
	o.mu.Unlock()

	o.outstanding.Wait()
}

// reserveOnCommit claims jobs that just became available in these queues, as far as workers
// are free that no claim of the dispatcher's has reserved.
func (e *Engine) reserveOnCommit(queues []string) job.Claim {
	c := e.newClaim(time.Now())
	if e.behind.Load() || !e.onCommit.enter() {
		return c
	}

	// The store asks for as many jobs as these, in the transaction that is under way.
	for _, queue := range queues {
		if !e.mayBegin(queue) {
			continue
		}

		free, _ := e.workers.Reserve(queue, e.o.MaxRunning-e.workers.Taken())
		if free > 0 {
			c.Free[queue] = free
		}
	}

	if len(c.Free) == 0 { // then the answer says nothing
		e.onCommit.leave()
	}

	return c
}

// startOnCommit starts what was claimed for a reservation. When the transaction failed that
// is nothing, and the workers are free again.
func (e *Engine) startOnCommit(c job.Claim, claimed []job.Job) {
	if len(c.Free) == 0 {
		return
	}

	defer e.onCommit.leave()

	// Before the commit tells of these jobs, see changes.
	e.changes.startedOnCommit(claimed)
	e.startClaimed(c, claimed)
	e.workers.Release(c)
	e.notify() // the jobs have limits, and others may have waited for the workers
}
