// Package prefetch has the jobs that were claimed before a worker was free.
//
// A worker that ends a job while a commit is written would be idle until the next commit. So the
// engine claims more jobs than can start at once: as many as its workers will end during a commit.
// They are leased, and each worker that becomes free starts the next of them.
//
// A prefetched job has not begun, so it loses no attempt if the process dies. When it begins, the
// store is told so with the next claim, which soon follows. If the process dies before that, the
// store cannot know whether the job had begun. The job loses no attempt then, but only once: when it
// is prefetched again, it counts as begun from its claim on.
//
// Prefetched jobs do not delay others. A job of a higher priority that arrives is claimed in addition,
// and starts first. A prefetched job is given back if it has not begun within [For], or if its queue
// or the engine is paused.
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

// Jobs are the prefetched jobs of all queues. It is safe for concurrent use.
type Jobs struct {
	mu    sync.Mutex
	jobs  prefetched
	begun []job.Token // prefetched executions that have begun, until TakeBegun
}

// New returns a Jobs without jobs.
func New() *Jobs { return &Jobs{jobs: prefetched{}} }

// prefetched has the jobs of each queue, in the order in which they start. A queue without jobs has no
// entry.
type prefetched map[string][]waitingJob

// waitingJob is a prefetched job.
type waitingJob struct {
	x       *execution.Execution // its execution, which has a lease and no task
	claimed time.Time
}

// late returns the time by which the job should have begun.
func (j waitingJob) late() time.Time { return j.claimed.Add(For) }

// set replaces the jobs of a queue. It deletes the entry if there are none.
func (p prefetched) set(queue string, jobs []waitingJob) {
	if len(jobs) == 0 {
		delete(p, queue)
		return
	}

	p[queue] = jobs
}

// Add adds a claimed job, after those of the same priority and before those of a lower one.
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

// Next removes the job of a queue that starts next, and returns it; nil: there is none.
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

// Drop removes a job that was ended from outside, if it is prefetched.
func (p *Jobs) Drop(x *execution.Execution) {
	p.mu.Lock()
	defer p.mu.Unlock()

	jobs := p.jobs[x.Job.Queue]
	at := slices.IndexFunc(jobs, func(j waitingJob) bool { return j.x == x })
	if at >= 0 {
		p.jobs.set(x.Job.Queue, slices.Delete(jobs, at, at+1))
	}
}

// TakeLate removes the jobs of a queue that have not begun in time, and returns them.
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

// LateAt returns when the first job will be late; zero: there are no jobs.
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

// TakeAll removes all jobs of a queue, and returns them.
func (p *Jobs) TakeAll(queue string) (all []*execution.Execution) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, j := range p.jobs[queue] {
		all = append(all, j.x)
	}

	delete(p.jobs, queue)

	return all
}

// Queues returns the queues that have prefetched jobs, in any order.
func (p *Jobs) Queues() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for queue := range p.jobs {
		names = append(names, queue)
	}

	return names
}

// Count returns how many jobs of a queue are prefetched.
func (p *Jobs) Count(queue string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.jobs[queue])
}

// Total returns how many jobs of all queues are prefetched.
func (p *Jobs) Total() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, jobs := range p.jobs {
		n += len(jobs)
	}

	return n
}

// IsOvertakenBy reports whether a job that has become available should start before a prefetched one of
// its queue.
func (p *Jobs) IsOvertakenBy(c job.Change) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	jobs := p.jobs[c.Queue]

	return len(jobs) > 0 && jobs[len(jobs)-1].x.Job.Priority < c.Priority
}

// NoteBegun records that a prefetched job has begun, for TakeBegun.
func (p *Jobs) NoteBegun(token job.Token) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.begun = append(p.begun, token)
}

// TakeBegun returns the prefetched executions that have begun since the last call.
func (p *Jobs) TakeBegun() []job.Token {
	p.mu.Lock()
	defer p.mu.Unlock()

	begun := p.begun
	p.begun = nil

	return begun
}
