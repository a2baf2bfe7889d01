package templates

import (
	"fmt"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// chip is a filter in use, and the way out of it.
type chip struct {
	name, value string
	without     templ.SafeURL
}

// chips lists the filters in use. to makes the address of the same list under
// another filter.
func chips(f filter.Filter, to func(filter.Filter, string) templ.SafeURL) []chip {
	var all []chip
	for _, name := range f.Has() {
		word, value := partWord(f, name)
		all = append(all, chip{word, format.Visible(value), to(f.Without(name), "")})
	}
	return all
}

func statusWord(s job.Status) string {
	if s == "" {
		return ""
	}
	return lookOf(s).word
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

// tab is one saved filter of the list of jobs.
type tab struct {
	url     templ.SafeURL
	word    string
	count   int64
	status  job.Status // empty: all jobs
	current bool
}

// tabs are the states; the rest of the filter stays.
func tabs(v Jobs) []tab {
	f := v.Filter
	f.Status = ""
	all := []tab{{url: link.Jobs(f, ""), word: "All", current: v.Filter.Status == ""}}
	for _, s := range job.Statuses() {
		f.Status = s
		all = append(all, tab{
			url: link.Jobs(f, ""), word: lookOf(s).word, status: s,
			count: v.Snapshot.Depths[s], current: v.Filter.Status == s,
		})
	}
	return all
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

// preview is the beginning of a payload on one line.
func preview(payload []byte) string {
	return format.Visible(clip.Text(string(payload), 120))
}

// share is a count as a part of the largest one, for the bar of a facet.
func share(count, largest int64) string {
	if largest <= 0 {
		return format.Percent(0)
	}
	return format.Percent(100 * float64(count) / float64(largest))
}

// follows reports whether the scripts can tell which jobs newly enter a list:
// messages carry states, queues and types only.
func follows(f filter.Filter, after string) bool {
	f.Status, f.Queue, f.Type, f.From = "", "", "", time.Time{}
	return after == "" && f == filter.Filter{}
}

// first is the place of the first row, before which the newer ones stand.
func (v Jobs) first() string {
	if len(v.List.Jobs) == 0 {
		return ""
	}
	return v.Filter.CursorOf(v.List.Jobs[0]).String()
}

// first is the place of the first row's job.
func (v DeadLetters) first() string {
	if len(v.List.Letters) == 0 {
		return ""
	}
	return filter.Filter{Status: job.StatusDeadLetter}.CursorOf(v.List.Letters[0].Job).String()
}

// newerIdle is what the bar above a list says while there is no news.
func newerIdle(f filter.Filter, after string) string {
	switch {
	case after != "":
		return "An older page. What is newer is not counted here."
	case !follows(f, after):
		return "Reload to see what is newer: this filter or order cannot be followed."
	}
	return "Newest first. Rows stay where they are."
}

// keeps names the statuses with which a row belongs to the list.
func keeps(f filter.Filter) string { return string(f.Status) }

// rowsShown says how many rows the page has.
func rowsShown(n int, order string) string { return format.Counted(n, "row", "rows") + ", " + order }
