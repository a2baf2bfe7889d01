package templates

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"redrive/internal/queues"
	"redrive/internal/stats"
	"redrive/web/templates/format"
)

// Chart has the attempts of some jobs over time, by their outcome, for ChartPanel to draw.
// An element of Hour is the totals of one minute and an element of Day those of 15 minutes,
// the oldest first. A series without elements is not drawn.
type Chart struct {
	Of   string // the jobs, as the heading names them: "the queue payments"
	Hour []stats.Totals
	Day  []stats.Totals
	Slow bool // they took too long to read, so that both series are missing
}

// plot is a time series in the form in which plotFigure draws it. The series is divided into
// slots of equal length: a slot is one minute or 15 minutes long, and has one bar.
type plot struct {
	title  string
	label  string    // the title and the totals, for screen readers
	box    string    // the viewBox of the bars, in which a slot is 1 wide and an attempt 1 high
	first  time.Time // when the first slot begins
	step   string    // the length of a slot in seconds
	bars   []area
	rows   []plotRow // the slots that are not empty, for the table
	ticks  []Mark    // the times below the bars
	grid   []Mark    // the horizontal lines, with their numbers of attempts
	totals stats.Totals
}

// plotRow is a slot in which something happened.
type plotRow struct {
	at time.Time
	stats.Totals
}

// area is an SVG path and the CSS class that gives it its colour.
type area struct{ class, path string }

// Rect is a rectangle in a drawing, with its coordinates as SVG attributes have them.
type Rect struct{ Class, X, Y, Width, Height, Title string }

// Mark is a word at a position of an axis: the line that it labels is at X or at Y, and
// TextY is the baseline of the word itself.
type Mark struct{ X, Y, TextY, Word string }

// The drawing of a plot is 104 pixels high. The times are below the floor.
const (
	plotFloor  = 84.0 // where the bars begin, in pixels from the top
	plotHeight = 76.0 // of the highest bar, in pixels
)

// plotOf lays out a series whose last slot contains now. The title names the jobs as of.
func plotOf(of string, series []stats.Totals, scale queues.Scale, now time.Time) plot {
	p := plot{title: "Last hour, per minute", first: scale.First(now), step: format.Coord(scale.Step.Seconds())}
	slotsPerTick := 10
	if scale == queues.LastDay() {
		p.title = "Last 24 h, per 15 min"
		slotsPerTick = 16
	}

	// Sum up the series, and find its largest slot.
	var largest int64 = 1
	for _, t := range series {
		p.totals = p.totals.Add(t)
		largest = max(largest, Executions(t))
	}

	p.label = fmt.Sprintf("%s of %s: %s", p.title, format.Visible(of), plotWords(p.totals))

	// Draw a grid line at the round number above the largest slot, and one at half of it.
	top := roundUp(largest)
	for _, share := range []float64{0.5, 1} {
		y := plotFloor - plotHeight*share
		p.grid = append(p.grid, Mark{Y: format.Coord(y), TextY: format.Coord(y - 3), Word: format.Number(int64(float64(top) * share))})
	}

	// The bars have a coordinate system of their own, whose height is the whole space above
	// the floor. It is turned upside down, so that bars grow from 0.
	height := plotFloor / plotHeight * float64(top)
	p.box = fmt.Sprintf("-.4 %s %d %s", format.Coord(-height), len(series), format.Coord(height))

	attemptsPerPixel := int64(math.Ceil(float64(top) / plotHeight))
	p.bars = barsOf(series, attemptsPerPixel)

	// Write times below the bars, and what is not empty into the table.
	slotWidth := 100 / float64(len(series))
	for i, t := range series {
		at := p.first.Add(time.Duration(i) * scale.Step)
		if i%slotsPerTick == 0 {
			p.ticks = append(p.ticks, Mark{X: format.Percent(slotWidth * float64(i)), Word: at.Format("15:04")})
		}

		if t != (stats.Totals{}) {
			p.rows = append(p.rows, plotRow{at, t})
		}
	}

	return p
}

// barsOf draws the attempts of each slot as a bar of three parts: those that failed
// permanently at the bottom, then those that were requeued, and those that succeeded on top.
// No part is lower than minHeight, in attempts, so that a single failure can be seen.
//
// Each colour is one path, with a vertical line from the floor for each slot. A line reaches
// to the top of its part, and the colours that follow cover what is below its part. A page
// has many bars, and this is the shortest text that draws them.
func barsOf(series []stats.Totals, minHeight int64) []area {
	areas := []area{{class: "is-succeeded"}, {class: "is-retryable"}, {class: "is-dead"}}
	for i, t := range series {
		var height int64
		for part, attempts := range []int64{t.FailedPermanently, t.Requeued, t.Succeeded} {
			if attempts > 0 {
				height += max(minHeight, attempts)
				areas[2-part].path += fmt.Sprintf("M%d 0v%d", i, height)
			}
		}
	}

	return areas
}

// roundUp returns the smallest of 2, 4, 6, 10, 20, 40, 60, 100, ... that is not less than n.
// Half of it is a whole number, for the grid line in the middle.
func roundUp(n int64) int64 {
	for power := int64(1); ; power *= 10 {
		for _, digit := range []int64{2, 4, 6, 10} {
			if n <= digit*power {
				return digit * power
			}
		}
	}
}

// plotWords says in words how the attempts of t ended.
func plotWords(t stats.Totals) string {
	words := format.Number(t.Succeeded) + " succeeded, " + format.Number(t.Requeued) + " requeued, " +
		format.Number(t.FailedPermanently) + " failed permanently"
	if t.Replayed > 0 {
		words += ", " + format.Number(t.Replayed) + " replayed"
	}

	return words
}

// sparkLine returns the points of an SVG polyline through the values, in a box of 100 by
// 18, with the oldest value on the left. It returns "" for fewer than two values.
func sparkLine(values []int64) string {
	if len(values) < 2 {
		return ""
	}

	const floor, ceiling = 17.0, 2.0

	largest := largestOf(values)
	points := make([]string, len(values))
	for i, v := range values {
		x := 100 * float64(i) / float64(len(values)-1)
		y := floor - (floor-ceiling)*float64(max(v, 0))/float64(largest)
		points[i] = format.Tenth(x) + "," + format.Tenth(y)
	}

	return strings.Join(points, " ")
}

// Sum returns the sum of the values.
func Sum(values []int64) (total int64) {
	for _, v := range values {
		total += v
	}
	return total
}

// Series returns what pick returns for each of the totals, in the same order: a single
// counter over time.
func Series(totals []stats.Totals, pick func(stats.Totals) int64) []int64 {
	values := make([]int64, len(totals))
	for i, t := range totals {
		values[i] = pick(t)
	}

	return values
}

// barsPath returns an SVG path with a bar for each hour, as high as its number of failures,
// in a box of 96 by 18. An hour without failures has a bar of half a pixel, and an hour with
// few has one that can be told from that.
func barsPath(hours []int64) string {
	largest := largestOf(hours)
	var b strings.Builder
	for i, n := range hours {
		height := 0.5
		if n > 0 {
			height = max(1.5, 18*float64(n)/float64(largest))
		}

		fmt.Fprintf(&b, "M%s %sh3V18h-3z", format.Tenth(float64(i)*96/float64(len(hours))), format.Tenth(18-height))
	}

	return b.String()
}

// dayText says how many failures the hours of a day have together.
func dayText(hours []int64) string {
	return fmt.Sprintf("%s in the last 24 hours", format.Counted(Sum(hours), "failure", "failures"))
}

// Share returns count as a percentage of the largest count, for the width of the bar of a
// facet. It is 0% if nothing was counted.
func Share(count, largest int64) string {
	if largest <= 0 {
		return format.Percent(0)
	}
	return format.Percent(100 * float64(count) / float64(largest))
}

// largestOf returns the value that fills the height of a drawing: the largest one, and at
// least 1, so that it can be divided by.
func largestOf(values []int64) int64 { return slices.Max(append([]int64{1}, values...)) }
