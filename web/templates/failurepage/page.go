package failurepage

import (
	"fmt"
	"slices"
	"strings"

	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// hourBar is one hour of the chart of a group: what ended a run below, what was
// tried again above it, and its name on the axis if it has one.
type hourBar struct {
	failures.Hour
	title, middle, label string
	parts                []templates.Rect
}

// again is how many failures were tried again.
func (b hourBar) again() int64 { return b.Failures - b.Final }

// The heights of the chart, in pixels.
const (
	chartTop  = 8.0
	chartBase = 108.0
)

// hourBars draws the failures of a group by the hour.
func hourBars(hours []failures.Hour) []hourBar {
	scale := (chartBase - chartTop) / float64(mostIn(hours))

	step := 100 / float64(max(1, len(hours)))
	bars := make([]hourBar, len(hours))
	for i, h := range hours {
		x, y := float64(i)*step, chartBase
		b := hourBar{Hour: h, middle: format.Percent(x + step/2)}
		b.title = fmt.Sprintf("%s: %s final, %s requeued", h.At.Format("15:04"), format.Number(h.Final), format.Number(b.again()))
		part := func(class string, n int64) {
			if n > 0 {
				height := max(1, float64(n)*scale) // what happened can be seen
				y -= height
				b.parts = append(b.parts, templates.Rect{
					Class: class, X: format.Percent(x + step*0.15), Width: format.Percent(0.7 * step), Y: format.Tenth(y), Height: format.Tenth(height),
				})
			}
		}
		part("fill is-dead", h.Final)
		part("fill is-retryable", b.again())

		if h.At.Hour()%4 == 0 && i > 0 && i < len(hours)-1 {
			b.label = h.At.Format("15:04")
		}

		bars[i] = b
	}

	return bars
}

// mostIn is the count that fills the height of the chart.
func mostIn(hours []failures.Hour) int64 {
	most := int64(1)
	for _, h := range hours {
		most = max(most, h.Failures)
	}

	return most
}

// hourLines are two lines at round counts.
func hourLines(hours []failures.Hour) []templates.Mark {
	most := mostIn(hours)
	step := int64(1)
	for _, s := range []int64{1, 2, 5} {
		for n := s; n <= most; n *= 10 {
			if n*2 <= most {
				step = max(step, n)
			}
		}
	}

	var lines []templates.Mark
	for n := step; n <= most && len(lines) < 3; n += step {
		y := chartBase - (chartBase-chartTop)*float64(n)/float64(most)
		lines = append(lines, templates.Mark{Y: format.Tenth(y), TextY: format.Tenth(y - 4), Word: format.Number(n)})
	}

	return lines
}

// total adds up the hours.
func total(hours []failures.Hour) (all, final int64) {
	for _, h := range hours {
		all, final = all+h.Failures, final+h.Final
	}
	return all, final
}

// chartSentence is the figure in words.
func chartSentence(hours []failures.Hour) string {
	most := mostIn(hours)
	for _, h := range hours {
		if h.Failures == most {
			all, _ := total(hours)
			return fmt.Sprintf("Failures by hour over 24 hours: %s, most of them (%s) in the hour of %s UTC",
				format.Number(all), format.Number(most), h.At.Format("15:04"))
		}
	}

	return "Failures by hour over 24 hours: none"
}

// traceText is a piece of a trace: its "head", which says what happened, one of
// the functions by which the group is known, a "frame", or any other.
type traceText struct{ kind, text string }

// maxTraceShown is how much of a trace the page of a group has; the job has all.
const maxTraceShown = 4 << 10

// traceLines is the trace of the sample, or its message where it has none.
func traceLines(d failures.Detail) []traceText {
	trace := d.Sample.Attempt.Trace
	if trace == "" {
		trace = sampleMessage(d)
	}

	var all []traceText
	for line := range strings.Lines(format.VisibleLines(clip.Text(strings.TrimRight(trace, "\n"), maxTraceShown))) {
		kind := ""
		named := func(frame string) bool { return strings.Contains(line, format.Visible(frame)) }
		if slices.ContainsFunc(d.Frames, named) {
			kind = "frame"
		} else if len(all) == 0 {
			kind = "head"
		}

		all = append(all, traceText{kind, line})
	}

	return all
}

// sampleMessage is the message of the sample as it is, where it differs from the
// normalised one.
func sampleMessage(d failures.Detail) string {
	message := d.Sample.Attempt.Error.Message
	if message == "" {
		message = d.Sample.Job.Error.Message
	}

	return message
}

// maxGroupJobs is how many jobs the page of a group lists; more of them are read
// for its payload keys.
const maxGroupJobs = 8

// newest are the jobs that the page lists.
func (v View) newest() []job.Job { return v.Jobs[:min(maxGroupJobs, len(v.Jobs))] }

// groupSelection is the bar of the jobs of a group: several of those shown, or all
// that are dead for it.
func groupSelection(v View) templates.Selection {
	here := link.Failure(v.Fingerprint)

	return templates.Selection{
		Frame: v.Frame, Filter: filter.Filter{Status: job.StatusDeadLetter, Group: v.Fingerprint}, Known: v.Dead, Noun: "dead",
		List: here, Back: here, Kinds: []string{"discard", "replay"},
	}
}

// opWords says what an operation has come to.
func opWords(o operation.Operation) string {
	words := fmt.Sprintf("%s, %s of %s %s",
		format.Visible(string(o.State)), format.Number(o.Done), format.Number(o.Total), templates.DoneWord(o.Kind))
	if o.Kind == operation.Replay && o.Done > 0 {
		words += fmt.Sprintf(", %s succeeded, %s failed again", format.Number(o.Succeeded), format.Number(o.Relapsed))
	}

	return words
}
