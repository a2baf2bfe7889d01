package engine

import (
	"math"
	"time"

	"redrive/internal/engine/execution"
	"redrive/internal/job"
)

// startClaimed starts claimed jobs: as many of each queue as workers were reserved by the claim. It
// adds the others to the prefetched ones. A job that ends without a handler takes a worker as well,
// which bounds how many of them are under way.
func (e *Engine) startClaimed(c job.Claim, claimed []job.Job) {
	now := time.Now()
	started := make(map[string]int, len(c.Free))
	all := make([]execution.Execution, len(claimed))

	for i := range claimed {
		x := &all[i]
		x.Job = &claimed[i]
		queue := x.Job.Queue

		// Prefetch the job if the queue has used up its reserved workers.
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

// begin begins an execution that has a worker, from when on its ttr counts. It returns false if the
// execution does not begin: because it was ended while it was prefetched, because it has to wait
// for the handler of an earlier one, or because the engine stops.
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

// hasBegun sets the alarm for the deadline of an execution that has begun. If the execution was
// prefetched, it also has the store told that it has begun.
func (e *Engine) hasBegun(x *execution.Execution) {
	e.alarm.Set(x.Deadline())

	if x.Prefetched {
		e.prefetch.NoteBegun(x.Job.Token)
	}
}

// logWait logs that a job waits for the handler of an earlier execution. A nil wait is ignored.
func (e *Engine) logWait(w *execution.Wait) {
	if w != nil {
		e.o.Log.Info("A job waits, because the handler of an earlier execution has not returned.",
			"job", w.Execution.Job.ID, "type", w.Execution.Job.Type, "queue", w.Execution.Job.Queue, "until", w.Until)
	}
}

// nextFor begins the next prefetched job of a queue, for a worker that has become free, and returns
// its execution. If there is none that may begin, it frees the worker and returns nil.
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

// fillWorkers starts prefetched jobs for the workers that are free. These became free while the
// jobs were being claimed.
func (e *Engine) fillWorkers() {
	for _, queue := range e.prefetch.Queues() {
		for e.workers.Take(queue, e.o.MaxRunning) {
			x := e.nextFor(queue)
			if x == nil {
				break
			}

			e.pool.Execute(x)
			e.notify() // the store has to be told that it has begun
		}
	}
}

// startWaiting starts the jobs whose wait for an earlier handler is over, as far as workers are
// free. Their ttr counts from now on.
func (e *Engine) startWaiting(now time.Time) {
	for _, w := range e.executions.DueWaits(now) {
		x := w.Execution
		// MaxRunning does not apply: the job takes the place of the earlier handler.
		if !e.workers.Take(x.Job.Queue, math.MaxInt) {
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
		e.notify() // the store may have to be told that it has begun
	}
}
