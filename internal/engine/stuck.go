package engine

import (
	"time"

	"redrive/internal/job"
)

// wait is a claimed job that has not begun, because the handler of an earlier
// execution of it has not returned.
type wait struct {
	x      *execution // holds the lease; without a handler
	before *execution // whose handler still runs
	until  time.Time  // not longer
}

// abandon decides that an execution has ended, whatever its handler will say.
// The caller holds the mutex.
func (e *Engine) abandon(x *execution, cause error) {
	x.ended, x.cause = true, cause
	id := x.job.ID
	if x.handler != nil {
		x.gone = time.Now()
		e.stuck[id] = x
	} else if e.waits(x) {
		delete(e.waiting, id)
	}
}

// waits reports whether an execution only waits for an earlier one. The caller
// holds the mutex.
func (e *Engine) waits(x *execution) bool {
	w := e.waiting[x.job.ID]
	return w != nil && w.x == x
}

// postpone lets an execution wait when an earlier handler of its job still
// runs; nil: it need not. It takes no worker meanwhile: the handler that it
// waits for has one. The caller holds the mutex.
func (e *Engine) postpone(x *execution, now time.Time) *wait {
	before := e.stuck[x.job.ID]
	if before == nil || before.waited {
		return nil
	}
	w := &wait{x: e.without(x.job), before: before, until: now.Add(e.o.StuckAfter)}
	e.waiting[x.job.ID] = w
	e.held[x.job.Token] = w.x
	return w
}

// resume starts the jobs that need wait no longer, as far as workers are free:
// here their ttr begins.
func (d *dispatcher) resume(now time.Time) {
	for w := d.nextWait(now); w != nil; w = d.nextWait(now) {
		j := w.x.job
		j.StartedAt = now.UTC()
		x := d.newExecution(j, now)
		began, late := d.relieve(w, x)
		if !began {
			x.drop()
			continue
		}
		if late {
			d.o.Log.Warn("A job runs again although the handler of an earlier execution has not returned: it was waited for long enough.",
				"job", j.ID, "type", j.Type, "queue", j.Queue, "given_up", w.before.gone)
		}
		d.limit = earlier(d.limit, x.limit)
		d.hand(x)
	}
}

// nextWait is a wait that is over, in a queue with a free worker.
func (d *dispatcher) nextWait(now time.Time) *wait {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase >= stopping {
		return nil
	}
	for _, w := range d.waiting {
		if d.waitedFor(w, now) && d.busy[w.x.job.Queue] < d.queue(w.x.job.Queue).workers {
			return w
		}
	}
	return nil
}

// waitedFor reports whether the handler for which a job waits has returned, or
// was waited for long enough. The caller holds the mutex.
func (e *Engine) waitedFor(w *wait, now time.Time) bool {
	return e.stuck[w.x.job.ID] != w.before || reached(w.until, now)
}

// relieve puts an execution in the place of one that waited; began is false
// when the job was taken back meanwhile. late says that the earlier handler
// still runs.
func (e *Engine) relieve(w *wait, x *execution) (began, late bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := x.job.ID
	if e.waiting[id] != w {
		return false, false
	}
	delete(e.waiting, id)
	w.x.ended = true
	if late = e.stuck[id] == w.before; late {
		w.before.waited = true
	}
	e.held[x.job.Token] = x
	e.busy[x.job.Queue]++
	return true, late
}

// Waiting reports whether a claimed job has not begun because of the handler of
// an earlier execution: since when that one should have returned, and until
// when the job waits for it. Both are zero when this wait is over, and the job
// waits for a worker.
func (e *Engine) Waiting(id string) (since, until time.Time, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.waiting[id]
	if w == nil || e.waitedFor(w, time.Now()) {
		return time.Time{}, time.Time{}, w != nil
	}
	return w.before.gone, w.until, true
}

// Began is when an execution began that is ours: later than its claim, when it
// had to wait.
func (e *Engine) Began(token job.Token) (at time.Time, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.held[token]
	if x == nil || e.waits(x) {
		return time.Time{}, false
	}
	return x.job.StartedAt, true
}
