package listpage

import (
	"github.com/a-h/templ"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

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
