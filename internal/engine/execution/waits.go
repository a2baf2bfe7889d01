package execution

import (
	"slices"
	"time"

	"redrive/internal/engine/when"
	"redrive/internal/job"
)

// waits are the handlers that were given up and have not returned, and the jobs whose next
// execution waits for one of them. They have no lock: [Set] keeps them.
type waits struct {
	stuck   map[string]*Execution // given up; the newest of each job, by its id
	waiting map[string]*Wait      // by the id of the job
}

// Wait is a claimed job that has not begun, because the handler of an earlier
// execution of it has not returned.
type Wait struct {
	Execution *Execution // has the lease, and no task
	Until     time.Time  // not longer

	before *Execution // whose handler still runs
}

// GivenUp is when the earlier execution was given up.
func (w *Wait) GivenUp() time.Time { return w.before.gone }

func newWaits() waits {
	return waits{stuck: map[string]*Execution{}, waiting: map[string]*Wait{}}
}

// abandoned takes in an execution that was ended: its handler is stuck now, or it
// waits no longer for another.
func (s *waits) abandoned(x *Execution) {
	if x.HasHandler() {
		x.gone = time.Now()
		s.stuck[x.Job.ID] = x
		return
	}

	if s.has(x) {
		delete(s.waiting, x.Job.ID)
	}
}

// returned says that a handler has returned, which may have been stuck.
func (s *waits) returned(x *Execution) {
	if s.stuck[x.Job.ID] == x {
		delete(s.stuck, x.Job.ID)
	}
}

// postpone lets an execution wait when an earlier handler of its job still runs; nil: it
// need not. It takes no worker meanwhile: the handler that it waits for has one.
func (s *waits) postpone(x *Execution, until time.Time) *Wait {
	before := s.stuck[x.Job.ID]
	if before == nil || before.waitedFor {
		return nil
	}

	w := &Wait{Execution: x, Until: until, before: before}
	s.waiting[x.Job.ID] = w

	return w
}

// has reports whether an execution waits.
func (s *waits) has(x *Execution) bool {
	w := s.waiting[x.Job.ID]
	return w != nil && w.Execution == x
}

// due lists the waits that are over.
func (s *waits) due(now time.Time) (all []*Wait) {
	for _, w := range s.waiting {
		if s.over(w, now) {
			all = append(all, w)
		}
	}

	return all
}

// over reports whether the handler for which a job waits has returned, or was
// waited for long enough.
func (s *waits) over(w *Wait, now time.Time) bool {
	return s.stuck[w.Execution.Job.ID] != w.before || when.Reached(w.Until, now)
}

// end ends a wait, because its execution begins. late says that the earlier handler still
// runs: no other execution waits for it.
func (s *waits) end(w *Wait) (late bool) {
	id := w.Execution.Job.ID
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
		if w.Until.After(now) {
			limit = when.Earlier(limit, w.Until)
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

	return w.before.gone, w.Until, true
}

// list lists the handlers that are stuck, the oldest first.
func (s *waits) list() (all []job.Stuck) {
	for _, x := range s.stuck {
		all = append(all, job.Stuck{Job: *x.Job, Since: x.gone})
	}

	slices.SortFunc(all, func(a, b job.Stuck) int { return a.Since.Compare(b.Since) })

	return all
}
