// Package failurepage draws the error groups: /failures, the list of what is
// failing, by cause, and /failures/{fingerprint}, the page of one group with how
// it fails, why its failures are one group, its newest jobs, and what can be
// decided about it.
//
// Whatever acts on the dead jobs of a group leads to the preview of an operation
// first, and takes only what was dead when the page was drawn.
package failurepage

import (
	"fmt"
	"strings"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/access"
	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// List is the page /failures.
type List struct {
	templates.Frame
	Filter  failures.Filter
	Typed   failures.Filter  // the filter with what is wrong in it, to be corrected
	Tallies []failures.Tally // in the order of the states
	List    failures.List
	Classes failures.Classes  // of what the filter selects; empty where they are not asked for
	After   string            // the cursor of this page, empty for the first
	Slow    bool              // the query ran into its deadline: List is incomplete
	Errors  map[string]string // field of the filter: what is wrong with it
	Queues  []string          // names for the filter's list
}

// View is the page /failures/{fingerprint}.
type View struct {
	templates.Frame
	failures.Detail
	Keys       []PayloadKey          // of the newest jobs
	Read       int                   // of how many of them
	Operations []operation.Operation // that named the group, the newest first
	Alike      failures.Classes      // the open groups of the same class
}

// PayloadKey is a top-level key of payloads.
type PayloadKey struct {
	Name      string
	Values    int    // different ones
	Commonest string // as JSON
	Jobs      int    // that have it
}

// scopeOf is the filter by which an operation takes the dead jobs of a group,
// ended where the page was drawn: what fails later is never swept in.
func scopeOf(f templates.Frame, g failures.Group) string {
	return filter.Filter{Status: job.StatusDeadLetter, Group: g.Fingerprint, To: f.Now}.String()
}

// styleOfGroup draws the state of a group.
func styleOfGroup(s failures.State) templates.Style {
	switch s {
	case failures.Resolved:
		return templates.Style{Class: "is-completed", Icon: "check", Word: "resolved"}
	case failures.Ignored:
		return templates.Style{Class: "is-pending", Icon: "pause", Word: "ignored"}
	}

	return templates.Style{Class: "is-dead", Icon: "failures", Word: "open"}
}

// groupSummary says in words what the page shows, and how many dead and refused jobs
// it leaves out: together they are all dead letters of jobs that failed.
func groupSummary(v List) string {
	words, others := "", failures.Tally{}
	for _, t := range v.Tallies {
		if t.State != v.Filter.State {
			others.Dead, others.Refused = others.Dead+t.Dead, others.Refused+t.Refused
			continue
		}

		words = fmt.Sprintf("%s: %s, %s retrying",
			format.Counted(t.Groups, string(t.State)+" group", string(t.State)+" groups"), deadWords(t), format.Number(t.Retrying))
	}

	if words != "" && others.Dead+others.Refused > 0 {
		words += "; other groups: " + deadWords(others)
	}

	return words
}

// deadWords says how many jobs of some groups are dead, and of how many the dead
// letter was refused.
func deadWords(t failures.Tally) string {
	words := format.Number(t.Dead) + " dead"
	if t.Refused > 0 {
		words += ", " + format.Number(t.Refused) + " refused"
	}

	return words
}

// groupChips are the filters in use; the state is a tab.
func groupChips(f failures.Filter) []templates.Chip {
	var all []templates.Chip
	add := func(name, value string, without failures.Filter) {
		if value != "" {
			all = append(all, templates.Chip{Name: name, Value: format.Visible(value), Without: link.Failures(without, "")})
		}
	}
	add("queue", f.Queue, f.Without("queue"))
	add("source", f.Source, f.Without("source"))
	add("type", f.Type, f.Without("type"))
	add("class", f.Class, f.Without("class"))
	add("text", f.Text, f.Without("q"))

	return all
}

// groupsCaption names the list for readers who hear it.
func groupsCaption(f failures.Filter) string {
	return format.UpperFirst(string(f.State)) + " error groups, " + groupOrder(f.Sort)
}

// groupOrder says in which order the groups are.
func groupOrder(s failures.Sort) string {
	if s == failures.NewestSeen {
		return "last seen first"
	}
	return "most dead jobs first"
}

// groupType is the type of the jobs of a group, unless they have several.
func groupType(g failures.Group) string {
	if g.Type == "" {
		return "any type"
	}
	return format.Visible(g.Type)
}

// groupQueues names the queue with the most failures, and says how many more
// there are.
func groupQueues(g failures.Group) string {
	switch len(g.Queues) {
	case 0:
		return ""
	case 1:
		return format.Visible(g.Queues[0].Name)
	}

	return fmt.Sprintf("%s +%d", format.Visible(g.Queues[0].Name), len(g.Queues)-1)
}

// noteLine is a note on one line.
func noteLine(note string) string { return format.Visible(clip.Line(note)) }

// replaysText is the success rate of replays.
func replaysText(g failures.Group) string {
	if g.Replayed == 0 {
		return "never replayed"
	}
	return fmt.Sprintf("%s of %s", format.Number(g.Recovered), format.Number(g.Replayed))
}

// replaysEnded is how the replayed runs ended, and how many have not.
func replaysEnded(g failures.Group) string {
	if g.Replayed == 0 {
		return "never"
	}

	said := []string{format.Number(g.Recovered) + " succeeded"}
	if g.Relapsed > 0 {
		said = append(said, format.Number(g.Relapsed)+" failed again")
	}

	if open := g.Replayed - g.Recovered - g.Relapsed; open > 0 {
		said = append(said, format.Number(open)+" not finished")
	}

	return strings.Join(said, ", ")
}

// stateAction is what a person does first about a group: resolve an open one, or
// open any other.
func stateAction(g failures.Group) (action, symbol, word string) {
	if g.State == failures.Open {
		return "resolve", "check", "Resolve"
	}
	return "reopen", "failures", "Reopen"
}

// decisionButton is a button that decides about groups.
type decisionButton struct{ action, symbol, word string }

// decisions are what can be decided about groups in a state.
func decisions(s failures.State) []decisionButton {
	if s == failures.Open {
		return []decisionButton{{"resolve", "check", "Resolve"}, {"ignore", "pause", "Ignore"}}
	}
	return []decisionButton{{"reopen", "failures", "Reopen"}}
}

// undoAction brings groups back into the state that a list shows; empty: nothing does.
func undoAction(s failures.State) string {
	switch s {
	case failures.Open:
		return "reopen"
	case failures.Resolved:
		return "resolve"
	}

	return ""
}

// groupReplay says what a button does with a group, and why it may not.
func groupReplay(f templates.Frame, g failures.Group, kind string) (denied string) {
	switch denied = f.Denied(access.Operate, kind); {
	case denied != "" || g.Dead > 0:
		return denied
	case g.Refused > 0:
		return "The dead letters of this group were refused. Act on them in the list of its refused jobs."
	}

	return "No job of this group is dead."
}

// patienceText says how long a group is ignored, as the end of a sentence.
func patienceText(p failures.Patience, now time.Time) string {
	var ends []string
	if !p.Until.IsZero() {
		ends = append(ends, format.Clock(p.Until, now))
	}

	if p.Count > 0 {
		ends = append(ends, format.Counted(p.Count, "failure", "failures")+" in all")
	}

	if p.Rate > 0 {
		ends = append(ends, format.Counted(p.Rate, "failure", "failures")+" within an hour")
	}

	if len(ends) == 0 {
		return " until reopened"
	}

	return " until " + strings.Join(ends, " or ")
}

// sorted is the same list in another order.
func sorted(f failures.Filter, by failures.Sort) templ.SafeURL {
	f.Sort = by
	return link.Failures(f, "")
}
