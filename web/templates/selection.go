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

// Selection is what the bar above a list offers for several of its rows at once.
// The list may be any whose rows are jobs.
type Selection struct {
	Frame  Frame
	Filter filter.Filter // of the list, as far as it is a filter of jobs
	Known  int64         // how many jobs match it, or -1 when they were not counted
	Noun   string        // what these are, in a bar with less space; default: "matching"
	List   templ.SafeURL // the first page of the list: the ticks of all its pages are one selection
	Back   templ.SafeURL // this page
	Kinds  []string      // "replay", "discard", "restore": what may be done with these rows
}

// fitting is what may be done with jobs in the state that the list has, or all
// that the bar knows: rows in another state are skipped.
func (b Selection) fitting() []string {
	if kinds := b.kindsForAll(); len(kinds) > 0 {
		return kinds
	}
	return b.Kinds
}

// kindsForAll is what may be done with everything that the filter selects: nothing
// where the list has several states, since an operation is about jobs of one.
func (b Selection) kindsForAll() []string {
	if b.Filter.Status == "" {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(b.Kinds), func(kind string) bool {
		_, err := operation.Kind(kind).Scope(b.Filter)
		return err != nil
	})
}

// matching names everything that the filter selects, at the time of the page.
func (b Selection) matching() string {
	as := "(as of " + b.Frame.Now.UTC().Format("15:04:05") + ")"
	noun := cmp.Or(b.Noun, "matching")
	if b.Known < 0 {
		return "all " + noun + " " + as
	}

	return "all " + format.Number(b.Known) + " " + noun + " " + as
}

// counting is where the scripts ask how many match; empty when it is known.
func (b Selection) counting() string {
	if b.Known >= 0 || len(b.kindsForAll()) == 0 {
		return ""
	}
	return string(link.Count(b.query()))
}

// query is the filter of the list, ended where the page was drawn: what fails
// later is never swept in.
func (b Selection) query() string {
	f := b.Filter
	if f.To.IsZero() || b.Frame.Now.Before(f.To) {
		f.To = b.Frame.Now
	}

	return f.String()
}
