package engine

import (
	"slices"

	"redrive/internal/job"
)

// Quiet ends the claiming of jobs until Wake: what runs goes on and is settled.
// It survives no restart.
func (e *Engine) Quiet() { e.hush(true) }

// Wake ends a quiet time. Jobs that became available meanwhile are claimed.
func (e *Engine) Wake() { e.hush(false) }

func (e *Engine) hush(on bool) {
	e.mu.Lock()
	e.quiet = on
	e.box.look = e.box.look || !on
	e.mu.Unlock()
	e.nudge()
}

// Stuck lists the handlers that go on although their executions have ended, the
// oldest first.
func (e *Engine) Stuck() []job.Stuck {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []job.Stuck
	for _, x := range e.stuck {
		all = append(all, job.Stuck{Job: x.job, Since: x.gone})
	}
	slices.SortFunc(all, func(a, b job.Stuck) int { return a.Since.Compare(b.Since) })
	return all
}
