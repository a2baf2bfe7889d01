package engine

import (
	"sync"
	"time"

	"redrive/internal/job"
)

// onCommit is the state of dispatch on commit. In each transaction that makes jobs available, the
// store calls reserveOnCommit, which reserves workers, and claims as many jobs. After the commit,
// the store calls startOnCommit with these jobs. onCommit knows whether the second of these calls
// is still to come, so that a stop can wait for it.
type onCommit struct {
	end func() // makes the store stop calling; set by Start

	mu          sync.Mutex
	stopped     bool
	outstanding sync.WaitGroup // the calls of startOnCommit that are still to come; does not grow once stopped
}

// enter records that a call of startOnCommit will come. It returns false, and records nothing, after
// stop.
func (o *onCommit) enter() bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	if !o.stopped {
		o.outstanding.Add(1)
	}

	return !o.stopped
}

// leave records that the call of startOnCommit has come.
func (o *onCommit) leave() { o.outstanding.Done() }

// stop ends dispatch on commit, and waits for a call of startOnCommit that is still to come.
func (o *onCommit) stop() {
	o.end()

	o.mu.Lock()
	o.stopped = true
	o.mu.Unlock()

	o.outstanding.Wait()
}

// reserveOnCommit returns a claim of jobs in these queues, in which jobs have just become available,
// and reserves a worker for each. The claim is empty if no jobs may begin or no workers are free.
func (e *Engine) reserveOnCommit(queues []string) job.Claim {
	c := e.newClaim(time.Now())
	if e.behind.Load() || !e.onCommit.enter() {
		return c
	}

	for _, queue := range queues {
		if !e.mayBegin(queue) {
			continue
		}

		free, _ := e.workers.Reserve(queue, e.o.MaxRunning-e.workers.Taken())
		if free > 0 {
			c.Free[queue] = free
		}
	}

	if len(c.Free) == 0 { // startOnCommit ignores the answer to an empty claim
		e.onCommit.leave()
	}

	return c
}

// startOnCommit starts the jobs that were claimed for a reservation, and ends the reservation. If
// the transaction failed, there are no jobs.
func (e *Engine) startOnCommit(c job.Claim, claimed []job.Job) {
	if len(c.Free) == 0 {
		return
	}

	defer e.onCommit.leave()

	// Do this before Changed tells of these jobs (see changes).
	e.changes.startedOnCommit(claimed)
	e.startClaimed(c, claimed)
	e.workers.Release(c)
	e.notify() // it has to know the limits of the jobs, and others may have waited for the workers
}
