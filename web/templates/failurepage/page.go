package failurepage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// hourBar is one hour of the chart of a group: its two parts, and its name on
// the axis if it has one.
type hourBar struct {
	title                   string
	x, middle               string
	finalY, final           string // what ended a run
	requeuedY, requeued     string // what was tried again
	hasFinal, hasRequeued   bool
	label                   string
	hour, finals, requeueds string // for the table
}

// hourLine is a line of the grid.
type hourLine struct{ y, textY, word string }

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
		again := h.Failures - h.Final
		final, requeued := height(h.Final, scale), height(again, scale)
		x := float64(i) * step
		bars[i] = hourBar{
			title: fmt.Sprintf("%s: %s final, %s requeued", h.At.Format("15:04"), format.Number(h.Final), format.Number(again)),
			x:     format.Percent(x + step*0.15), middle: format.Percent(x + step/2),
			finalY: format.Tenth(chartBase - final), final: format.Tenth(final), hasFinal: h.Final > 0,
			requeuedY: format.Tenth(chartBase - final - requeued), requeued: format.Tenth(requeued), hasRequeued: again > 0,
			hour: h.At.Format("2 Jan 15:04"), finals: format.Number(h.Final), requeueds: format.Number(again),
		}
		if h.At.Hour()%4 == 0 && i > 0 && i < len(hours)-1 {
			bars[i].label = h.At.Format("15:04")
		}
	}
	return bars
}

// barWidth is the width of each hour's bar.
func barWidth(hours []failures.Hour) string { return format.Percent(70 / float64(max(1, len(hours)))) }

// height is that of a part of a bar: what happened can be seen.
func height(n int64, scale float64) float64 {
	if n == 0 {
		return 0
	}
	return max(1, float64(n)*scale)
}

func mostIn(hours []failures.Hour) int64 {
	most := int64(1)
	for _, h := range hours {
		most = max(most, h.Failures)
	}
	return most
}

// hourLines are two lines at round counts.
func hourLines(hours []failures.Hour) []hourLine {
	most := mostIn(hours)
	step := int64(1)
	for _, s := range []int64{1, 2, 5} {
		for n := s; n <= most; n *= 10 {
			if n*2 <= most {
				step = max(step, n)
			}
		}
	}
	var lines []hourLine
	for n := step; n <= most && len(lines) < 3; n += step {
		y := chartBase - (chartBase-chartTop)*float64(n)/float64(most)
		lines = append(lines, hourLine{format.Tenth(y), format.Tenth(y - 4), format.Number(n)})
	}
	return lines
}

// finals and requeues add up the hours.
func finals(hours []failures.Hour) (n int64) {
	for _, h := range hours {
		n += h.Final
	}
	return n
}

func requeues(hours []failures.Hour) (n int64) {
	for _, h := range hours {
		n += h.Failures - h.Final
	}
	return n
}

// chartSentence is the figure in words.
func chartSentence(hours []failures.Hour) string {
	most := mostIn(hours)
	for _, h := range hours {
		if h.Failures == most {
			return fmt.Sprintf("Failures by hour over 24 hours: %s, most of them (%s) in the hour of %s UTC",
				format.Number(finals(hours)+requeues(hours)), format.Number(most), h.At.Format("15:04"))
		}
	}
	return "Failures by hour over 24 hours: none"
}

// traceText is a piece of a trace.
type traceText struct {
	kind traceKind
	text string
}

type traceKind int

const (
	tracePlain traceKind = iota
	traceHead            // its first line, which says what happened
	traceFrame           // one of the functions by which the group is known
)

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
		kind := tracePlain
		named := func(frame string) bool { return strings.Contains(line, format.Visible(frame)) }
		if slices.ContainsFunc(d.Frames, named) {
			kind = traceFrame
		} else if len(all) == 0 {
			kind = traceHead
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

// whyMessage says what the messages of a group share.
func whyMessage(g failures.Group) string {
	if g.Fingerprint == failures.OtherGroup {
		return fmt.Sprintf("nothing: whatever is new after %s groups falls into this one", format.Number(failures.MaxGroups))
	}
	if len(g.Replaced()) == 0 {
		return fmt.Sprintf("the same in all %s", format.Number(g.Failures))
	}
	return fmt.Sprintf("after normalising, the same in all %s", format.Number(g.Failures))
}

// maxGroupJobs is how many jobs the page of a group lists; more of them are read
// for its payload keys.
const maxGroupJobs = 8

func (v View) newest() []job.Job { return v.Jobs[:min(maxGroupJobs, len(v.Jobs))] }

// jobsShown says how many of the group's jobs the page lists.
func jobsShown(v View) string {
	return fmt.Sprintf("%d newest of %s", len(v.newest()), format.Number(v.Group.Jobs()))
}

// groupBulk is the bar of the jobs of a group: several of those shown, or all
// that are dead for it.
func groupBulk(v View) templates.Selection {
	here := link.Failure(v.Fingerprint)
	return templates.Selection{
		Frame: v.Frame, Filter: filter.Filter{Status: job.StatusDeadLetter, Group: v.Fingerprint}, Known: v.Dead, Noun: "dead",
		List: here, Back: here, Kinds: []string{"discard", "replay"},
	}
}

// allDead is the word of a button that acts on every dead job of the group.
func allDead(verb string, g failures.Group) string {
	if g.Dead <= 1 {
		return verb + "…"
	}
	return verb + " all " + format.Number(g.Dead) + " dead…"
}

// valueShown is a value of a payload on one line.
func valueShown(v string) string { return format.Visible(clip.Text(v, 60)) }

func keyShare(k PayloadKey, read int) string {
	return fmt.Sprintf("%d %%", 100*k.Jobs/max(1, read))
}

// opWords says what an operation has come to.
func opWords(o operation.Operation) string {
	words := fmt.Sprintf("%s %s: %s of %s", o.Kind, o.State, format.Number(o.Done), format.Number(o.Total))
	if o.Kind == operation.Replay && o.Done > 0 {
		words += fmt.Sprintf(", %s succeeded, %s failed again", format.Number(o.Succeeded), format.Number(o.Relapsed))
	}
	return words
}

// ignoreChoice is one time for which a group can be ignored.
type ignoreChoice struct{ value, word string }

func ignoreChoices() []ignoreChoice {
	return []ignoreChoice{
		{"PT1H", "1 hour"}, {"PT4H", "4 hours"}, {"P1D", "1 day"}, {"P7D", "7 days"}, {"P30D", "30 days"},
	}
}

// seenText is when something was seen, by the clock and from now.
func seenText(t, now time.Time) string { return ", " + format.Relative(t, now) }

// replaysLong is the success rate of replays, in words.
func replaysLong(g failures.Group) string {
	if g.Replayed == 0 {
		return "never"
	}
	return replaysText(g) + " succeeded"
}
