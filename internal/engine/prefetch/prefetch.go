// Package prefetch has the jobs that were claimed before a worker was free.
//
// A worker that ends a job while a commit is written would be idle until the next one, so
// the engine claims more jobs than can start at once: as many as its workers will end
// during a commit. These are leased, and started by the workers themselves as they become
// free.
//
// A prefetched job has not begun, and is charged no attempt when the process dies. That one
// has begun is written down with the next claim, which the end of the job before it brings
// about. A job that begins and takes its process with it before that is prefetched once more
// without being charged, and no further time.
//
// No other job waits for prefetched ones: a job of a higher priority that arrives is claimed
// on top of them and starts first, and a job that has not begun within [For] is given
// back, as it is when its queue or the engine is paused.
package prefetch

import (
	"slices"
	"sync"
	"time"

	"redrive/internal/engine/execution"
	"redrive/internal/engine/when"
	"redrive/internal/job"
)

const (
	// PerWorker is how many jobs are prefetched for each worker at most.
	PerWorker = 4
	// For is how long a job stays prefetched at most.
	For = time.Second
)

// Jobs are the prefetched jobs of all queues.
type Jobs struct {
	mu    sync.Mutex
	jobs  prefetched
	begun []job.Token // executions that were prefetched and have begun, which is not written down
}

// New returns a prefetch of no jobs.
func New() *Jobs { return &Jobs{jobs: prefetched{}} }

// prefetched are jobs by queue, in the order in which they start. No queue is without jobs.
type prefetched map[string][]waitingJob

// waitingJob is one that waits for a worker.
type waitingJob struct {
	x       *execution.Execution // has the lease, and no task
	claimed time.Time
}

// late is when the job should have begun.
func (j waitingJob) late() time.Time { return j.claimed.Add(For) }

// set replaces the jobs of a queue.
func (p prefetched) set(queue string, jobs []waitingJob) {
	if len(jobs) == 0 {
		delete(p, queue)
		return
	}

	p[queue] = jobs
}

// Add takes in a claimed job, behind those of the same priority.
func (p *Jobs) Add(x *execution.Execution, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()

	jobs := p.jobs[x.Job.Queue]
	at, _ := slices.BinarySearchFunc(jobs, x.Job.Priority, func(j waitingJob, priority int) int {
		if j.x.Job.Priority >= priority {
			return -1
		}
		return 1
	})
	p.jobs[x.Job.Queue] = slices.Insert(jobs, at, waitingJob{x, now})
}

// Next takes out the job that starts next; nil: there is none.
func (p *Jobs) Next(queue string) *execution.Execution {
	p.mu.Lock()
	defer p.mu.Unlock()

	jobs := p.jobs[queue]
	if len(jobs) == 0 {
		return nil
	}

	p.jobs.set(queue, jobs[1:])

	return jobs[0].x
}

// Drop takes out a job that was ended from outside, if it is there.
func (p *Jobs) Drop(x *execution.Execution) {
	p.mu.Lock()
	defer p.mu.Unlock()

	jobs := p.jobs[x.Job.Queue]
	at := slices.IndexFunc(jobs, func(j waitingJob) bool { return j.x == x })
	if at >= 0 {
		p.jobs.set(x.Job.Queue, slices.Delete(jobs, at, at+1))
	}
}

// TakeLate takes out the jobs of a queue that have not begun in time.
func (p *Jobs) TakeLate(queue string, now time.Time) (late []*execution.Execution) {
	p.mu.Lock()
	defer p.mu.Unlock()

	var left []waitingJob
	for _, j := range p.jobs[queue] {
		if when.Reached(j.late(), now) {
			late = append(late, j.x)
		} else {
			left = append(left, j)
		}
	}

	p.jobs.set(queue, left)

	return late
}

// LateAt is when the first job is late; zero: never.
func (p *Jobs) LateAt() (first time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, jobs := range p.jobs {
		for _, j := range jobs {
			first = when.Earlier(first, j.late())
		}
	}

	return first
}

// TakeAll takes out all jobs of a queue.
func (p *Jobs) TakeAll(queue string) (all []*execution.Execution) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, j := range p.jobs[queue] {
		all = append(all, j.x)
	}

	delete(p.jobs, queue)

	return all
}

// Queues lists the queues of which jobs are prefetched.
func (p *Jobs) Queues() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for queue := range p.jobs {
		names = append(names, queue)
	}

	return names
}

// Count counts the prefetched jobs of a queue.
func (p *Jobs) Count(queue string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.jobs[queue])
}

// Total counts the prefetched jobs of all queues.
func (p *Jobs) Total() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, jobs := range p.jobs {
		n += len(jobs)
	}

	return n
}

// IsOvertakenBy reports whether a job would start before one that is prefetched.
func (p *Jobs) IsOvertakenBy(c job.Change) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	jobs := p.jobs[c.Queue]

	return len(jobs) > 0 && jobs[len(jobs)-1].x.Job.Priority < c.Priority
}

// NoteBegun keeps in mind that a prefetched job has begun.
func (p *Jobs) NoteBegun(token job.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.begun = append(p.begun, token)
}

// TakeBegun returns the executions that have begun since the last call.
func (p *Jobs) TakeBegun() []job.Token {
	p.mu.Lock()
	defer p.mu.Unlock()

	begun := p.begun
	p.begun = nil

	return begun
}
