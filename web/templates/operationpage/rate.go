package operationpage

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"redrive/internal/audit"
	"redrive/internal/operation"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// rateColumns is how many bars the chart of an operation under way has place for.
const rateColumns = 60

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

// rateBars are the bars of an operation. One that goes on has place for those
// to come, so that the scripts only give them their heights.
func rateBars(v View) (all []templates.Rect) {
	r := v.Progress.Rate
	columns := len(r.Done)
	if v.Operation.Open() {
		columns = max(rateColumns, columns)
	}
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

func rateTitle(v View, i int) string {
	r := v.Progress.Rate
	from := r.From.Add(time.Duration(i) * r.Step)
	return fmt.Sprintf("%s: %s, %s", format.Clock(from, v.Now), format.Counted(r.Done[i], "job", "jobs"), rateWords(r.PerSecond(i)))
}

// rateSentence is the chart in words.
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

// ratePeak names the line at the top of the chart.
func ratePeak(r operation.Rate) string {
	if top := rateTop(r); top > 0 {
		return format.Decimal(top, 1) + " /s"
	}
	return ""
}

// rateEnd is the right end of the chart.
func rateEnd(v View) string {
	r := v.Progress.Rate
	steps := len(r.Done)
	if v.Operation.Open() {
		steps = max(rateColumns, steps)
	}
	return format.Clock(r.From.Add(time.Duration(steps)*r.Step), v.Now)
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

// guardNow says what the guard sees.
func guardNow(p operation.Progress) string {
	return fmt.Sprintf("Now %d of %d.", p.Same, p.Ended)
}

// canaryLook is how the canary fared.
func canaryLook(c operation.Canary) templates.Look {
	of := strconv.FormatInt(c.Succeeded, 10) + " of " + strconv.FormatInt(c.Done, 10)
	switch {
	case c.Unsettled() > 0:
		return templates.Look{Class: "is-active auto", Icon: "active", Word: of}
	case c.Succeeded == c.Done:
		return templates.Look{Class: "is-succeeded auto", Icon: "succeeded", Word: of}
	}
	return templates.Look{Class: "is-failed auto", Icon: "failed", Word: of}
}

func canaryParts(c operation.Canary) []templates.MeterPart {
	return []templates.MeterPart{
		{Name: "canary_succeeded", Class: "is-succeeded", Word: "succeeded", N: c.Succeeded},
		{Name: "canary_relapsed", Class: "is-failed", Word: "failed again", N: c.Relapsed},
		{Name: "canary_unsettled", Class: "", Word: "pending", N: c.Unsettled()},
	}
}

// canaryWords says what to make of the canary.
func canaryWords(c operation.Canary) string {
	switch {
	case c.Unsettled() > 0:
		return "Wait for those that have not ended before you let the rest run."
	case c.Succeeded == c.Done:
		return "All of them succeeded: the rest can be expected to."
	case c.Succeeded == 0:
		return "None of them succeeded: the fault is still there."
	}
	return "Look at those that failed again before you let the rest run."
}

// release is who let the rest run after the canary, newest first in the log.
func release(v View) (audit.Entry, bool) {
	i := slices.IndexFunc(v.Log, func(e audit.Entry) bool {
		return e.Action == "operation.resume" && !e.At.Before(v.Operation.CanaryAt)
	})
	if i < 0 {
		return audit.Entry{}, false
	}
	for j := i + 1; j < len(v.Log); j++ {
		if e := v.Log[j]; e.Action == "operation.resume" && !e.At.Before(v.Operation.CanaryAt) {
			i = j
		}
	}
	return v.Log[i], true
}
