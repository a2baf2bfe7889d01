package listpage

import (
	"strings"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// Query is the part above a list in which people say what they want to see.
type Query struct {
	Typed  string        // what was typed and cannot be read; else empty
	Facets filter.Facets // of the list
	Dead   filter.Facets // of all open dead letters: names that can be suggested
	Queues []string      // names that can be suggested
	Lag    int           // failures that cannot be searched yet

	Indexing bool // the index of texts is filled anew: much cannot be searched yet
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

// facetGroup is what a list can be narrowed to by one qualifier.
type facetGroup struct {
	title, label string
	all          []templates.Facet
	more         int
}

// facetGroups are the facets of a list, which to leads to. The value that the
// filter has already leads to the list without it.
func facetGroups(facets filter.Facets, f filter.Filter, to func(filter.Filter, string) templ.SafeURL) []facetGroup {
	reasons := facetGroup{title: "Reason", label: "Reasons", all: templates.ReasonFacets(facets.Reasons, f, to)}
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

// namedFacets are the facets of a field of the filter, of which one name may be
// chosen; to leads to the list with another name in that field, or with none.
func namedFacets(title, symbol string, counts []filter.NameCount, chosen string, to func(name string) templ.SafeURL) facetGroup {
	shown := counts[:min(len(counts), maxFacets)]
	g := facetGroup{title: title, label: title + "s", more: len(counts) - len(shown), all: make([]templates.Facet, len(shown))}
	for i, c := range shown {
		name, current := c.Name, c.Name == chosen
		if current {
			name = ""
		}
		g.all[i] = templates.Facet{Icon: symbol, Word: format.Visible(c.Name), Count: c.Count, To: to(name), Current: current}
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

// partWord is what a chip calls a part of a filter, and what it says.
func partWord(f filter.Filter, name string) (word, value string) {
	value = f.Value(name)
	switch name {
	case "state":
		return name, templates.StyleOf(f.Status).Word
	case "reason":
		return name, templates.Explain(retry.Reason(value)).Word
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

// chips lists the filters in use. to makes the address of the same list under
// another filter.
func chips(f filter.Filter, to func(filter.Filter, string) templ.SafeURL) []templates.Chip {
	var all []templates.Chip
	for _, name := range f.Has() {
		word, value := partWord(f, name)
		all = append(all, templates.Chip{Name: word, Value: format.Visible(value), Without: to(f.Without(name), "")})
	}
	return all
}

// matchingJobs is how many jobs a filter selects, where the totals and the
// facets know it without counting; -1 where they do not.
func matchingJobs(f filter.Filter, s job.Snapshot, facets filter.Facets) int64 {
	bare := f
	bare.Sort = ""
	switch status := f.Status; {
	case bare == filter.Filter{Status: status}:
		return s.Depths[status]
	case status == job.StatusDeadLetter && bare == filter.Filter{Status: status, Queue: f.Queue, Type: f.Type, Reason: f.Reason}:
		return letterCount(facets, f.Reason)
	case status != job.StatusDeadLetter && bare == filter.Filter{Status: status, Queue: f.Queue}:
		return queueCount(facets, f.Queue)
	}
	return -1
}

// letterCount adds up the reasons of the letters of a queue and a type.
func letterCount(facets filter.Facets, reason retry.Reason) (n int64) {
	for _, r := range facets.Reasons {
		if reason == "" || r.Reason == reason {
			n += r.Count
		}
	}
	return n
}

// queueCount is how many jobs of a queue match.
func queueCount(facets filter.Facets, queue string) int64 {
	for _, q := range facets.Queues {
		if q.Name == queue {
			return q.Count
		}
	}
	return 0
}

// selection is the bar above a list, for several of its rows at once.
func selection(f templates.Frame, q Query, of filter.Filter, list, back templ.SafeURL, kinds ...string) templates.Selection {
	return templates.Selection{Frame: f, Filter: of, Known: matchingJobs(of, f.Snapshot, q.Facets), List: list, Back: back, Kinds: kinds}
}
