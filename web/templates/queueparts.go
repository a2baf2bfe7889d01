package templates

import (
	"slices"

	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/web/templates/format"
)

// QueueConfig is what the configuration says about a queue.
type QueueConfig struct {
	Workers     int
	Running     int // executions at this moment
	Policy      retry.Policy
	DeadLetters bool
	ForwardedTo string // the host to which dead letters are forwarded, or empty
}

// addHandler says what to do about jobs that have no handler, without a full stop.
const addHandler = "Add a handler to the configuration file and reload it; the waiting jobs then run"

// heldTitle says how many jobs wait for a handler.
func heldTitle(n int64) string {
	return format.Counted(n, "job has no handler:", "jobs have no handler:")
}

// moreHeld is how many of n jobs wait for a handler beside those that are listed.
func moreHeld(n int64, listed []queues.Held) int64 {
	for _, h := range listed {
		n -= h.Count
	}
	return max(0, n)
}

// heldEnd is what follows a type in a list of those that have no handler.
func heldEnd(last bool) string {
	if last {
		return ". "
	}
	return ", "
}

// LiveStates lists the states of jobs that have not ended, in the order of bars.
func LiveStates() []job.State {
	return []job.State{job.Scheduled, job.Returning, job.Returned, job.Available, job.Active, job.Retryable}
}

// columnStates are the live states that have a column of their own. Jobs on the way to their
// source are counted with those that it has.
func columnStates() []job.State {
	return slices.DeleteFunc(LiveStates(), func(s job.State) bool { return s == job.Returning })
}

// heading names a state over a column of numbers.
func heading(s job.State) string {
	if s == job.Scheduled {
		return "Sched."
	}
	return format.UpperFirst(string(s))
}

// liveParts divides a bar among the live states of a queue.
func liveParts(d stats.Depths) (parts []MeterPart, total int64) {
	for _, s := range LiveStates() {
		if n := d[job.Status(s)]; n > 0 {
			parts = append(parts, MeterPart{Class: "is-" + string(s), N: n})
			total += n
		}
	}

	return parts, total
}

// Executions is how many attempts ended.
func Executions(t stats.Totals) int64 { return t.Succeeded + t.Failed }
