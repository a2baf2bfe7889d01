package engine

import (
	"context"
	"sync"

	"redrive/internal/job"
)

// Handler does the work of one job. Nil is success. Any error fails the
// attempt; a *job.Failure, wrapped or not, carries a type, a trace and an
// answer to the policy. ctx ends at the job's ttr, when a person cancels the
// job, when its lease is lost, and at the end of a graceful stop; its cause
// says which. A handler that returns later than that is not believed.
type Handler func(ctx context.Context, j job.Job) error

// pool has the goroutines in which handlers run.
type pool struct {
	run    func(*execution)
	tasks  chan *execution // to goroutines that are idle
	closed <-chan struct{} // no more tasks come
	all    sync.WaitGroup
}

// hand gives an execution to a goroutine that is idle, or to a new one: a new
// one spends more time on growing its stack than on a small job.
func (p *pool) hand(x *execution) {
	select {
	case p.tasks <- x:
	default:
		p.all.Add(1)
		go p.work(x)
	}
}

// work runs handlers until no more are needed. One that calls runtime.Goexit
// takes the goroutine with it.
func (p *pool) work(x *execution) {
	defer p.all.Done()
	for {
		p.run(x)
		select {
		case x = <-p.tasks:
		case <-p.closed:
			return
		}
	}
}
