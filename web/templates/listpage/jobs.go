// Package listpage draws the lists of jobs: all of them, the dead letters, and
// those that somebody discarded.
//
// A list is narrowed by a query, which is all in its address (query.go). Rows
// carry the names by which the scripts find their cells, so that states are
// live, while the order of the rows never moves by itself.
package listpage

import (
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/web/templates"
)

// Jobs is the page /jobs.
type Jobs struct {
	templates.Frame
	Filter filter.Filter
	List   filter.List
	After  string            // the cursor of this page, empty for the first
	Slow   bool              // the query ran into its deadline: List is incomplete
	Errors map[string]string // field of the filter: what is wrong with it
	Query  Query
	Chart  *templates.Chart // of the queue and the type that the filter names, or nil
}

// jobsCaption names the list for readers who hear it.
func jobsCaption(f filter.Filter) string {
	if f.Status == "" {
		return "Jobs, " + templates.Order(f)
	}
	return "Jobs: " + templates.LookOf(f.Status).Word + ", " + templates.Order(f)
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

// narrowedBy names the facets of a list of jobs.
func narrowedBy(f filter.Filter) string {
	if f.Status == job.StatusDeadLetter {
		return "reason, queue and type"
	}
	return "queue"
}

// first is the place of the first row, before which the newer ones come.
func (v Jobs) first() string {
	if len(v.List.Jobs) == 0 {
		return ""
	}
	return v.Filter.CursorOf(v.List.Jobs[0]).String()
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

// follows reports whether the scripts can tell which jobs newly enter a list:
// messages carry states, queues and types only.
func follows(f filter.Filter, after string) bool {
	f.Status, f.Queue, f.Type, f.From = "", "", "", time.Time{}
	return after == "" && f == filter.Filter{}
}
