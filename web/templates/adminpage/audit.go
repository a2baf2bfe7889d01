package adminpage

import (
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/wire"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// Audit is the page /audit: who did what, and when.
type Audit struct {
	templates.Frame
	Filter audit.Filter
	List   audit.List
	After  int64 // where this page begins; 0: with the newest
	Own    bool  // of the reveals only those of whoever looks are shown
	Slow   bool
	Errors map[string]string
}

// Gone is the page of a job that is not there any more, with what people did
// to it.
type Gone struct {
	templates.Frame
	ID      string
	Entries []audit.Entry
}

func (v Audit) chips() []templates.Chip {
	var all []templates.Chip
	add := func(name, value string, clear func(*audit.Filter)) {
		if value != "" {
			f := v.Filter
			clear(&f)
			all = append(all, templates.Chip{Name: name, Value: format.Visible(value), Without: link.Audit(f, 0)})
		}
	}
	add("by", v.Filter.Actor, func(f *audit.Filter) { f.Actor = "" })
	add("action", v.Filter.Action, func(f *audit.Filter) { f.Action = "" })
	add("of", v.Filter.Subject, func(f *audit.Filter) { f.Subject = "" })
	add("from", wire.FormatTime(v.Filter.From), func(f *audit.Filter) { f.From = time.Time{} })
	add("to", wire.FormatTime(v.Filter.To), func(f *audit.Filter) { f.To = time.Time{} })
	return all
}

// subjectWord is what an act was done to, as short as can be told apart.
func subjectWord(e audit.Entry) string {
	if _, err := job.ParseID(e.Subject); err == nil {
		return format.BriefID(e.Subject)
	}
	return format.Visible(e.Subject)
}

// change says what was before and what came of it.
func change(e audit.Entry) string {
	before, after := format.Visible(clip.Text(e.Before, 300)), format.Visible(clip.Text(e.After, 300))
	switch {
	case before != "" && after != "" && before != after:
		return before + " → " + after
	case after != "":
		return after
	}
	return before
}
