// Package listpage draws the lists of jobs: all of them, /jobs, the dead letters,
// /dead-letters, and those that a person discarded, /trash.
//
// A list is narrowed by a query, which is all in its address (query.go). Rows
// carry the names by which the scripts find their cells, so that states are
// live, while the order of the rows never changes on its own.
package listpage

import (
	"math"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/stats"
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
	Hits   map[int64]filter.Hit // of a search, by the job's own number
	Chart  *templates.Chart     // of the queue and the type that the filter names, or nil
}

// tab is the list of jobs in one state, or in all.
type tab struct {
	state job.Status // empty: all
	word  string
	part  bool // its jobs are among those of the last tab before it that is no part
}

// tabs are those of the list. Each job is counted in one of them, but for the parts that say
// so. What was given up is told by its parts alone, unless it has others.
func (v Jobs) tabs() []tab {
	all := []tab{{word: "All"}}
	add := func(part bool, states ...job.Status) {
		for _, s := range states {
			all = append(all, tab{state: s, word: templates.StyleOf(s).Word, part: part})
		}
	}
	add(false, job.Status(job.Scheduled), job.Status(job.Returning), job.Status(job.Returned), job.Status(job.Available))
	add(true, job.StatusHeld)
	add(false, job.Status(job.Active), job.Status(job.Retryable), job.Status(job.Completed), job.Status(job.Cancelled))

	gaveUp := v.Filter.Status == job.Status(job.Discarded) || v.withoutDeadLetter() > 0
	if gaveUp {
		all = append(all, tab{state: job.Status(job.Discarded), word: "given up"})
	}

	add(gaveUp, job.StatusDeadLetter, job.StatusDLQFailed, job.StatusTrashed)

	return all
}

// further is where a list goes on, empty at its end.
func further(f filter.Filter, next filter.Cursor, address func(f filter.Filter, after string) templ.SafeURL) templ.SafeURL {
	if next == (filter.Cursor{}) {
		return ""
	}
	return address(f, next.String())
}

// states are the numbers of the tabs, if they are known.
func (v Jobs) states() stats.Depths {
	if v.countsAll() {
		return v.Snapshot.Depths
	}
	return v.Query.Tally.States
}

// withoutDeadLetter is how many jobs were discarded, have no dead letter and are not in the trash.
func (v Jobs) withoutDeadLetter() int64 {
	n := v.states()
	return n[job.Status(job.Discarded)] - n[job.StatusDeadLetter] - n[job.StatusDLQFailed] - n[job.StatusTrashed]
}

// jobsCaption names the list for readers who hear it.
func jobsCaption(f filter.Filter) string {
	if f.Status == "" {
		return "Jobs, " + templates.Order(f)
	}
	return "Jobs: " + templates.StyleOf(f.Status).Word + ", " + templates.Order(f)
}

// timeHeading names the time of each row.
func timeHeading(f filter.Filter) string {
	switch f.Status {
	case job.StatusDeadLetter, job.StatusDLQFailed, job.Status(job.Discarded):
		return "Failed"
	case job.Status(job.Retryable), job.Status(job.Scheduled):
		return "Next"
	}

	return "Changed"
}

// sortedByTime is the direction in which a list is sorted by the time of its rows;
// empty when it is sorted by another time.
func sortedByTime(f filter.Filter) string {
	column, direction := templates.SortedBy(f)
	if (column == "next") == (timeHeading(f) == "Next") && column != "" {
		return direction
	}

	return ""
}

// countsAll reports whether the tabs have the totals.
func (v Jobs) countsAll() bool {
	f := v.Filter
	f.Status = ""
	return f.Zero()
}

// inState is the filter of the list in another state; the rest of the filter stays.
func (v Jobs) inState(state job.Status) filter.Filter {
	f := v.Filter
	f.Status = state
	if f.Sort == filter.Next {
		f.Sort = ""
	}

	return f
}

// first is the place of the first row, before which the newer ones come. In a list of
// jobs that wait, those are newer that came into it after the page was drawn.
func (v Jobs) first() string {
	switch {
	case len(v.List.Jobs) == 0:
		return ""
	case v.Filter.Order() == filter.Next:
		return filter.Cursor{At: v.Now, Seq: math.MaxInt64}.String()
	}

	return v.Filter.CursorOf(v.List.Jobs[0]).String()
}

// newerIdle is what the bar above a list says while nothing is new.
func newerIdle(q Query, f filter.Filter, after string) string {
	switch {
	case q.lagging(f) != "":
		return q.lagging(f) + " Reload to find them."
	case after != "":
		return "No live count on this page. Go to the first page for newer jobs."
	case !follows(f, after):
		return "No live count for this filter. Reload for newer jobs."
	}

	return format.UpperFirst(templates.Order(f)) + ". Rows stay where they are."
}

// follows reports whether the scripts can tell which jobs newly enter a list:
// messages carry states, queues and types only.
func follows(f filter.Filter, after string) bool {
	f.Status, f.Queue = "", ""
	f.Type, f.From = "", time.Time{}
	return after == "" && f == filter.Filter{}
}

// DeadLetters is the page /dead-letters.
type DeadLetters struct {
	templates.Frame
	Filter          filter.Filter // Queue, Type, Reason, Error
	List            filter.DeadLetterList
	After           string
	Refused         []templates.Refused
	Query           Query
	Hits            map[int64]filter.Hit // of a search, by the job's own number
	DeadLetterUsage templates.DeadLetterUsage
	Configs         map[string]templates.QueueConfig
	Groups          map[int64]failures.Group // to which the dead letters' jobs belong, by number
	Slow            bool
	Errors          map[string]string
}

// deadLettersBack is the page that a form returns to without scripts.
func deadLettersBack(v DeadLetters) templ.SafeURL { return link.DeadLetters(v.Filter, v.After) }

// maxRefused is how many refused jobs stand above the list: more would push its rows out
// of sight.
const maxRefused = 3

// refusedLink leads to all refused jobs.
func refusedLink(n int64) string {
	if n <= maxRefused {
		return "List of refused jobs"
	}
	return "See all " + format.Number(n) + " refused jobs"
}

// rowForward is the button of a row that sends a refused dead letter again.
func rowForward(v DeadLetters, j job.Job) templates.Act {
	a := templates.RowAct(v.Frame, j, "forward", deadLettersBack(v))
	if config, ok := v.Configs[j.Queue]; ok {
		templates.Deny(&a, config.DeadLetters, templates.WhyNoForward(j))
	}

	return a
}

// deadLetterNote is what is remarkable about a dead letter beside the queue that it came from.
func deadLetterNote(l job.DeadLetter) string {
	s := ""
	if l.Cause != "" {
		s += " · " + templates.StyleOfOutcome(l.Cause).Word
	}

	if l.ForwardedTo != "" {
		s += " · forwarded"
	}

	return s
}

// deadLetterJob is the job of a dead letter in the run that it is about: if the
// job has moved on since, the server says so instead of acting on another run.
func deadLetterJob(l filter.DeadLetterRow) job.Job {
	j := l.Job
	j.ID, j.Run = l.JobID, l.DeadLetter.Run
	return j
}

// How many queues or types stand beside a list, and with those that unfold.
const (
	maxFacets  = 20
	maxFurther = 220
)

// deadLettersFilter is the filter of the list as one of jobs.
func deadLettersFilter(v DeadLetters) filter.Filter {
	f := v.Filter
	f.Status = job.StatusDeadLetter
	return f
}

// first is the place of the first row's job.
func (v DeadLetters) first() string {
	if len(v.List.DeadLetters) == 0 {
		return ""
	}
	return filter.Filter{Status: job.StatusDeadLetter}.CursorOf(v.List.DeadLetters[0].Job).String()
}

// Trash is the page /trash: what people discarded, and can restore until it is
// purged.
type Trash struct {
	templates.Frame
	Filter filter.Filter // with the status trashed
	Query  Query
	Hits   map[int64]filter.Hit // of a search, by the job's own number
	List   filter.List
	Was    map[int64]history.Trashed // by the job's own number
	Keeps  time.Duration             // how long the trash is kept; 0: forever
	After  string
	Slow   bool
	Errors map[string]string
}

// where is the status that a job had before it was discarded.
func where(was history.Trashed) job.Status {
	return job.Job{State: was.State, DeadLetter: was.DeadLetter}.Status()
}

// chips leave the status out: every row of the page has it.
func (v Trash) chips() []templates.Chip { return chips(v.listFilter(), link.Trash) }

// listFilter is the filter as far as a person chose it.
func (v Trash) listFilter() filter.Filter {
	f := v.Filter
	f.Status = ""
	return f
}

// kept says how long the trash keeps a job.
func (v Trash) kept() string {
	if v.Keeps <= 0 {
		return "Jobs are kept until you restore or replay them."
	}
	return "Jobs are purged " + format.About(v.Keeps) + " after they were discarded; until then you can restore those of Redrive's own queues."
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
