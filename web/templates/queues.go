package templates

import (
	"fmt"

	"redrive/internal/job"
)

// unattended reports whether nobody here works the queue off.
func (v Queues) unattended(q job.QueueInfo) bool {
	return q.PausedAt.IsZero() && v.Configs[q.Name].Workers == 0
}

// waiting is how many jobs of a queue could run or will.
func waiting(q job.QueueInfo) int64 {
	return q.Depths[job.Status(job.Available)] + q.Depths[job.Status(job.Retryable)] + q.Depths[job.Status(job.Scheduled)]
}

func queuesSummary(v Queues) string {
	var workers int
	var hour int64
	for _, c := range v.Configs {
		workers += c.Workers
	}
	for _, q := range v.Queues {
		hour += sum(series(q.LastHour, executions))
	}
	return fmt.Sprintf("%s, %s, %s in the last hour", counted(len(v.Queues), "queue", "queues"),
		counted(workers, "worker", "workers"), counted(hour, "attempt", "attempts"))
}

// workers says how busy a queue's workers are.
func workers(c QueueConfig) string {
	if c.Workers == 0 {
		return "no workers"
	}
	return fmt.Sprintf("%d of %d busy", c.Running, c.Workers)
}

func heldTitle(held []job.HeldType) string {
	var n int64
	for _, h := range held {
		n += h.Count
	}
	return counted(n, "job waits for a handler that nobody has:", "jobs wait for a handler that nobody has:")
}

func heldCount(h job.HeldType, last bool) string {
	end := ", "
	if last {
		end = ". "
	}
	return fmt.Sprintf("(%s in %s)", number(h.Count), visible(h.Queue)) + end
}

// executions is how many attempts ended.
func executions(t job.Totals) int64 { return t.Succeeded + t.Failed }

// alarmingShare is the share of failed attempts from which a queue is marked.
const alarmingShare = 0.25

// failingShare is the part of the last hour's attempts that failed; it is not
// known when there was none.
func failingShare(q job.QueueInfo) (share float64, known bool) {
	failed := sum(series(q.LastHour, func(t job.Totals) int64 { return t.Failed }))
	all := sum(series(q.LastHour, executions))
	if all == 0 {
		return 0, false
	}
	return float64(failed) / float64(all), true
}

// partOf writes a share as a person reads it: "8.1 %".
func partOf(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// letterless reports whether a queue has no dead letter, and none was refused.
func letterless(q job.QueueInfo) bool {
	return q.Depths[job.StatusDeadLetter] == 0 && q.Depths[job.StatusDLQFailed] == 0
}

// queueFlip is the pause and resume button of a queue.
func queueFlip(f Frame, q job.QueueInfo) flipAct {
	return flipAct{
		is: !q.PausedAt.IsZero(), class: "row square", about: visible(q.Name), denied: visible(f.Problem),
		on:  face{url: queueAction(q.Name, "resume"), icon: "play", word: "Resume", fields: back(queuesURL())},
		off: face{url: queueAction(q.Name, "pause"), icon: "pause", word: "Pause", fields: back(queuesURL())},
	}
}
