package templates

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/web/templates/format"
)

// Chip is a filter in use, and the way out of it.
type Chip struct {
	Name, Value string
	Without     templ.SafeURL
}

// noMatch is the headline of a list that is empty by its filter.
func noMatch(noun string, filters int) string {
	if filters == 1 {
		return "No " + noun + " matches this filter"
	}
	if filters == 2 {
		return "No " + noun + " matches both filters"
	}
	return fmt.Sprintf("No %s matches all %s", noun, format.InWords(filters, "filter", "filters"))
}

// waits reports whether the next thing to happen to j is known by its time.
func waits(j job.Job) bool {
	return (j.State == job.Retryable || j.State == job.Scheduled) && !j.RunAt.IsZero()
}

// whyText is what the column "reason or delay" says about a job that has no
// reason.
func whyText(j job.Job) string {
	switch {
	case waits(j) && j.State == job.Retryable:
		return "waits " + format.About(j.RunAt.Sub(j.ChangedAt).Round(time.Second))
	case j.Run > 1 && j.State != job.Discarded:
		return "replayed"
	}
	return ""
}

// Preview is the beginning of a payload on one line.
func Preview(payload []byte) string {
	return format.Visible(clip.Text(string(payload), 120))
}

// RowsShown says how many rows the page has.
func RowsShown(n int, order string) string { return format.Counted(n, "row", "rows") + ", " + order }

// RowReplay is the replay button of a row.
func RowReplay(f Frame, j job.Job, back templ.SafeURL) Act {
	return JobAct(f, j, "replay", "row", back).ShownIf(j.Replayable())
}

// RowDiscard is the discard button of a row: an icon, since the keys and the
// bar above the list offer it too.
func RowDiscard(f Frame, j job.Job, back templ.SafeURL) Act {
	return JobAct(f, j, "discard", "row square", back).ShownIf(j.Discardable())
}

// QueueChoices are the queues of a form's list; one that is chosen and does not
// exist is among them, so that the form says what is meant.
func QueueChoices(names []string, chosen string) []string {
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

// Lagging says what a search does not find yet.
func Lagging(n int) string {
	verb := "are"
	if n == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s %s not searchable yet.", format.Counted(n, "newest failure", "newest failures"), verb)
}

// Facet is one link of a facet.
type Facet struct {
	Icon, Word string
	Count      int64
	To         templ.SafeURL
	Current    bool
}

// ReasonFacet leads to the dead letters with a reason, or from them to all.
func ReasonFacet(r filter.ReasonCount, f filter.Filter, to func(filter.Filter, string) templ.SafeURL) Facet {
	current := f.Reason == r.Reason
	if f.Reason = r.Reason; current {
		f.Reason = ""
	}
	return Facet{Explain(r.Reason).icon, Explain(r.Reason).Word, r.Count, to(f, ""), current}
}

// Order says in which order a list is.
func Order(f filter.Filter) string {
	word := "newest"
	if f.Sort == filter.Oldest {
		word = "oldest"
	}
	if f.Searches() {
		return word + " first by when they were enqueued"
	}
	return word + " first"
}

// furtherOf is what the next page of a list has.
func furtherOf(f filter.Filter) string {
	if f.Sort == filter.Oldest {
		return "Newer"
	}
	return "Older"
}

// AriaSort is the direction in which a list is sorted by its time.
func AriaSort(f filter.Filter) string {
	if f.Sort == filter.Oldest {
		return "ascending"
	}
	return "descending"
}

// WhyNoForward is why a dead letter of this queue cannot be sent again.
func WhyNoForward(j job.Job) string {
	return "the queue " + format.Visible(j.Queue) + " has no dead-letter queue; switch it on in the configuration file, or replay"
}

// The examples of the first run.
const (
	curlExample = `curl http://127.0.0.1:8080/api/v1/jobs \
  -H 'Content-Type: application/json' \
  -d '{"type":"email.receipt","payload":{"order_id":1}}'`
	commandExample = `dashboard enqueue email.receipt '{"order_id":1}'`
	demoExample    = `dashboard demo`
)
