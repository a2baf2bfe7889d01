package operationpage

import (
	"fmt"
	"strconv"
	"time"

	"redrive/internal/audit"
	"redrive/internal/operation"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// minColumns is how many bars the chart of an operation under way has room for.
const minColumns = 60

// rateColumns is how many bars the chart has. That of an operation under way has
// room for bars to come, so that those drawn keep their place.
func (v View) rateColumns() int {
	if v.Operation.Open() {
		return max(minColumns, len(v.Progress.Rate.Done))
	}
	return len(v.Progress.Rate.Done)
}

// rateTop is the highest rate of a step, jobs a second.
func rateTop(r operation.Rate) float64 {
	top := 0.0
	for i := range r.Done {
		top = max(top, r.PerSecond(i))
	}

	return top
}

// The bars rise from a line and reach up to the highest of them.
const (
	rateFloor = 84.0
	rateRoom  = 53.0
)

// rateBars are the bars of an operation.
func rateBars(v View) (all []templates.Rect) {
	r, columns := v.Progress.Rate, v.rateColumns()
	top := rateTop(r)
	for i := range columns {
		height, title := 0.0, ""
		if i < len(r.Done) && top > 0 {
			height, title = rateRoom*r.PerSecond(i)/top, rateTitle(v, i)
		}

		all = append(all, templates.Rect{
			X: format.Percent(100 * float64(i) / float64(columns)), Width: format.Percent(75 / float64(columns)),
			Y: format.Coord(rateFloor - height), Height: format.Coord(height), Title: title,
		})
	}

	return all
}

// rateTitle is one bar in words.
func rateTitle(v View, i int) string {
	r := v.Progress.Rate
	from := r.From.Add(time.Duration(i) * r.Step)
	return fmt.Sprintf("%s: %s, %s", format.Clock(from, v.Now), format.Counted(r.Done[i], "job", "jobs"), rateWords(r.PerSecond(i)))
}

// rateSentence is the chart in words, for readers who do not see it.
func rateSentence(v View) string {
	r := v.Progress.Rate
	var all int64
	for _, n := range r.Done {
		all += n
	}

	if all == 0 {
		return "Nothing is " + templates.DoneWord(v.Operation.Kind) + " yet"
	}

	return fmt.Sprintf("%s %s in %s, at most %s", format.Counted(all, "job", "jobs"), templates.DoneWord(v.Operation.Kind),
		format.About(time.Duration(len(r.Done))*r.Step), rateWords(rateTop(r)))
}

// rateEnd is the right end of the chart.
func rateEnd(v View) string {
	r := v.Progress.Rate
	return format.Clock(r.From.Add(time.Duration(v.rateColumns())*r.Step), v.Now)
}

// rateRows are the steps in which something was done.
func rateRows(r operation.Rate) (all []int) {
	for i, n := range r.Done {
		if n > 0 {
			all = append(all, i)
		}
	}

	return all
}

// canaryStyle is how the canary fared: how many succeeded, of how many.
func canaryStyle(c operation.Canary) templates.Style {
	of := strconv.FormatInt(c.Succeeded, 10) + " of " + strconv.FormatInt(c.Done, 10)
	switch {
	case c.Relapsed+c.Dropped == 0 && c.SourceRuns.Returned > 0 && c.SourceRuns.Returned == c.Unsettled():
		of = strconv.FormatInt(c.SourceRuns.Returned, 10) + " of " + strconv.FormatInt(c.Done, 10) + " not back"
		return templates.Style{Class: "is-pending auto", Icon: "unknown", Word: of}
	case c.Unsettled() == 0 && c.Relapsed+c.Dropped == 0 && c.Unknown > 0:
		of = strconv.FormatInt(c.Unknown, 10) + " of " + strconv.FormatInt(c.Done, 10) + " unknown"
		return templates.Style{Class: "is-warn auto", Icon: "unknown", Word: of}
	case c.Unsettled() > 0:
		return templates.Style{Class: "is-active auto", Icon: "active", Word: of}
	case c.Succeeded == c.Done:
		return templates.Style{Class: "is-succeeded auto", Icon: "succeeded", Word: of}
	}

	return templates.Style{Class: "is-failed auto", Icon: "failed", Word: of}
}

// canaryParts are how the jobs that went first ended.
func canaryParts(c operation.Canary) []templates.MeterPart {
	h := c.SourceRuns
	parts := []templates.MeterPart{
		{Name: "canary_succeeded", Class: "is-succeeded", Word: "succeeded", N: c.Succeeded},
		{Name: "canary_relapsed", Class: "is-failed", Word: "failed again", N: c.Relapsed},
	}
	add := func(name, class, word string, n int64) {
		if n > 0 {
			parts = append(parts, templates.MeterPart{Name: name, Class: class, Word: word, N: n})
		}
	}
	add("canary_unknown", "is-warn", "unknown", c.Unknown)
	add("canary_returned", "is-pending", "not back", h.Returned)
	add("canary_at_source", "is-accent", "at "+sourceWord(h), h.AtSource-h.Returned)

	if rest := c.Unsettled() - h.AtSource; rest > 0 || h.AtSource+c.Unknown == 0 {
		parts = append(parts, templates.MeterPart{Name: "canary_unsettled", Word: "pending", N: rest})
	}

	return parts
}

// released is the entry of the log, whose newest entries come first, with which a
// person let the rest run after the canary: the oldest since the canary ended.
func (v View) released() (first audit.Entry, ok bool) {
	for _, e := range v.Log {
		if e.Action == "operation.resume" && !e.At.Before(v.Operation.CanaryAt) {
			first, ok = e, true
		}
	}

	return first, ok
}

// rateChoice is a rate that a preview offers, and when it would end.
type rateChoice struct {
	value string
	word  string
	left  time.Duration // 0: unknown
}

// rateChoices are the rates of the form, the first without a bound.
func rateChoices(pending int64) []rateChoice {
	all := []rateChoice{{"0", "no limit", 0}}
	for _, rate := range []int64{1, 5, 20, 100} {
		all = append(all, rateChoice{
			strconv.FormatInt(rate, 10), rateWords(float64(rate)), time.Duration(pending) * time.Second / time.Duration(rate),
		})
	}

	return all
}

// usualRate is what is chosen before a person chooses: small scopes at once,
// large ones at 20 a second.
func usualRate(pending int64) string {
	if pending > operation.CanaryAbove {
		return "20"
	}
	return "0"
}
