package engine

import (
	"math"
	"sync"
	"time"

	"redrive/internal/job"
)

// startClaimed starts claimed jobs, as many of each queue as workers were reserved, and keeps the
// others prefetched. One that need not run, or cannot, takes the same way: its worker is
// what bounds how much is under way.
func (e *Engine) startClaimed(c job.Claim, claimed []job.Job) {
	now := time.Now()
	started := make(map[string]int, len(c.Free))
	all := make([]execution, len(claimed))

	for i := range claimed {
		x := &all[i]
		x.job = &claimed[i]
		queue := x.job.Queue

		started[queue]++
		if started[queue] > c.Free[queue] {
			x.prefetched = true
			e.executions.keep(x)
			e.prefetch.add(x, now)
			continue
		}

		e.workers.takeReserved(queue)

		if e.begin(x, now) {
			e.pool.execute(x)
		} else {
			e.workers.free(queue)
		}
	}
}

// begin lets an execution begin that has a worker, and reports whether it did: not when it
// was ended while it was prefetched, has to wait for an earlier one, or the engine stops.
// Here the ttr of the job begins.
func (e *Engine) begin(x *execution, now time.Time) bool {
	t := e.newTask(x.job, now)
	w, begun := e.executions.admit(x, t, now)
	if !begun {
		t.endContext(nil)
		e.logWait(w)
		e.notify()
		return false
	}

	e.alarm.set(t.ctx.deadline)

	if x.prefetched {
		e.prefetch.noteBegun(x.job.Token)
	}

	return true
}

// logWait tells of a wait that begins, if one does.
func (e *Engine) logWait(w *wait) {
	if w != nil {
		e.o.Log.Info("A job waits, because the handler of an earlier execution has not returned.",
			"job", w.x.job.ID, "type", w.x.job.Type, "queue", w.x.job.Queue, "until", w.until)
	}
}

// nextFor gives a worker that has become free to the next prefetched job of its queue, and
// lets that begin; nil: there is none, and the worker is free.
func (e *Engine) nextFor(queue string) *execution {
	for e.prefetch.count(queue) > 0 && !e.workers.tooMany(queue) && e.mayBegin(queue) {
		x := e.prefetch.next(queue)
		if x != nil && e.begin(x, time.Now()) {
			return x
		}
	}

	e.workers.free(queue)

	return nil
}

// fillWorkers gives free workers to prefetched jobs: they became free while these were
// claimed.
func (d *dispatcher) fillWorkers() {
	for _, queue := range d.prefetch.queues() {
		for d.workers.take(queue, d.o.MaxRunning) {
			x := d.nextFor(queue)
			if x == nil {
				break
			}

			d.pool.execute(x)
			d.notify() // that it has begun is to be written down
		}
	}
}

// startWaiting starts the jobs that need wait no longer for an earlier handler, as far as
// workers are free. Here their ttr begins.
func (d *dispatcher) startWaiting(now time.Time) {
	for _, w := range d.executions.dueWaits(now) {
		x := w.x
		if !d.workers.take(x.job.Queue, math.MaxInt) { // where only so many may run, the earlier handler has its place
			continue
		}

		t := d.newTask(x.job, now)
		begun, late := d.executions.admitWaiting(w, t, now)
		if !begun {
			t.endContext(nil)
			d.workers.free(x.job.Queue)
			continue
		}

		d.alarm.set(t.ctx.deadline)

		if late {
			d.o.Log.Warn("A job runs again although the handler of an earlier execution has not returned: the job waited as long as it should.",
				"job", x.job.ID, "type", x.job.Type, "queue", x.job.Queue, "given_up", w.before.gone)
		}

		d.pool.execute(x)
	}
}

// pool has the goroutines in which handlers run.
type pool struct {
	run    func(*execution) (next *execution)
	tasks  chan *execution // to goroutines that are idle
	closed <-chan struct{} // no more tasks come
	all    sync.WaitGroup
}

// execute gives an execution to a goroutine that is idle, or to a new one: a new
// one spends more time on growing its stack than on a small job.
func (p *pool) execute(x *execution) {
	select {
	case p.tasks <- x:
	default:
		p.all.Go(func() { p.work(x) })
	}
}

// work runs handlers until no more are needed. One that calls runtime.Goexit
// takes the goroutine with it.
func (p *pool) work(x *execution) {
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
