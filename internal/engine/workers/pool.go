package workers

import (
	"sync"

	"redrive/internal/engine/execution"
)

// Pool has the goroutines in which handlers run.
type Pool struct {
	run    func(*execution.Execution) (next *execution.Execution)
	tasks  chan *execution.Execution // to goroutines that are idle
	closed <-chan struct{}           // no more tasks come
	all    sync.WaitGroup
}

// NewPool returns a pool without goroutines. run runs an execution, and returns the next one
// for the same worker, or nil; closed says that no more come.
func NewPool(run func(*execution.Execution) (next *execution.Execution), closed <-chan struct{}) *Pool {
	return &Pool{run: run, tasks: make(chan *execution.Execution), closed: closed}
}

// Wait waits for all goroutines. The pool is closed before.
func (p *Pool) Wait() { p.all.Wait() }

// Execute gives an execution to a goroutine that is idle, or to a new one: a new
// one spends more time on growing its stack than on a small job.
func (p *Pool) Execute(x *execution.Execution) {
	select {
	case p.tasks <- x:
	default:
		p.all.Go(func() { p.work(x) })
	}
}

// work runs handlers until no more are needed. One that calls runtime.Goexit
// takes the goroutine with it.
func (p *Pool) work(x *execution.Execution) {
	for {
		for x != nil {
			x = p.run(x)
		}

		select {
		case x = <-p.tasks:
		case <-p.closed:
			return
		}
	}
}
