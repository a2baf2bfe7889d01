// Package operationpage draws operations on many jobs: their list, /operations,
// and the page of one, /operations/{id}. That page is a preview until a user
// starts the operation; then it has the meters, the rate, the canary, the log
// and the items with what became of each.
//
// The page is redrawn whenever something has happened, and each second while the
// operation works: all that it says is of one moment. Only the items stay.
package operationpage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// List is the page /operations.
type List struct {
	templates.Frame
	List  operation.List
	After int64
}

// View is the page /operations/{id}.
type View struct {
	templates.Frame
	Operation operation.Operation
	Filter    filter.Filter // that made the scope; zero when the jobs were named
	Breakdown operation.Breakdown
	Items     operation.ItemList
	Progress  operation.Progress
	Show      string // which items, as the address says it
	After     int64
	Log       []audit.Entry  // newest first
	Indexing  bool           // a scope found by its text has to wait: the index is rebuilt
	Origin    *source.Health // that has replayed jobs of it; nil: several have, or it is not attached
	Lag       int            // failures that such a scope cannot have, because they cannot be searched yet

	UnknownType retry.Unknown // what becomes of jobs that no handler can run
}

// asOf is when the scope was frozen: when the page was drawn on which it was chosen,
// or when the operation was requested.
func (v View) asOf() time.Time {
	if drawnAt(v.Filter.To) {
		return v.Filter.To
	}
	return v.Operation.Until
}

// drawnAt reports whether the end of a filter is the time of a page, which its list adds
// so that later failures are left out: people write whole seconds.
func drawnAt(to time.Time) bool { return to.Nanosecond() != 0 }

// scopeWords says what made the scope; until when is said by asOf.
func scopeWords(o operation.Operation, f filter.Filter) string {
	// The time of the page is no part of what the person asked for.
	if drawnAt(f.To) {
		f.To = time.Time{}
	}

	switch {
	case o.Source != 0:
		return fmt.Sprintf("jobs that failed again after operation %d", o.Source)
	case o.Filter == "":
		return "selected jobs"
	case o.Cause != "":
		return strings.Replace(format.Visible(f.Words()), "error group "+f.Group, format.Visible(o.Cause), 1)
	}

	return format.Visible(f.Words())
}

// rateWords says a rate in the unit in which it is a number that people say.
func rateWords(rate float64) string {
	switch {
	case rate >= 1:
		return format.Decimal(rate, 1) + " per second"
	case rate*60 >= 1:
		return format.Decimal(rate*60, 1) + " per minute"
	}

	return format.Decimal(rate*3600, 1) + " per hour"
}

// outcomeParts are how the replays of an operation ended, and what sources have of them.
func outcomeParts(o operation.Operation, h operation.SourceRuns) []templates.MeterPart {
	all := []templates.MeterPart{
		{Name: "succeeded", Class: "is-succeeded", Word: "succeeded", N: o.Succeeded},
		{Name: "relapsed", Class: "is-failed", Word: "failed again", N: o.Relapsed},
		{Name: "dropped", Class: "is-skipped", Word: "stopped manually", N: o.Dropped},
		{Name: "unknown", Class: "is-warn", Word: "unknown", N: o.Unknown},
		{Name: "returned", Class: "is-pending", Word: "not back", N: h.Returned},
		{Name: "at_source", Class: "is-accent", Word: "at " + sourceWord(h), N: h.AtSource - h.Returned},
		{Name: "unsettled", Class: "", Word: "pending", N: max(0, o.Unsettled()-h.AtSource)},
	}

	// Few operations have these three, so they are shown only where they have jobs.
	return slices.DeleteFunc(all, func(p templates.MeterPart) bool {
		return p.N == 0 && slices.Contains([]string{"unknown", "returned", "at_source"}, p.Name)
	})
}

// itemTabs are the choices of items.
func itemTabs(o operation.Operation) []templates.MeterPart {
	tab := func(show, word string, n int64) templates.MeterPart {
		return templates.MeterPart{Name: show, Word: word, N: n}
	}

	all, pending := tab("", "all", o.Total), tab("pending", templates.RestWord(o), o.Pending)
	skipped, failed := tab("skipped", "skipped", o.Skipped), tab("failed", "failed", o.Failed)
	if o.Kind != operation.Replay {
		return []templates.MeterPart{all, skipped, failed, pending, tab("done", templates.DoneWord(o.Kind), o.Done)}
	}

	tabs := []templates.MeterPart{
		all, tab("relapsed", "failed again", o.Relapsed), skipped, failed, pending,
		tab("unsettled", "pending", o.Unsettled()), tab("succeeded", "succeeded", o.Succeeded),
	}
	if o.Dropped > 0 {
		tabs = append(tabs, tab("dropped", "stopped manually", o.Dropped))
	}

	if o.Unknown > 0 {
		tabs = append(tabs, tab("unknown", "unknown", o.Unknown))
	}

	return tabs
}

// room is the room that a number of items is short of that of all: without it, a number
// that gains a digit moves those beside it.
func room(o operation.Operation, n int64) string {
	const digit = "\u2007" // a space as wide as a digit
	return strings.Repeat(digit, max(0, len(format.Number(o.Total))-len(format.Number(n))))
}

// styleOfItem draws what became of an item.
func styleOfItem(o operation.Operation, it operation.Item, now time.Time) templates.Style {
	style := func(class, icon, word string) templates.Style {
		return templates.Style{Class: class, Icon: icon, Word: word}
	}
	switch {
	// An operation that has ended leaves the rest of its items as they are.
	case it.State == operation.ItemPending && !o.Open():
		return style("is-skipped", "cancelled", templates.RestWord(o))
	case movedOn(it):
		return style("is-skipped", "cancelled", "will skip")
	case it.State == operation.ItemPending:
		return style("is-pending", "pending", templates.RestWord(o))
	case it.State == operation.ItemSkipped:
		return style("is-skipped", "cancelled", "skipped")
	case it.State == operation.ItemFailed:
		return style("is-failed", "dlq-failed", "failed")
	// The item was replayed, and the run of the replay has ended so.
	case it.Outcome == operation.RunSucceeded:
		return style("is-succeeded", "succeeded", "succeeded")
	case it.Outcome == operation.RunRelapsed:
		return style("is-failed", "failed", "failed again")
	case it.Outcome == operation.RunDropped:
		return style("is-cancelled", "cancelled", "ended")
	case it.Outcome == operation.RunUnknown:
		return style("is-warn", "unknown", "unknown")
	// The run of the replay has not ended. Where a source has the job, the job tells more.
	case o.Kind == operation.Replay && it.Job.Run == it.Run+1 && source.AtSource(it.Job):
		return templates.StyleOfJob(it.Job, now)
	case o.Kind == operation.Replay:
		return style("is-available", "available", "pending")
	}

	return style("is-succeeded", "check", templates.DoneWord(o.Kind))
}

// movedOn reports whether an item will be skipped when its turn comes: its job is
// in another run than a person saw, and no one agreed to that run.
func movedOn(it operation.Item) bool {
	return it.State == operation.ItemPending && it.Job.ID != "" && it.Job.Run != it.Run
}

// itemTime is when the newest thing happened to an item.
func itemTime(it operation.Item) time.Time {
	if it.EndedAt.After(it.At) {
		return it.EndedAt
	}
	return it.At
}

// skipWords says why jobs are skipped, of several.
func skipWords(code operation.Skip) string {
	return cmp.Or(map[operation.Skip]string{
		operation.SkipGone:                "removed",
		operation.SkipReplayed:            "replayed already",
		operation.SkipNoRun:               "never had this run",
		operation.SkipRefused:             "not allowed at its source",
		operation.SkipCause:               "left out with their cause",
		operation.Skip(job.StatusTrashed): "in the trash",
	}[code], format.Visible(templates.StyleOf(job.Status(code)).Word))
}

// logWords says what a line of the audit log tells about an operation.
func logWords(e audit.Entry) string {
	return cmp.Or(map[string]string{
		"operation.new":     "requested by",
		"operation.preview": format.Counted(e.Count, "job", "jobs") + " selected by",
		"operation.start":   "started by",
		"operation.pause":   "paused by",
		"operation.resume":  "resumed by",
		"operation.rate":    "rate changed by",
		"operation.abort":   "aborted by",
		"operation.finish":  "finished, for",
	}[e.Action], format.Visible(e.Action)+" by")
}

// logMore is what else a line of the audit log tells: nothing that its words have said.
func logMore(e audit.Entry) string {
	told := slices.Contains([]string{"operation.start", "operation.rate", "operation.pause"}, e.Action)

	// After can end in "paused by ann", which the words have just said.
	if !told || strings.HasSuffix(e.After, logWords(e)+" "+audit.Name(e.Actor.Name)) {
		return ""
	}

	return e.After
}

// previewParts are the meter of a preview.
func previewParts(o operation.Operation) []templates.MeterPart {
	return []templates.MeterPart{
		{Name: "pending", Class: "is-accent", Word: "eligible", N: o.Pending},
		{Name: "skipped", Class: "is-skipped", Word: "skipped", N: o.Skipped},
	}
}

// listedScope says what made the scope, in a list.
func listedScope(o operation.Operation) string {
	switch {
	case o.Source != 0:
		return scopeWords(o, filter.Filter{})
	case o.Filter == "":
		return "selected jobs"
	}

	return format.Visible(o.Filter)
}

// widthUpTo is the class that keeps just enough room for a live count that reaches n.
func widthUpTo(n int64) string {
	return "ends ch-" + strconv.Itoa(min(max(3, len(format.Number(n))), 11))
}

// atSourceWords says of a job that its source has until when the source may report on it.
func atSourceWords(j job.Job, now time.Time) string {
	if source.Returned(j, now) {
		return "not back from " + j.Source
	}
	return "handed to " + j.Source
}

// itemWords says what happened to an item's job. What the operation itself wrote
// down comes first; the rest is told from the job as it is now.
func itemWords(o operation.Operation, it operation.Item, now time.Time) string {
	j, status := it.Job, templates.StyleOf(it.Job.Status()).Word
	switch {
	case it.Why != "":
		return format.Visible(it.Why)
	case j.ID == "":
		return "the job was removed"
	case it.State == operation.ItemPending && !o.Open():
		return fmt.Sprintf("left as it was; now run %d, %s", j.Run, status)
	case movedOn(it):
		return fmt.Sprintf("run %d was previewed; by now the job is in run %d, %s", it.Run, j.Run, status)
	case it.State == operation.ItemPending:
		return fmt.Sprintf("run %d, %s", j.Run, status)
	case o.Kind != operation.Replay:
		return fmt.Sprintf("run %d, now %s", it.Run, status)
	// A replay begins the run after the one that the item names: it.Run+1.
	case it.Outcome == operation.RunUnknown && source.InDoubt(j):
		return fmt.Sprintf("run %d: it is unknown whether %s took the replay", it.Run+1, j.Source)
	case it.Outcome == operation.RunUnknown:
		return fmt.Sprintf("run %d: it is unknown whether %s took the replay; the job is in run %d, %s", it.Run+1, j.Source, j.Run, status)
	case it.Outcome == "" && j.Run == it.Run+1 && source.AtSource(j):
		return fmt.Sprintf("run %d, %s", j.Run, atSourceWords(j, now))
	case j.Run > it.Run+1:
		return fmt.Sprintf("run %d ended; the job is in run %d", it.Run+1, j.Run)
	// A source may not say how often it attempted a job; then Attempts is zero.
	case it.Outcome == operation.RunRelapsed && j.Error.Type != "" && j.Source != "" && j.Attempts == 0:
		return fmt.Sprintf("run %d: %s", j.Run, format.Visible(j.Error.Type+" "+clip.Text(j.Error.Message, 200)))
	case it.Outcome == operation.RunRelapsed && j.Error.Type != "":
		return fmt.Sprintf("run %d, attempt %d: %s", j.Run, j.Attempts, format.Visible(j.Error.Type+" "+clip.Text(j.Error.Message, 200)))
	case it.Outcome == operation.RunSucceeded && j.Source != "":
		return fmt.Sprintf("run %d, as %s says", j.Run, j.Source)
	case it.Outcome == operation.RunSucceeded:
		return fmt.Sprintf("run %d, attempt %d", j.Run, j.Attempts)
	}

	return fmt.Sprintf("run %d, %s", j.Run, status)
}
