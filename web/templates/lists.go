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

// delayOf is how long j waits for its time, from the moment at which that began.
func delayOf(j job.Job) string {
	return "waits " + format.About(j.RunAt.Sub(j.ChangedAt).Round(time.Second))
}

// Preview is the beginning of a payload on one line.
func Preview(payload []byte) string {
	return format.Visible(clip.Text(string(payload), 80))
}

// RowsShown says how many rows the page has.
func RowsShown(n int, order string) string { return format.Counted(n, "row", "rows") + ", " + order }

// RowAct is the button of a row that acts on its job. It is hidden where it does
// not apply. Discarding has an icon only, since the keys and the bar above the
// list offer it too.
func RowAct(f Frame, j job.Job, kind string, back templ.SafeURL) Act {
	class, applies := "row", false
	switch kind {
	case "replay":
		applies = j.Replayable() && j.State != job.Retryable // which will run again automatically
	case "discard":
		class, applies = "row square", j.Discardable()
	case "restore":
		applies = j.Restorable()
	case "forward":
		applies = j.DeadLetter == job.DeadLetterRefused
	}

	a := JobAct(f, j, kind, class, back)
	a.hidden = !applies

	return a
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
		text := errors[field]
		if field != "q" { // the filter as a whole
			text = field + ": " + text
		}

		all = append(all, format.Sentence(format.Visible(text)))
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

// firstHandler is a section of the configuration for the job that an empty page sends.
const firstHandler = `handlers:
  email.receipt:
    http: {url: "http://127.0.0.1:9000/email"}`

// Facet is one link of a facet.
type Facet struct {
	Icon, Word string
	Count      int64 // or Uncounted
	To         templ.SafeURL
	Current    bool
}

// Uncounted is the count of a facet whose jobs are too many to count.
const Uncounted = -1

// ReasonFacets lead to the dead letters with one reason each. The one that the
// filter has already leads to the list without it.
func ReasonFacets(reasons []filter.ReasonCount, f filter.Filter, to func(filter.Filter, string) templ.SafeURL) []Facet {
	all := make([]Facet, len(reasons))
	for i, r := range reasons {
		with, current := f, f.Reason == r.Reason
		with.Reason = r.Reason
		if current {
			with.Reason = ""
		}

		all[i] = Facet{Explain(r.Reason).icon, Explain(r.Reason).Word, r.Count, to(with, ""), current}
	}

	return all
}

// Largest is the count that fills the bar of a facet.
func Largest(all []Facet) (most int64) {
	for _, f := range all {
		most = max(most, f.Count)
	}
	return most
}

// Order says in which order a list is.
func Order(f filter.Filter) string {
	word := OrderWord(f.Order())
	if f.Order() != filter.Next && f.ByEnqueueing() { // the rows show another time
		word += " by when they were added to Redrive"
	}

	return word
}

// OrderWord names an order, whatever it is that is in it.
func OrderWord(s filter.Sort) string {
	if s == filter.Next {
		return "next run first"
	}
	return string(s) + " first"
}

// SortedBy is the time by which a list is sorted, if it has a column of it, and in
// which direction.
func SortedBy(f filter.Filter) (column, direction string) {
	switch f.Order() {
	case filter.Next:
		return "next", "ascending"
	case filter.Oldest:
		direction = "ascending"
	default:
		direction = "descending"
	}

	if f.ByEnqueueing() {
		return "", direction
	}

	return "changed", direction
}

// WhyNoForward is why a dead letter of this queue cannot be sent again.
func WhyNoForward(j job.Job) string {
	return "the queue " + format.Visible(j.Queue) + " has no dead-letter queue; switch it on in the configuration file, or replay"
}
