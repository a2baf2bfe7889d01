package queuepage

import (
	"fmt"
	"strings"

	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// List is the page /queues.
type List struct {
	templates.Frame
	Name     string         // what the names have that are listed; empty: all are
	Queues   []queues.Info  // all of those, or some
	Found    int            // how many those are
	Total    int            // queues
	Foreign  int            // of them: queues of sources
	Workers  int            // of all queues
	LastHour []stats.Totals // of all queues, by the minute
	Configs  map[string]templates.QueueConfig
	Held     []queues.Held // the types that most jobs wait for
}

// fewQueues are found without a filter.
const fewQueues = 20

// shown says which queues are listed when they are not all, and how to find others.
func (v List) shown() string {
	if v.Name != "" {
		return "Type more of the name to see them."
	}
	return "These are the queues that most need attention. Filter by name to see the others."
}

// maxStuck is how many handlers that do not return are listed.
const maxStuck = 100

// pausable reports whether a queue can be paused or resumed here: that of a source cannot be
// paused, and may have been before that was known.
func pausable(q queues.Info) bool { return q.Source == "" || !q.PausedAt.IsZero() }

// unattended reports whether no worker here works the queue off. The jobs of a source have
// its workers.
func (v List) unattended(q queues.Info) bool {
	return q.Source == "" && q.PausedAt.IsZero() && v.Configs[q.Name].Workers == 0
}

// waiting is how many jobs of a queue could run or will.
func waiting(q queues.Info) int64 {
	return q.Depths[job.Status(job.Available)] + q.Depths[job.Status(job.Retryable)] + q.Depths[job.Status(job.Scheduled)]
}

// depthColumns are those of jobs that wait or run.
const depthColumns = 4

// whyUnknown says why numbers of a source's queue are missing.
func whyUnknown(q queues.Info) string {
	return fmt.Sprintf("Redrive does not know what waits or runs at %s.", q.Source)
}

// summary says how much all queues do.
func summary(v List) string {
	hour := templates.Sum(templates.Series(v.LastHour, templates.Executions))
	return fmt.Sprintf("%s, %s, %s in the last hour%s", format.Counted(v.Total-v.Foreign, "queue", "queues"),
		format.Counted(v.Workers, "worker", "workers"), format.Counted(hour, "attempt", "attempts"), andForeign(v.Foreign))
}

// andForeign adds the queues of sources, which are not counted among those of Redrive.
func andForeign(n int) string {
	if n == 0 {
		return ""
	}
	return ", and " + format.Counted(n, "queue", "queues") + " of sources"
}

// workers says how busy a queue's workers are.
func workers(c templates.QueueConfig) string {
	if c.Workers == 0 {
		return "no workers"
	}
	return fmt.Sprintf("%d of %d busy", c.Running, c.Workers)
}

// alarmingShare is the share of failed attempts from which a queue is marked.
const alarmingShare = 0.25

// failingShare is the part of the last hour's attempts that failed; it is not
// known when there was none.
func failingShare(q queues.Info) (share float64, known bool) {
	failed := templates.Sum(templates.Series(q.LastHour, func(t stats.Totals) int64 { return t.Failed }))

	all := templates.Sum(templates.Series(q.LastHour, templates.Executions))
	if all == 0 {
		return 0, false
	}

	return float64(failed) / float64(all), true
}

// partOf writes a share as a person reads it: "8.1 %", "100 %".
func partOf(share float64) string {
	return strings.Replace(fmt.Sprintf("%.1f %%", 100*share), "100.0", "100", 1)
}

// delaysInRow is how long a job waits between its attempts, as far as a row has room: the
// page of the policy has its jitter and all of a schedule.
func delaysInRow(p retry.Policy) format.Calculation {
	p.Jitter = retry.Jitter{}
	if p.Strategy == retry.Schedule && len(p.Schedule) > 0 {
		return format.Calculation{Text: "after " + format.ShortSchedule(p.Schedule)}
	}

	return format.PolicyDelays(p)
}
