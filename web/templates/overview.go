package templates

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/web/templates/format"
)

// counterView is one of the six totals with its last hour.
type counterView struct {
	name, class, icon, word string
	value                   int64
	hour                    []int64
	alarm                   bool // anything above zero is an alarm
}

// counters are the six totals in the order in which the product names them.
func counters(v Overview) []counterView {
	looks := map[string]counterView{
		"jobs_failed":             {class: "is-failed", icon: "failed", word: "Failed"},
		"jobs_requeued":           {class: "is-retryable", icon: "retryable", word: "Requeued"},
		"jobs_failed_permanently": {class: "is-dead", icon: "dead", word: "Failed permanently"},
		"jobs_dlq_failed":         {class: "is-dlq-failed", icon: "dlq-failed", word: "Dead letter refused", alarm: true},
		"jobs_succeeded":          {class: "is-completed", icon: "completed", word: "Succeeded"},
		"jobs_replayed":           {class: "is-accent", icon: "replay", word: "Replayed"},
	}
	var all []counterView
	for i, c := range v.Snapshot.Totals.Counters() {
		view := looks[c.Name]
		view.name, view.value = c.Name, c.Value
		view.hour = series(v.LastHour, func(t job.Totals) int64 { return t.Counters()[i].Value })
		all = append(all, view)
	}
	return all
}

// fullest are the queues of the overview: all of them, or those with the most
// live jobs.
func (v Overview) fullest() []queues.Info {
	return topQueues(v.Queues, maxFullest, func(a, b queues.Info) int { return cmp.Compare(liveJobs(a), liveJobs(b)) })
}

func liveJobs(q queues.Info) (n int64) {
	for _, s := range live() {
		n += q.Depths[job.Status(s)]
	}
	return n
}

func refusedTitle(n int64) string {
	return format.Counted(n, "dead letter was refused", "dead letters were refused")
}

// refusedText says why dead letters were refused, and that nothing is lost.
func refusedText(refused []Refused) string {
	problems := map[string]bool{}
	for _, j := range refused {
		problems[j.Problem] = true
	}
	switch {
	case len(problems) > 1:
		return "Each says why. Every job is kept."
	case len(refused) == 0 || refused[0].Problem == "":
		return "Every job is kept."
	}
	return problemText(refused[0].Problem) + ". Every job is kept."
}

// problemText is why a dead letter was refused, as the beginning of a sentence.
// An address keeps its letters.
func problemText(problem string) string {
	s := strings.TrimRight(format.Visible(problem), ".")
	if strings.HasPrefix(s, "http") {
		return s
	}
	return format.UpperFirst(s)
}

func failingNote(v Overview) string {
	if len(v.Failing) == 0 {
		return ""
	}
	return fmt.Sprintf("the last %d of the jobs that wait for a retry or ended without success", len(v.Failing))
}

// healthyText is what there is to say when nothing fails.
func healthyText(v Overview) string {
	var hour job.Totals
	for _, t := range v.LastHour {
		hour = hour.Add(t)
	}
	if hour.Failed == 0 {
		return fmt.Sprintf("No attempt failed in the last hour; %s succeeded.", format.Number(hour.Succeeded))
	}
	return fmt.Sprintf("%s failed in the last hour, and each has recovered or was dealt with.",
		format.Counted(hour.Failed, "attempt", "attempts"))
}

// recoveredText says what retries have saved.
func recoveredText(t job.Totals) string {
	if t.Requeued == 0 {
		return "No job has failed for good."
	}
	return fmt.Sprintf("%s were tried again so far.", format.Counted(t.Requeued, "failed attempt", "failed attempts"))
}

// largest is the count that fills a facet's bar.
func largest(reasons []filter.ReasonCount) (most int64) {
	for _, r := range reasons {
		most = max(most, r.Count)
	}
	return most
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

func attemptOf(j job.Job) string {
	return fmt.Sprintf("attempt %d of %d", j.Attempts+1, j.Policy.Limit())
}
