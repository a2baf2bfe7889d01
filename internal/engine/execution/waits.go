package execution

import (
	"slices"
	"time"

	"redrive/internal/engine/when"
	"redrive/internal/job"
)

// waits has the handlers that were given up and have not returned, and the jobs whose next executions
// wait for them. [Set] locks it.
type waits struct {
	stuck   map[string]*Execution // by the id of the job: its newest execution whose handler was given up
	waiting map[string]*Wait      // by the id of the job
}

// Wait is a claimed job that has not begun, because the handler of an earlier
// execution of it has not returned.
type Wait struct {
	Execution *Execution // the one that waits; it has a lease and no task
	Until     time.Time  // when the wait ends at the latest

	before *Execution // the earlier one
}

// GivenUp returns when the earlier execution was given up.
func (w *Wait) GivenUp() time.Time { return w.before.gone }

func newWaits() waits {
	return waits{stuck: map[string]*Execution{}, waiting: map[string]*Wait{}}
}

// abandoned records that an execution was ended before its handler returned: its handler is stuck now
// or, if it has not begun, it does not wait any longer.
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

// returned records that a handler has returned, so that it is not stuck any more.
func (s *waits) returned(x *Execution) {
	if s.stuck[x.Job.ID] == x {
		delete(s.stuck, x.Job.ID)
	}
}

// postpone makes an execution wait if the handler of an earlier execution of its job is stuck. It
// returns the wait, or nil if the execution need not wait. An execution that waits has no worker.
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

// due returns the waits that are over.
func (s *waits) due(now time.Time) (all []*Wait) {
	for _, w := range s.waiting {
		if s.over(w, now) {
			all = append(all, w)
		}
	}

	return all
}

// over reports whether a wait is over: the handler has returned, or the job has waited long enough.
func (s *waits) over(w *Wait, now time.Time) bool {
	return s.stuck[w.Execution.Job.ID] != w.before || when.Reached(w.Until, now)
}

// end ends a wait, because its execution begins. late reports whether the earlier handler is still
// running. If so, no other execution will wait for it.
func (s *waits) end(w *Wait) (late bool) {
	id := w.Execution.Job.ID
	delete(s.waiting, id)

	late = s.stuck[id] == w.before
	if late {
		w.before.waitedFor = true
	}

	return late
}

// nextLimit returns the first time at which a wait ends. It ignores waits that are over, whose jobs
// wait for a worker.
func (s *waits) nextLimit(now time.Time) (limit time.Time) {
	for _, w := range s.waiting {
		if w.Until.After(now) {
			limit = when.Earlier(limit, w.Until)
		}
	}

	return limit
}

// of reports whether the job with an id waits. since is when the handler for which it waits was given
// up, and until is when the wait ends; both are zero if the wait is over and the job waits for a worker.
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

// list returns the handlers that are stuck, the one that was given up first being the first.
func (s *waits) list() (all []job.Stuck) {
	for _, x := range s.stuck {
		all = append(all, job.Stuck{Job: *x.Job, Since: x.gone})
	}

	slices.SortFunc(all, func(a, b job.Stuck) int { return a.Since.Compare(b.Since) })

	return all
}
