package templates

import (
	"fmt"
	"strings"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates/format"
)

// Query is the part above a list in which people say what they want to see.
type Query struct {
	Typed  string        // what was typed and cannot be read; else empty
	Facets filter.Facets // of the list
	Dead   filter.Facets // of all open dead letters: names that can be suggested
	Queues []string      // names that can be suggested
	Lag    int           // failures that cannot be searched yet

	Filling bool // the index of texts is filled anew: much cannot be searched yet
}

// maxSuggestions bounds the names of each kind that are suggested.
const maxSuggestions = 50

// text is what the box shows: everything but what has a field of its own.
func (q Query) text(f filter.Filter) string {
	if q.Typed != "" {
		return q.Typed
	}
	if fieldTime(f.From) != "" {
		f.From = time.Time{}
	}
	if fieldTime(f.To) != "" {
		f.To = time.Time{}
	}
	f.Sort = filter.Newest
	return f.String()
}

// fieldTime is a time as its field in the form takes it; empty when it would lose
// a part of it.
func fieldTime(t time.Time) string {
	if t.IsZero() || t.Nanosecond() != 0 {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05")
}

// timed reports whether the filter or its order says something of time.
func timed(f filter.Filter) bool {
	return !f.From.IsZero() || !f.To.IsZero() || f.Sort != filter.Newest
}

// suggestions are words of the language that fit here, each complete or to be
// completed.
func (q Query) suggestions(states bool) []string {
	var all []string
	add := func(name, value string) {
		if value != "" {
			all = append(all, filter.Qualified(name, value))
		}
	}
	for _, known := range filter.Qualifiers() {
		if states || known.Name != "state" {
			all = append(all, known.Name+":")
		}
	}
	if states {
		for _, s := range job.Statuses() {
			add("state", string(s))
		}
	}
	for _, r := range q.Dead.Reasons {
		add("reason", string(r.Reason))
	}
	for _, name := range q.Queues[:min(len(q.Queues), maxSuggestions)] {
		add("queue", name)
	}
	for _, t := range q.Dead.Types[:min(len(q.Dead.Types), maxSuggestions)] {
		add("type", t.Name)
	}
	for _, since := range []string{"15m", "1h", "24h", "7d"} {
		all = append(all, "since:"+since)
	}
	return all
}

// lagging says what a search does not find yet.
func lagging(n int) string {
	verb := "are"
	if n == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s %s not searchable yet.", format.Counted(n, "newest failure", "newest failures"), verb)
}

// facetOf is one link of a facet.
type facetOf struct {
	icon, word string
	count      int64
	to         templ.SafeURL
	current    bool
}

// facetGroup is what a list can be narrowed to by one qualifier.
type facetGroup struct {
	title, label string
	all          []facetOf
	more         int
}

func (g facetGroup) largest() int64 {
	var most int64
	for _, f := range g.all {
		most = max(most, f.count)
	}
	return most
}

// facetGroups are the facets of a list, which to leads to. The value that the
// filter has already leads to the list without it.
func facetGroups(facets filter.Facets, f filter.Filter, to func(filter.Filter, string) templ.SafeURL) []facetGroup {
	reasons := facetGroup{title: "Reason", label: "Reasons"}
	for _, r := range facets.Reasons {
		reasons.all = append(reasons.all, reasonFacet(r, f, to))
	}
	queues := namedFacets("Queue", "queues", facets.Queues, f.Queue, func(name string) templ.SafeURL {
		with := f
		with.Queue = name
		return to(with, "")
	})
	types := namedFacets("Type", "jobs", facets.Types, f.Type, func(name string) templ.SafeURL {
		with := f
		with.Type = name
		return to(with, "")
	})
	return []facetGroup{reasons, queues, types}
}

// reasonFacet leads to the dead letters with a reason, or from them to all.
func reasonFacet(r filter.ReasonCount, f filter.Filter, to func(filter.Filter, string) templ.SafeURL) facetOf {
	current := f.Reason == r.Reason
	if f.Reason = r.Reason; current {
		f.Reason = ""
	}
	return facetOf{becauseOf(r.Reason).icon, becauseOf(r.Reason).word, r.Count, to(f, ""), current}
}

// namedFacets are the facets of a field of the filter, of which one name may be
// chosen; to leads to the list with another name in that field, or with none.
func namedFacets(title, symbol string, counts []filter.NameCount, chosen string, to func(name string) templ.SafeURL) facetGroup {
	shown := counts[:min(len(counts), maxFacets)]
	g := facetGroup{title: title, label: title + "s", more: len(counts) - len(shown), all: make([]facetOf, len(shown))}
	for i, c := range shown {
		name, current := c.Name, c.Name == chosen
		if current {
			name = ""
		}
		g.all[i] = facetOf{symbol, format.Visible(c.Name), c.Count, to(name), current}
	}
	return g
}

// uncounted says what the counts of the facets leave out.
func uncounted(f filter.Filter) string {
	f.Status, f.Queue, f.Type, f.Reason, f.Sort = "", "", "", "", filter.Newest
	if f.Zero() {
		return ""
	}
	return "Counted without " + format.InWords(len(f.Has()), "other filter", "other filters") + "."
}

// orderOf says in which order a list is.
func orderOf(f filter.Filter) string {
	word := "newest"
	if f.Sort == filter.Oldest {
		word = "oldest"
	}
	if f.Searches() {
		return word + " first by when they were enqueued"
	}
	return word + " first"
}

// furtherOf is what the next page of a list has.
func furtherOf(f filter.Filter) string {
	if f.Sort == filter.Oldest {
		return "Newer"
	}
	return "Older"
}

// ariaSort is the direction in which a list is sorted by its time.
func ariaSort(f filter.Filter) string {
	if f.Sort == filter.Oldest {
		return "ascending"
	}
	return "descending"
}

// partWord is what a chip calls a part of a filter, and what it says.
func partWord(f filter.Filter, name string) (word, value string) {
	value = f.Value(name)
	switch name {
	case "state":
		return name, statusWord(f.Status)
	case "reason":
		return name, becauseOf(retry.Reason(value)).word
	case "from":
		return "since", format.Stamp(f.From)
	case "to":
		return "before", format.Stamp(f.To)
	case "class":
		return "error type", value
	case "group":
		return "error group", value
	case "sort":
		return "sorted", value + " first"
	}
	return strings.ReplaceAll(name, "_", " "), value
}
