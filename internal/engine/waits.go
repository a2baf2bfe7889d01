package engine

import (
	"slices"
	"time"

	"redrive/internal/job"
)

// waits are the handlers that were given up and have not returned, and the jobs whose next
// execution waits for one of them. They have no lock: [executions] keeps them.
type waits struct {
	stuck   map[string]*execution // given up; the newest of each job, by its id
	waiting map[string]*wait      // by the id of the job
}

// wait is a claimed job that has not begun, because the handler of an earlier
// execution of it has not returned.
type wait struct {
	x      *execution // has the lease, and no task
	before *execution // whose handler still runs
	until  time.Time  // not longer
}

func newWaits() waits {
	return waits{stuck: map[string]*execution{}, waiting: map[string]*wait{}}
}

// abandoned takes in an execution that was ended: its handler is stuck now, or it
// waits no longer for another.
func (w *waits) abandoned(x *execution) {
	if x.handler != nil {
		x.gone = time.Now()
		w.stuck[x.job.ID] = x
		return
	}
	if w.has(x) {
		delete(w.waiting, x.job.ID)
	}
}

// returned says that a handler has returned, which may have been stuck.
func (w *waits) returned(x *execution) {
	if w.stuck[x.job.ID] == x {
		delete(w.stuck, x.job.ID)
	}
}

// postpone lets an execution wait when an earlier handler of its job still runs; nil: it
// need not. It takes no worker meanwhile: the handler that it waits for has one.
func (w *waits) postpone(x *execution, until time.Time) *wait {
	before := w.stuck[x.job.ID]
	if before == nil || before.waitedFor {
		return nil
	}

	one := &wait{x: x, before: before, until: until}
	w.waiting[x.job.ID] = one
	return one
}

// has reports whether an execution waits.
func (w *waits) has(x *execution) bool {
	one := w.waiting[x.job.ID]
	return one != nil && one.x == x
}

// due lists the waits that are over.
func (w *waits) due(now time.Time) (all []*wait) {
	for _, one := range w.waiting {
		if w.over(one, now) {
			all = append(all, one)
		}
	}
	return all
}

// over reports whether the handler for which a job waits has returned, or was
// waited for long enough.
func (w *waits) over(one *wait, now time.Time) bool {
	return w.stuck[one.x.job.ID] != one.before || reached(one.until, now)
}

// end ends a wait, because its execution begins. late says that the earlier handler still
// runs: no other execution waits for that one.
func (w *waits) end(one *wait) (late bool) {
	id := one.x.job.ID
	delete(w.waiting, id)
	late = w.stuck[id] == one.before
	if late {
		one.before.waitedFor = true
	}
	return late
}

// nextLimit is the first moment at which a handler has been waited for long enough. Waits
// that have come to it wait for a worker.
func (w *waits) nextLimit(now time.Time) (limit time.Time) {
	for _, one := range w.waiting {
		if one.until.After(now) {
			limit = earlier(limit, one.until)
		}
	}
	return limit
}

// of says since when the handler for which a job waits should have returned, and until when
// the job waits for it; zero when it waits for a worker.
func (w *waits) of(id string, now time.Time) (since, until time.Time, ok bool) {
	one := w.waiting[id]
	if one == nil {
		return time.Time{}, time.Time{}, false
	}
	if w.over(one, now) {
		return time.Time{}, time.Time{}, true
	}
	return one.before.gone, one.until, true
}

// list lists the handlers that are stuck, the oldest first.
func (w *waits) list() (all []job.Stuck) {
	for _, x := range w.stuck {
		all = append(all, job.Stuck{Job: *x.job, Since: x.gone})
	}
	slices.SortFunc(all, func(a, b job.Stuck) int { return a.Since.Compare(b.Since) })
	return all
}
