package templates

import (
	"fmt"
	"strings"

	"redrive/internal/job"
	"redrive/internal/retry"
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

// policyLine is how often a job is tried, and what becomes of it then.
func policyLine(p retry.Policy) string {
	end := "then dead letter"
	if p.OnExhaustion == retry.Discard {
		end = "then discarded"
	}
	return counted(p.Limit(), "attempt", "attempts") + ", " + end
}

// policyDelays is how long a job waits in between.
func policyDelays(p retry.Policy) string {
	if p.Limit() == 1 {
		return "never retried"
	}
	var words string
	switch first := duration(p.InitialInterval); p.Strategy {
	case retry.Immediate:
		return "retried at once"
	case retry.Constant:
		words = "every " + first
	case retry.Linear:
		words = first + " × n"
	case retry.Exponential:
		words = fmt.Sprintf("%s × %s", first, factor(p.Coefficient))
	case retry.Polynomial:
		words = fmt.Sprintf("%s × n^%s", first, factor(p.Coefficient))
	case retry.Schedule:
		words = scheduleWords(p)
	}
	if p.Strategy != retry.Constant {
		words += ", up to " + duration(p.MaxInterval)
	}
	if p.Jitter.On() {
		words += fmt.Sprintf(", jitter %s–%s", factor(p.Jitter.Low), factor(p.Jitter.High))
	}
	return words
}

func scheduleWords(p retry.Policy) string {
	if len(p.Schedule) == 0 {
		return "at once"
	}
	var all []string
	for _, d := range p.Schedule {
		all = append(all, duration(d))
	}
	if len(all) > 4 {
		all = append(all[:4], "…")
	}
	return "after " + strings.Join(all, ", ")
}

// queueFlip is the pause and resume button of a queue.
func queueFlip(f Frame, q job.QueueInfo) flipAct {
	return flipAct{
		is: !q.PausedAt.IsZero(), class: "row square", about: visible(q.Name), denied: visible(f.Problem),
		on:  face{url: queueAction(q.Name, "resume"), icon: "play", word: "Resume", fields: back(QueuesURL())},
		off: face{url: queueAction(q.Name, "pause"), icon: "pause", word: "Pause", fields: back(QueuesURL())},
	}
}
