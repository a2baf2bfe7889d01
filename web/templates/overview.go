package templates

import (
	"cmp"
	"slices"
	"strconv"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/stats"
)

// Overview is the page /.
type Overview struct {
	Frame
	LastHour        []stats.Totals // 60 minutes, oldest first
	Queues          []queues.Info  // all of them, or those with the most live jobs
	Failing         []job.Job      // newest failed jobs
	Refused         []Refused      // newest first
	Unhandled       []queues.Held  // the types without a handler for which most jobs wait
	Reasons         []filter.ReasonCount
	Groups          []failures.Group // open ones with the most failures in the last day
	Ignored         int64            // groups that are left out because a person ignores them
	DeadLetterUsage DeadLetterUsage
	FirstRun        bool // nothing was ever enqueued
	Slow            bool // a query ran into its deadline: Groups, Failing or Refused is incomplete
}

// counterView is one of the six totals with its last hour.
type counterView struct {
	name, class, icon, word string
	value                   int64
	hour                    []int64
	alarm                   bool // anything above zero is an alarm
}

// counters are the six totals in the order in which the product names them.
func counters(v Overview) []counterView {
	styles := map[string]counterView{
		"jobs_failed":             {class: "is-failed", icon: "failed", word: "Failed"},
		"jobs_requeued":           {class: "is-retryable", icon: "retryable", word: "Requeued"},
		"jobs_failed_permanently": {class: "is-dead", icon: "dead", word: "Failed permanently"},
		"jobs_dlq_failed":         {class: "is-dlq-failed", icon: "dlq-failed", word: "Dead letter refused", alarm: true},
		"jobs_succeeded":          {class: "is-completed", icon: "completed", word: "Succeeded"},
		"jobs_replayed":           {class: "is-accent", icon: "replay", word: "Replayed"},
	}

	var all []counterView
	for i, c := range v.Snapshot.Totals.Counters() {
		view := styles[c.Name]
		view.name, view.value = c.Name, c.Value
		view.hour = Series(v.LastHour, func(t stats.Totals) int64 { return t.Counters()[i].Value })
		all = append(all, view)
	}

	return all
}

// nextAttempt is the number of the attempt that a job waits for, of how many.
func nextAttempt(j job.Job) string {
	return "attempt " + strconv.Itoa(j.Attempts+1) + " of " + strconv.Itoa(j.MaxAttempts())
}

// soonest picks the jobs that are tried again first.
func soonest(jobs []job.Job, limit int) []job.Job {
	var waiting []job.Job
	for _, j := range jobs {
		if j.State == job.Retryable && waits(j) {
			waiting = append(waiting, j)
		}
	}

	slices.SortStableFunc(waiting, func(a, b job.Job) int {
		return cmp.Or(a.RunAt.Compare(b.RunAt), cmp.Compare(a.Seq, b.Seq))
	})

	return waiting[:min(limit, len(waiting))]
}
