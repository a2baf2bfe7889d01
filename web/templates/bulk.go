package templates

import (
	"cmp"
	"slices"

	"github.com/a-h/templ"

	"redrive/internal/filter"
	"redrive/internal/operation"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// bulk is what the bar above a list offers for several of its rows at once.
// The list may be any whose rows are jobs.
type bulk struct {
	frame  Frame
	filter filter.Filter // of the list, as far as it is a filter of jobs
	known  int64         // how many jobs match it, or -1 when nobody has counted
	noun   string        // what these are, in a bar with less room; default: "matching"
	list   templ.SafeURL // the first page of the list: the ticks of all its pages are one selection
	back   templ.SafeURL // this page
	kinds  []string      // "replay", "discard", "restore": what may be done with these rows
}

// bulkKind is one button of the bar.
type bulkKind struct{ name, word, icon, class string }

func (b bulk) buttons() []bulkKind {
	var all []bulkKind
	for _, kind := range b.fitting() {
		switch kind {
		case "discard":
			all = append(all, bulkKind{kind, "Discard", "discarded", "button danger"})
		case "restore":
			all = append(all, bulkKind{kind, "Restore", "replay", "button primary"})
		default:
			all = append(all, bulkKind{kind, "Replay", "replay", "button primary"})
		}
	}
	return all
}

// fitting is what may be done with jobs in the state that the list has, or all
// that the bar knows: rows in another state are skipped.
func (b bulk) fitting() []string {
	if kinds := b.whole(); len(kinds) > 0 {
		return kinds
	}
	return b.kinds
}

// whole is what may be done with everything that the filter selects: nothing
// where the list has several states, since an operation is about jobs of one.
func (b bulk) whole() []string {
	if b.filter.Status == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(b.kinds), func(kind string) bool {
		_, err := operation.Kind(kind).Scope(b.filter)
		return err != nil
	})
}

// matching names everything that the filter selects, at the time of the page.
func (b bulk) matching() string {
	as := "(as of " + b.frame.Now.UTC().Format("15:04:05") + ")"
	noun := cmp.Or(b.noun, "matching")
	if b.known < 0 {
		return "all " + noun + " " + as
	}
	return "all " + format.Number(b.known) + " " + noun + " " + as
}

// counting is where the scripts ask how many match; empty when it is known.
func (b bulk) counting() string {
	if b.known >= 0 || len(b.whole()) == 0 {
		return ""
	}
	return string(link.Count(b.query()))
}

// query is the filter of the list, ended where the page was drawn: what fails
// later is never swept in.
func (b bulk) query() string {
	f := b.filter
	if f.To.IsZero() || b.frame.Now.Before(f.To) {
		f.To = b.frame.Now
	}
	return f.String()
}
