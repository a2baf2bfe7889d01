// Package listpage draws the lists of jobs: all of them, the dead letters, and
// those that somebody discarded.
//
// A list is narrowed by a query, which is all in its address (query.go). Rows
// carry the names by which the scripts find their cells, so that states are
// live, while the order of the rows never moves by itself.
package listpage

import (
	"time"

	"github.com/a-h/templ"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
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

// DeadLetters is the page /dead-letters.
type DeadLetters struct {
	templates.Frame
	Filter  filter.Filter // Queue, Type, Reason, Error
	List    filter.LetterList
	After   string
	Refused []templates.Refused
	Query   Query
	Letters templates.LetterUsage
	Configs map[string]templates.QueueConfig
	Groups  map[int64]failures.Group // to which the letters' jobs belong, by number
	Slow    bool
	Errors  map[string]string
}

// lettersBack is the page that a form returns to without scripts.
func lettersBack(v DeadLetters) templ.SafeURL { return link.DeadLetters(v.Filter, v.After) }

// rowForward is the button of a row that sends a refused dead letter again.
func rowForward(v DeadLetters, j job.Job) templates.Act {
	a := templates.RowAct(v.Frame, j, "forward", lettersBack(v))
	if config, ok := v.Configs[j.Queue]; ok {
		templates.Deny(&a, config.DeadLetters, templates.WhyNoForward(j))
	}
	return a
}

// letterFrom is where a letter came from, and what else is remarkable about it.
func letterFrom(l job.DeadLetter) string {
	s := format.Visible(l.Queue)
	if l.Cause != "" {
		s += " · " + templates.LookOfOutcome(l.Cause).Word
	}
	if l.ForwardedTo != "" {
		s += " · forwarded"
	}
	return s
}

// letterJob is the job of a letter in the run that the letter is about: if the
// job has moved on since, the server says so instead of acting on another run.
func letterJob(l filter.LetterRow) job.Job {
	j := l.Job
	j.ID, j.Run = l.JobID, l.DeadLetter.Run
	return j
}

// maxFacets is how many queues or types stand beside a list.
const maxFacets = 20

// lettersFilter is the filter of the list as one of jobs.
func lettersFilter(v DeadLetters) filter.Filter {
	f := v.Filter
	f.Status = job.StatusDeadLetter
	return f
}

// first is the place of the first row's job.
func (v DeadLetters) first() string {
	if len(v.List.Letters) == 0 {
		return ""
	}
	return filter.Filter{Status: job.StatusDeadLetter}.CursorOf(v.List.Letters[0].Job).String()
}

// Trash is the page /trash: what people discarded, and can restore until it is
// purged.
type Trash struct {
	templates.Frame
	Filter filter.Filter // with the status trashed
	Query  Query
	List   filter.List
	Was    map[int64]history.Trashed // by the job's own number
	Keeps  time.Duration             // how long the trash is kept; 0: for ever
	After  string
	Slow   bool
	Errors map[string]string
}

// where is the status that a job had before it was discarded.
func where(was history.Trashed) job.Status {
	return job.Job{State: was.State, Letter: was.Letter}.Status()
}

// chips leave the status out: every row of the page has it.
func (v Trash) chips() []templates.Chip { return chips(v.list(), link.Trash) }

// list is the filter as far as a person chose it.
func (v Trash) list() filter.Filter {
	f := v.Filter
	f.Status = ""
	return f
}

// kept says how long the trash keeps a job.
func (v Trash) kept() string {
	if v.Keeps <= 0 {
		return "They are kept until somebody restores or replays them."
	}
	return "Each is purged " + format.About(v.Keeps) + " after it was discarded; until then it can be restored to where it was."
}

// purged says when a job goes: "purged in 6 d".
func (v Trash) purged(at time.Time) string {
	if v.Keeps <= 0 {
		return "kept"
	}
	left := at.Add(v.Keeps).Sub(v.Now)
	if left < time.Minute {
		return "purged soon"
	}
	return "purged in " + format.About(left)
}
