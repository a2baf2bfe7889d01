package engine

import (
	"time"
)

// wait is a claimed job that has not begun, because the handler of an earlier
// execution of it has not returned.
type wait struct {
	x      *execution // has the lease; without a handler
	before *execution // whose handler still runs
	until  time.Time  // not longer
}

// waits reports whether an execution only waits for an earlier one. The caller
// holds the mutex.
func (s *executions) waits(x *execution) bool {
	w := s.waiting[x.job.ID]
	return w != nil && w.x == x
}

// admit takes a worker for the execution, unless it has to wait for an earlier
// one; ok is false when no more begin.
func (s *executions) admit(x *execution, until time.Time) (w *wait, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	if w := s.postpone(x, until); w != nil {
		return w, true
	}
	s.begin(x)
	return nil, true
}

// postpone lets an execution wait when an earlier handler of its job still
// runs; nil: it need not. It takes no worker meanwhile: the handler that it
// waits for has one. The caller holds the mutex.
func (s *executions) postpone(x *execution, until time.Time) *wait {
	before := s.stuck[x.job.ID]
	if before == nil || before.waitedFor {
		return nil
	}
	w := &wait{x: withoutHandler(x.job), before: before, until: until}
	s.waiting[x.job.ID] = w
	s.leased[x.job.Token] = w.x
	return w
}

// startWaiting starts the jobs that need wait no longer, as far as workers are
// free: here their ttr begins.
func (d *dispatcher) startWaiting(now time.Time) {
	workers := func(queue string) int { return d.queue(queue).workers }
	for w := d.active.nextWait(now, workers); w != nil; w = d.active.nextWait(now, workers) {
		j := w.x.job
		j.StartedAt = now.UTC()
		x := d.newExecution(j, now)
		began, late := d.active.beginWaiting(w, x)
		if !began {
			x.stopClock()
			continue
		}
		if late {
			d.o.Log.Warn("A job runs again although the handler of an earlier execution has not returned: it was waited for long enough.",
				"job", j.ID, "type", j.Type, "queue", j.Queue, "given_up", w.before.gone)
		}
		d.limit = earlier(d.limit, x.limit)
		d.handlers.hand(x)
	}
}

// nextWait is a wait that is over, in a queue with a free worker. It calls
// workers with the mutex held.
func (s *executions) nextWait(now time.Time, workers func(queue string) int) *wait {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	for _, w := range s.waiting {
		if queue := w.x.job.Queue; s.over(w, now) && s.busy[queue] < workers(queue) {
			return w
		}
	}
	return nil
}

// over reports whether the handler for which a job waits has returned, or was
// waited for long enough. The caller holds the mutex.
func (s *executions) over(w *wait, now time.Time) bool {
	return s.stuck[w.x.job.ID] != w.before || reached(w.until, now)
}

// beginWaiting puts an execution in the place of one that waited; began is
// false when the job was taken back meanwhile. late says that the earlier
// handler still runs.
func (s *executions) beginWaiting(w *wait, x *execution) (began, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := x.job.ID
	if s.waiting[id] != w {
		return false, false
	}
	delete(s.waiting, id)
	w.x.ended = true
	if late = s.stuck[id] == w.before; late {
		w.before.waitedFor = true
	}
	s.begin(x)
	return true, late
}

// waitOf is what [Engine.Waiting] tells.
func (s *executions) waitOf(id string) (since, until time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting[id]
	if w == nil || s.over(w, time.Now()) {
		return time.Time{}, time.Time{}, w != nil
	}
	return w.before.gone, w.until, true
}
