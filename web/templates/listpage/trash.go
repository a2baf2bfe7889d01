package listpage

import (
	"time"

	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

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
