package workers

import (
	"sync"

	"redrive/internal/engine/execution"
)

// Pool has the goroutines in which handlers run.
type Pool struct {
	run    func(*execution.Execution) (next *execution.Execution)
	tasks  chan *execution.Execution // without a buffer, so that only an idle goroutine receives
	closed <-chan struct{}           // closed when no more executions come
	all    sync.WaitGroup
}

// NewPool returns a pool without goroutines. run runs an execution, and returns the next one for the
// same worker, or nil. closed is closed when no more executions come.
func NewPool(run func(*execution.Execution) (next *execution.Execution), closed <-chan struct{}) *Pool {
	return &Pool{run: run, tasks: make(chan *execution.Execution), closed: closed}
}

// Wait waits for all goroutines to end. They do so after closed is closed.
func (p *Pool) Wait() { p.all.Wait() }

// Execute runs an execution in an idle goroutine, or in a new one if none is idle. It prefers idle
// ones, because a new goroutine spends more time on growing its stack than on a small job.
func (p *Pool) Execute(x *execution.Execution) {
	select {
	case p.tasks <- x:
	default:
		p.all.Go(func() { p.work(x) })
	}
}

// work is a goroutine of the pool: it runs executions until the pool is closed. A handler that calls
// runtime.Goexit ends the goroutine.
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
