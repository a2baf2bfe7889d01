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
func (s *waits) abandoned(x *execution) {
	if x.handler != nil {
		x.gone = time.Now()
		s.stuck[x.job.ID] = x
		return
	}

	if s.has(x) {
		delete(s.waiting, x.job.ID)
	}
}

// returned says that a handler has returned, which may have been stuck.
func (s *waits) returned(x *execution) {
	if s.stuck[x.job.ID] == x {
		delete(s.stuck, x.job.ID)
	}
}

// postpone lets an execution wait when an earlier handler of its job still runs; nil: it
// need not. It takes no worker meanwhile: the handler that it waits for has one.
func (s *waits) postpone(x *execution, until time.Time) *wait {
	before := s.stuck[x.job.ID]
	if before == nil || before.waitedFor {
		return nil
	}

	w := &wait{x: x, before: before, until: until}
	s.waiting[x.job.ID] = w

	return w
}

// has reports whether an execution waits.
func (s *waits) has(x *execution) bool {
	w := s.waiting[x.job.ID]
	return w != nil && w.x == x
}

// due lists the waits that are over.
func (s *waits) due(now time.Time) (all []*wait) {
	for _, w := range s.waiting {
		if s.over(w, now) {
			all = append(all, w)
		}
	}

	return all
}

// over reports whether the handler for which a job waits has returned, or was
// waited for long enough.
func (s *waits) over(w *wait, now time.Time) bool {
	return s.stuck[w.x.job.ID] != w.before || reached(w.until, now)
}

// end ends a wait, because its execution begins. late says that the earlier handler still
// runs: no other execution waits for it.
func (s *waits) end(w *wait) (late bool) {
	id := w.x.job.ID
	delete(s.waiting, id)

	late = s.stuck[id] == w.before
	if late {
		w.before.waitedFor = true
	}

	return late
}

// nextLimit is the first moment at which a handler has been waited for long enough. Waits
// that have come to it wait for a worker.
func (s *waits) nextLimit(now time.Time) (limit time.Time) {
	for _, w := range s.waiting {
		if w.until.After(now) {
			limit = earlier(limit, w.until)
		}
	}

	return limit
}

// of says since when the handler for which a job waits should have returned, and until when
// the job waits for it; zero when it waits for a worker.
func (s *waits) of(id string, now time.Time) (since, until time.Time, ok bool) {
	w := s.waiting[id]
	if w == nil {
		return time.Time{}, time.Time{}, false
	}

	if s.over(w, now) {
		return time.Time{}, time.Time{}, true
	}

	return w.before.gone, w.until, true
}

// list lists the handlers that are stuck, the oldest first.
func (s *waits) list() (all []job.Stuck) {
	for _, x := range s.stuck {
		all = append(all, job.Stuck{Job: *x.job, Since: x.gone})
	}

	slices.SortFunc(all, func(a, b job.Stuck) int { return a.Since.Compare(b.Since) })

	return all
}
