package templates

import (
	"cmp"
	"slices"

	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retry"
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

// LiveStates lists the states of jobs that have not ended, in the order of bars.
func LiveStates() []job.State {
	return []job.State{job.Scheduled, job.Pending, job.Available, job.Active, job.Retryable}
}

// heading names a state over a column of numbers.
func heading(s job.State) string {
	if s == job.Scheduled {
		return "Sched."
	}
	return format.UpperFirst(string(s))
}

// liveParts divides a bar among the live states of a queue.
func liveParts(d job.Depths) (parts []MeterPart, total int64) {
	for _, s := range LiveStates() {
		if n := d[job.Status(s)]; n > 0 {
			parts = append(parts, MeterPart{Class: "is-" + string(s), N: n})
			total += n
		}
	}
	return parts, total
}

// TopQueues are the n queues that come last in an order, by name.
func TopQueues(all []queues.Info, n int, order func(a, b queues.Info) int) []queues.Info {
	if len(all) <= n {
		return all
	}
	top := slices.Clone(all)
	slices.SortStableFunc(top, func(a, b queues.Info) int { return order(b, a) })
	top = top[:n]
	slices.SortFunc(top, func(a, b queues.Info) int { return cmp.Compare(a.Name, b.Name) })
	return top
}

// Executions is how many attempts ended.
func Executions(t job.Totals) int64 { return t.Succeeded + t.Failed }
