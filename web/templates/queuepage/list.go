// Package queuepage draws the queues, one queue, and the workers: how deep and
// how fast each queue is, by which rules its jobs are tried again, and whether
// somebody works it off.
//
// What is a figure is as of the page. Pausing takes effect at once, and its
// switch shows the new state without another page.
package queuepage

import (
	"cmp"
	"fmt"

	"redrive/internal/access"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// List is the page /queues.
type List struct {
	templates.Frame
	Queues  []queues.Info
	Configs map[string]templates.QueueConfig
	Held    []queues.Held
}

// maxQueues is how many rows a page of queues has.
const maxQueues = 100

// shown are the queues of the page: all of them, or those that most need
// attention.
func (v List) shown() []queues.Info { return templates.TopQueues(v.Queues, maxQueues, attention) }

// attention orders queues by how much somebody has to look at them: for dead
// letters that were refused, then for a pause, for dead letters, for a backlog.
func attention(a, b queues.Info) int {
	return cmp.Or(
		cmp.Compare(a.Depths[job.StatusDLQFailed], b.Depths[job.StatusDLQFailed]),
		a.PausedAt.Compare(b.PausedAt),
		cmp.Compare(a.Depths[job.StatusDeadLetter], b.Depths[job.StatusDeadLetter]),
		cmp.Compare(waiting(a), waiting(b)),
	)
}

// unattended reports whether nobody here works the queue off.
func (v List) unattended(q queues.Info) bool {
	return q.PausedAt.IsZero() && v.Configs[q.Name].Workers == 0
}

// waiting is how many jobs of a queue could run or will.
func waiting(q queues.Info) int64 {
	return q.Depths[job.Status(job.Available)] + q.Depths[job.Status(job.Retryable)] + q.Depths[job.Status(job.Scheduled)]
}

func summary(v List) string {
	var workers int
	var hour int64
	for _, c := range v.Configs {
		workers += c.Workers
	}
	for _, q := range v.Queues {
		hour += templates.Sum(templates.Series(q.LastHour, templates.Executions))
	}
	return fmt.Sprintf("%s, %s, %s in the last hour", format.Counted(len(v.Queues), "queue", "queues"),
		format.Counted(workers, "worker", "workers"), format.Counted(hour, "attempt", "attempts"))
}

// workers says how busy a queue's workers are.
func workers(c templates.QueueConfig) string {
	if c.Workers == 0 {
		return "no workers"
	}
	return fmt.Sprintf("%d of %d busy", c.Running, c.Workers)
}

func heldTitle(held []queues.Held) string {
	var n int64
	for _, h := range held {
		n += h.Count
	}
	return format.Counted(n, "job waits for a handler that nobody has:", "jobs wait for a handler that nobody has:")
}

func heldCount(h queues.Held, last bool) string {
	end := ", "
	if last {
		end = ". "
	}
	return fmt.Sprintf("(%s in %s)", format.Number(h.Count), format.Visible(h.Queue)) + end
}

// alarmingShare is the share of failed attempts from which a queue is marked.
const alarmingShare = 0.25

// failingShare is the part of the last hour's attempts that failed; it is not
// known when there was none.
func failingShare(q queues.Info) (share float64, known bool) {
	failed := templates.Sum(templates.Series(q.LastHour, func(t job.Totals) int64 { return t.Failed }))
	all := templates.Sum(templates.Series(q.LastHour, templates.Executions))
	if all == 0 {
		return 0, false
	}
	return float64(failed) / float64(all), true
}

// partOf writes a share as a person reads it: "8.1 %".
func partOf(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// letterless reports whether a queue has no dead letter, and none was refused.
func letterless(q queues.Info) bool {
	return q.Depths[job.StatusDeadLetter] == 0 && q.Depths[job.StatusDLQFailed] == 0
}

// lettersGo says where the dead letters of a queue go.
func lettersGo(c templates.QueueConfig) string {
	switch {
	case c.ForwardedTo != "":
		return "to " + format.Visible(c.ForwardedTo)
	case c.DeadLetters:
		return "kept here"
	}
	return "off"
}

// lettersLeave adds to a policy's line what is remarkable about the way of its
// dead letters.
func lettersLeave(c templates.QueueConfig) string {
	switch {
	case c.Policy.OnExhaustion != retry.DeadLetter:
		return ""
	case c.ForwardedTo != "":
		return " to " + format.Visible(c.ForwardedTo)
	case !c.DeadLetters:
		return ", which is off"
	}
	return ""
}

// pauseSwitch is the pause and resume button of a queue.
func pauseSwitch(f templates.Frame, q queues.Info) templates.Switch {
	return templates.Switch{
		Is: !q.PausedAt.IsZero(), Class: "row square", About: format.Visible(q.Name), Denied: f.Denied(access.Operate, "pause or resume queues"),
		On:  templates.SwitchAction{URL: link.QueueAction(q.Name, "resume"), Icon: "play", Word: "Resume", Fields: templates.Back(link.Queues())},
		Off: templates.SwitchAction{URL: link.QueueAction(q.Name, "pause"), Icon: "pause", Word: "Pause", Fields: templates.Back(link.Queues())},
	}
}
