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

// segment is a part of a bar, in percent of its width.
type segment struct {
	class    string
	x, width string
	seam     bool // a hairline before it
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

// segments divides a bar among the live states of a queue.
func segments(d job.Depths) []segment {
	var total int64
	for _, s := range LiveStates() {
		total += d[job.Status(s)]
	}
	var all []segment
	x := 0.0
	for _, s := range LiveStates() {
		n := d[job.Status(s)]
		if n == 0 {
			continue
		}
		width := 100 * float64(n) / float64(total)
		all = append(all, segment{"fill is-" + string(s), format.Percent(x), format.Percent(width), x > 0})
		x += width
	}
	return all
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
