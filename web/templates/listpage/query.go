package listpage

import (
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// Query is the part above a list in which people say what they want to see.
type Query struct {
	Typed  string        // what was typed and cannot be read; else empty
	Tally  filter.Tally  // of the list
	Dead   filter.Facets // of all open dead letters: names that can be suggested
	Queues []string      // names that can be suggested
	Lag    int           // failures that cannot be searched yet

	Indexing bool // the index of texts is rebuilt: much cannot be searched yet
}

// maxSuggestions bounds the names of each kind that are suggested.
const maxSuggestions = 50

// box is the frame of the list's page, in whose search field its filter stands.
func (q Query) box(f templates.Frame, of filter.Filter, list string, errors map[string]string) templates.Frame {
	f.Search = templates.SearchBox{Text: q.boxText(of), List: list, Wrong: errors["q"] != ""}
	return f
}

// counted reports whether it is known how many jobs the list has, or at least has.
func (q Query) counted() bool { return !q.Tally.More || q.Tally.Total > 0 }

// noun is the word for the jobs of the list.
func (q Query) noun(one, many string) string {
	if q.Tally.Total == 1 && !q.Tally.More {
		return one
	}
	return many
}

// ofAll is what follows a number of jobs in a state, of which there are others.
func ofAll(s stats.Snapshot, status job.Status, one, many string) string {
	return "of " + format.Counted(s.Depths[status], one, many)
}

// lagging says what a search does not find yet; empty: nothing, or more than that.
func (q Query) lagging(f filter.Filter) string {
	if !f.Searches() || q.Lag == 0 || q.Indexing {
		return ""
	}
	return templates.Lagging(q.Lag)
}

// boxText is what the box shows: everything but what has a field of its own.
func (q Query) boxText(f filter.Filter) string {
	if q.Typed != "" {
		return q.Typed
	}

	if fieldTime(f.From) != "" {
		f.From = time.Time{}
	}

	if fieldTime(f.To) != "" {
		f.To = time.Time{}
	}

	f.Sort = ""

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

	// Then the values that occur, so that a suggestion is never without a result.
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
	all, more    []templates.Facet // the most frequent, and others
	left         int               // neither of them
}

// facetGroups are the facets of a list, which to leads to. The value that the
// filter has already leads to the list without it.
func facetGroups(t filter.Tally, f filter.Filter, to func(filter.Filter, string) templ.SafeURL) []facetGroup {
	facets := t.Facets
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

	groups := []facetGroup{reasons, queues, types}
	if !t.Whole {
		for _, g := range groups {
			g.uncount()
		}
	}

	return groups
}

// uncount takes the numbers away: they are of other jobs than those of the list.
func (g facetGroup) uncount() {
	for _, some := range [][]templates.Facet{g.all, g.more} {
		for i := range some {
			some[i].Count = templates.Uncounted
		}
	}
}

// namedFacets are the facets of a field of the filter, of which one name may be
// chosen; to leads to the list with another name in that field, or with none.
func namedFacets(title, symbol string, counts []filter.NameCount, chosen string, to func(name string) templ.SafeURL) facetGroup {
	facet := func(c filter.NameCount) templates.Facet {
		name, current := c.Name, c.Name == chosen
		if current {
			name = ""
		}

		return templates.Facet{Icon: symbol, Word: format.Visible(c.Name), Count: c.Count, To: to(name), Current: current}
	}

	g := facetGroup{title: title, label: title + "s"}
	at := slices.IndexFunc(counts, func(c filter.NameCount) bool { return c.Name == chosen })
	if chosen != "" && at < 0 {
		g.all = append(g.all, facet(filter.NameCount{Name: chosen}))
	}

	if at >= maxFacets { // what the list is narrowed to is in sight
		g.all = append(g.all, facet(counts[at]))
	}

	for i, c := range counts {
		switch {
		case i < maxFacets:
			g.all = append(g.all, facet(c))
		case i < maxFurther && i != at:
			g.more = append(g.more, facet(c))
		case i != at:
			g.left++
		}
	}

	return g
}

// found is the excerpt of the error in which something was found, or the first of
// another text.
func found(h filter.Hit, inError bool) (filter.Excerpt, bool) {
	i := slices.IndexFunc(h.Excerpts, func(e filter.Excerpt) bool { return (e.In == "error") == inError })
	if i < 0 {
		return filter.Excerpt{}, false
	}

	return h.Excerpts[i], true
}

// lead is what precedes a match, and trail what follows it.
func lead(e filter.Excerpt) string {
	if e.Cut {
		return "…" + format.Visible(e.Before)
	}
	return format.Visible(e.Before)
}

func trail(e filter.Excerpt) string {
	if e.CutAfter {
		return format.Visible(e.After) + "…"
	}
	return format.Visible(e.After)
}

// order is an order that a list can have, as its form offers it.
type order struct {
	sort filter.Sort
	word string
}

// orders are the orders of a list. The usual one is not written into an address.
func orders(f filter.Filter) []order {
	usual := f

	usual.Sort = ""
	all := []order{{"", templates.OrderWord(usual.Order())}}
	if usual.Order() == filter.Next {
		all = append(all, order{filter.Newest, "newest first"})
	}

	if f.Sort == usual.Order() { // the user wrote it
		all[0].sort = f.Sort
	}

	return append(all, order{filter.Oldest, "oldest first"})
}

// uncounted says why facets have no numbers, if they have none.
func (q Query) uncounted(errors map[string]string) string {
	if q.Tally.Whole || len(errors) > 0 {
		return ""
	}
	return "Too many jobs match to count them here."
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
		return "sorted", templates.OrderWord(f.Sort)
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

// selection is the bar above a list, for several of its rows at once.
func selection(f templates.Frame, q Query, of filter.Filter, list, back templ.SafeURL, kinds ...string) templates.Selection {
	known := q.Tally.Total
	if q.Tally.More {
		known = -1
	}

	return templates.Selection{Frame: f, Filter: of, Known: known, List: list, Back: back, Kinds: kinds}
}
