package templates

import (
	"maps"
	"slices"

	"github.com/a-h/templ"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/web/templates/format"
)

// jobsCaption names the list for readers who hear it.
func jobsCaption(f filter.Filter) string {
	if f.Status == "" {
		return "Jobs, " + orderOf(f)
	}
	return "Jobs: " + lookOf(f.Status).word + ", " + orderOf(f)
}

// timeHeading names the time by which the list is ordered.
func timeHeading(f filter.Filter) string {
	switch f.Status {
	case job.StatusDeadLetter, job.StatusDLQFailed, job.Status(job.Discarded):
		return "Failed"
	case job.Status(job.Retryable), job.Status(job.Scheduled):
		return "Next"
	}
	return "Changed"
}

// rowReplay is the replay button of a row.
func rowReplay(f Frame, j job.Job, back templ.SafeURL) act {
	return jobAct(f, j, "replay", "row", back).shownIf(j.Replayable())
}

// rowDiscard is the discard button of a row: an icon, since the keys and the
// bar above the list offer it too.
func rowDiscard(f Frame, j job.Job, back templ.SafeURL) act {
	return jobAct(f, j, "discard", "row square", back).shownIf(j.Discardable())
}

// narrowedBy names the facets of a list of jobs.
func narrowedBy(f filter.Filter) string {
	if f.Status == job.StatusDeadLetter {
		return "reason, queue and type"
	}
	return "queue"
}

// queueChoices are the queues of a form's list; one that is chosen and does not
// exist is among them, so that the form says what is meant.
func queueChoices(names []string, chosen string) []string {
	if chosen == "" || slices.Contains(names, chosen) {
		return names
	}
	return append([]string{chosen}, names...)
}

// sortedErrors are the problems of a filter, one sentence each.
func sortedErrors(errors map[string]string) []string {
	var all []string
	for _, field := range slices.Sorted(maps.Keys(errors)) {
		all = append(all, format.Sentence(format.Visible(field+": "+errors[field])))
	}
	return all
}

// The examples of the first run.
const (
	curlExample = `curl http://127.0.0.1:8080/api/v1/jobs \
  -H 'Content-Type: application/json' \
  -d '{"type":"email.receipt","payload":{"order_id":1}}'`
	commandExample = `dashboard enqueue email.receipt '{"order_id":1}'`
	demoExample    = `dashboard demo`
)
