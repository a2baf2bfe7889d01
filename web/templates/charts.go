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

// Chart is what became of jobs over the last hour and the last day.
type Chart struct {
	Of   string // whose jobs these are: "queue payments"
	Hour []stats.Totals
	Day  []stats.Totals
	Slow bool // a series took too long to read
}

// plot is one series as it is drawn.
type plot struct {
	title  string
	label  string
	box    string // of the bars: each piece of time is one wide, each attempt one high
	first  time.Time
	step   string // seconds
	bars   []area
	rows   []plotRow
	ticks  []Mark
	grid   []Mark
	totals stats.Totals
}

// plotRow is a piece of time in which something happened.
type plotRow struct {
	at time.Time
	stats.Totals
}

// area is a part of a drawing in one colour.
type area struct{ class, path string }

// Rect is a rectangle of a drawing.
type Rect struct{ Class, X, Y, Width, Height, Title string }

// Mark is a word at a place of a drawing.
type Mark struct{ X, Y, TextY, Word string }

const (
	plotFloor  = 84.0 // where bars stand, of 104 pixels
	plotHeight = 76.0
)

// plotOf draws a series that ends now.
func plotOf(of string, all []stats.Totals, scale queues.Scale, now time.Time) plot {
	p := plot{title: "Last hour, per minute", first: scale.First(now), step: format.Coord(scale.Step.Seconds())}
	every := 10
	if scale == queues.LastDay() {
		p.title, every = "Last 24 h, per 15 min", 16
	}

	var most int64 = 1
	for _, t := range all {
		p.totals = p.totals.Add(t)
		most = max(most, Executions(t))
	}

	p.label = fmt.Sprintf("%s of %s: %s", p.title, format.Visible(of), plotWords(p.totals))
	top := ceiling(most)
	for _, share := range []float64{0.5, 1} {
		y := plotFloor - plotHeight*share
		p.grid = append(p.grid, Mark{Y: format.Coord(y), TextY: format.Coord(y - 3), Word: format.Number(int64(float64(top) * share))})
	}

	height := plotFloor / plotHeight * float64(top)
	p.box = fmt.Sprintf("-.4 %s %d %s", format.Coord(-height), len(all), format.Coord(height))

	p.bars = barsOf(all, int64(math.Ceil(float64(top)/plotHeight))) // a pixel
	step := 100 / float64(len(all))
	for i, t := range all {
		at := p.first.Add(time.Duration(i) * scale.Step)
		if i%every == 0 {
			p.ticks = append(p.ticks, Mark{X: format.Percent(step * float64(i)), Word: at.Format("15:04")})
		}

		if t != (stats.Totals{}) {
			p.rows = append(p.rows, plotRow{at, t})
		}
	}

	return p
}

// barsOf shows what became of the attempts of each piece of time: what failed permanently
// below, what was put back above it, what succeeded on top. All bars of a colour are one
// path of lines that stand on the floor, counted in attempts, and a later colour covers
// the lower part of the one before: there are many on a page, and that is the least text.
// No part is lower than least.
func barsOf(all []stats.Totals, least int64) []area {
	areas := []area{{class: "is-succeeded"}, {class: "is-retryable"}, {class: "is-dead"}}
	for i, t := range all {
		var height int64
		for on, n := range []int64{t.FailedPermanently, t.Requeued, t.Succeeded} {
			if n > 0 {
				height += max(least, n)
				areas[2-on].path += fmt.Sprintf("M%d 0v%d", i, height)
			}
		}
	}

	return areas
}

// ceiling is the next round number, even where it is halved.
func ceiling(n int64) int64 {
	for step := int64(1); ; step *= 10 {
		for _, m := range []int64{2, 4, 6, 10} {
			if n <= m*step {
				return m * step
			}
		}
	}
}

// plotWords is a piece of time in words.
func plotWords(t stats.Totals) string {
	words := format.Number(t.Succeeded) + " succeeded, " + format.Number(t.Requeued) + " requeued, " +
		format.Number(t.FailedPermanently) + " failed permanently"
	if t.Replayed > 0 {
		words += ", " + format.Number(t.Replayed) + " replayed"
	}

	return words
}

// sparkLine draws values as the points of a line in a box of 100 by 18, the
// oldest on the left. It is empty when there is nothing to draw.
func sparkLine(values []int64) string {
	if len(values) < 2 {
		return ""
	}

	const floor, ceiling = 17.0, 2.0

	most := most(values)
	points := make([]string, len(values))
	for i, v := range values {
		x, y := 100*float64(i)/float64(len(values)-1), floor-(floor-ceiling)*float64(max(v, 0))/float64(most)
		points[i] = format.Tenth(x) + "," + format.Tenth(y)
	}

	return strings.Join(points, " ")
}

// Sum adds one counter over time.
func Sum(values []int64) (total int64) {
	for _, v := range values {
		total += v
	}
	return total
}

// Series picks one counter out of totals over time.
func Series(totals []stats.Totals, pick func(stats.Totals) int64) []int64 {
	values := make([]int64, len(totals))
	for i, t := range totals {
		values[i] = pick(t)
	}

	return values
}

// barsPath draws the failures of a day as one path in a box of 96 by 18; an hour
// without any keeps a hairline, and one with few can be seen.
func barsPath(hours []int64) string {
	most := most(hours)
	var b strings.Builder
	for i, n := range hours {
		height := 0.5
		if n > 0 {
			height = max(1.5, 18*float64(n)/float64(most))
		}

		fmt.Fprintf(&b, "M%s %sh3V18h-3z", format.Tenth(float64(i)*96/float64(len(hours))), format.Tenth(18-height))
	}

	return b.String()
}

// dayText is the day of a group in words.
func dayText(hours []int64) string {
	return fmt.Sprintf("%s in the last 24 hours", format.Counted(Sum(hours), "failure", "failures"))
}

// Share is a count as a part of the largest one, for the bar of a facet.
func Share(count, largest int64) string {
	if largest <= 0 {
		return format.Percent(0)
	}
	return format.Percent(100 * float64(count) / float64(largest))
}

// most is the value that fills the height of a drawing.
func most(values []int64) int64 { return slices.Max(append([]int64{1}, values...)) }
