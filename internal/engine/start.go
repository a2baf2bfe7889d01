package engine

import (
	"math"
	"time"

	"redrive/internal/engine/execution"
	"redrive/internal/job"
)

// startClaimed starts claimed jobs, as many of each queue as workers were reserved, and keeps the
// others prefetched. One that need not run, or cannot, takes the same way: its worker is
// what bounds how much is under way.
func (e *Engine) startClaimed(c job.Claim, claimed []job.Job) {
	now := time.Now()
	started := make(map[string]int, len(c.Free))
	all := make([]execution.Execution, len(claimed))

	for i := range claimed {
		x := &all[i]
		x.Job = &claimed[i]
		queue := x.Job.Queue

		// No worker was reserved for this one.
		started[queue]++
		if started[queue] > c.Free[queue] {
			x.Prefetched = true
			e.executions.Keep(x)
			e.prefetch.Add(x, now)
			continue
		}

		e.workers.TakeReserved(queue)

		if e.begin(x, now) {
			e.pool.Execute(x)
		} else {
			e.workers.Free(queue)
		}
	}
}

// begin lets an execution begin that has a worker, and reports whether it did: not when it
// was ended while it was prefetched, has to wait for an earlier one, or the engine stops.
// Here the ttr of the job begins.
func (e *Engine) begin(x *execution.Execution, now time.Time) bool {
	t := e.newTask(x.Job, now)
	w, begun := e.executions.Admit(x, t, now)
	if !begun {
		t.EndContext(nil)
		e.logWait(w)
		e.notify()
		return false
	}

	e.hasBegun(x)

	return true
}

// hasBegun has the context of an execution ended in time, and has it written down that a
// prefetched one has begun.
func (e *Engine) hasBegun(x *execution.Execution) {
	e.alarm.Set(x.Deadline())

	if x.Prefetched {
		e.prefetch.NoteBegun(x.Job.Token)
	}
}

// logWait tells of a wait that begins, if one does.
func (e *Engine) logWait(w *execution.Wait) {
	if w != nil {
		e.o.Log.Info("A job waits, because the handler of an earlier execution has not returned.",
			"job", w.Execution.Job.ID, "type", w.Execution.Job.Type, "queue", w.Execution.Job.Queue, "until", w.Until)
	}
}

// nextFor gives a worker that has become free to the next prefetched job of its queue, and
// lets that begin; nil: there is none, and the worker is free.
func (e *Engine) nextFor(queue string) *execution.Execution {
	for e.prefetch.Count(queue) > 0 && !e.workers.TooMany(queue) && e.mayBegin(queue) {
		x := e.prefetch.Next(queue)
		if x != nil && e.begin(x, time.Now()) {
			return x
		}
	}

	e.workers.Free(queue)

	return nil
}

// fillWorkers gives free workers to prefetched jobs: they became free while these were
// claimed.
func (e *Engine) fillWorkers() {
	for _, queue := range e.prefetch.Queues() {
		for e.workers.Take(queue, e.o.MaxRunning) {
			x := e.nextFor(queue)
			if x == nil {
				break
			}

			e.pool.Execute(x)
			e.notify() // that it has begun is to be written down
		}
	}
}

// startWaiting starts the jobs that need wait no longer for an earlier handler, as far as
// workers are free. Here their ttr begins.
func (e *Engine) startWaiting(now time.Time) {
	for _, w := range e.executions.DueWaits(now) {
		x := w.Execution
		if !e.workers.Take(x.Job.Queue, math.MaxInt) { // where only so many may run, the earlier handler has its place
			continue
		}

		t := e.newTask(x.Job, now)
		begun, late := e.executions.AdmitWaiting(w, t, now)
		if !begun {
			t.EndContext(nil)
			e.workers.Free(x.Job.Queue)
			continue
		}

		e.hasBegun(x)

		if late {
			e.o.Log.Warn("A job runs again although the handler of an earlier execution has not returned: the job waited as long as it should.",
				"job", x.Job.ID, "type", x.Job.Type, "queue", x.Job.Queue, "given_up", w.GivenUp())
		}

		e.pool.Execute(x)
		e.notify() // that it has begun may have to be written down
	}
}
