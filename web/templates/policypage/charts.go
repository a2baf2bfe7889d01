package policypage

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// curve is the drawing of a policy's delays: a place of 100 % by 208 px with
// the axis at 180.
type curve struct {
	label  string
	beyond string // where the retries begin that never happen, or empty
	rest   string // the width of that part
	lines  []curveLine
	band   string // points of the area of jitter, or empty
	trace  string // points of the delays
	points []curvePoint
}

// curveLine is a line of the grid, with the delay that it stands for.
type curveLine struct {
	y, textY, word string
	cap            bool
}

// curvePoint is one retry on the curve.
type curvePoint struct {
	x, y, textY   string
	number, delay string // what stands below and above it; either may be empty
	reached       bool
	beyond        bool // the scale: it has no dot
}

const (
	curveFloor, curveTop  = 180.0, 38.0 // y of no delay, and of the longest
	curveLeft, curveRight = 13.0, 96.5  // x of the first retry and the last, in percent
	curveAway             = -1000.0     // y where a delay is beyond the drawing, however long it is
	minPoints             = 4
	pointsBeyond          = 2
)

// curveOf draws the delays of the retries that a policy allows, and where the
// curve would go from there. The scale is that of the retries that are allowed: a
// delay that never comes may be above the drawing, which ends where the curve
// leaves it.
func curveOf(p retry.Policy) curve {
	reached := min(p.Limit()-1, maxRows)
	rows := p.Table(min(maxRows, max(minPoints, reached+pointsBeyond)))
	g := grid{longest: cmp.Or(longest(rows[:reached]), longest(rows)), points: len(rows)}

	drawn := rows[:g.leaves(rows)]
	c := curve{lines: g.lines(p.MaxInterval), trace: g.line(drawn, func(r retry.Row) time.Duration { return r.Capped })}
	if p.Jitter.On() {
		c.band = g.band(drawn)
	}

	for i, r := range rows {
		c.points = append(c.points, g.point(i, r, i < reached, reached))
	}

	if reached < len(rows) {
		x := (g.x(reached-1) + g.x(reached)) / 2
		c.beyond, c.rest = format.Percent(x), format.Percent(100-x)
	}

	c.label = curveLabel(p, rows[:reached])

	return c
}

// longest is the longest delay that any of the retries can have.
func longest(rows []retry.Row) (most time.Duration) {
	for _, r := range rows {
		most = max(most, r.Delay.High, r.Capped)
	}
	return most
}

// goesOn reports whether a curve is drawn beyond the last attempt.
func goesOn(p retry.Policy) bool { return p.Limit()-1 < maxRows }

// curveLabel is the curve in words: its first delays and the last one.
func curveLabel(p retry.Policy, rows []retry.Row) string {
	words := make([]string, 0, len(rows))
	for _, r := range rows[:min(len(rows), 6)] {
		words = append(words, format.Duration(r.Capped))
	}

	if len(rows) > 6 {
		words = append(words, "… "+format.Duration(rows[len(rows)-1].Capped))
	}

	return fmt.Sprintf("Delay by retry number: %s; the cap is %s. The table has all figures.",
		strings.Join(words, ", "), format.Duration(p.MaxInterval))
}

// grid places retries and delays.
type grid struct {
	longest time.Duration
	points  int
}

// x is the place of a retry, in percent of the width.
func (g grid) x(i int) float64 {
	return curveLeft + (curveRight-curveLeft)*float64(i)/float64(g.points-1)
}

// y is the height of a delay, in pixels from the top.
func (g grid) y(d time.Duration) float64 {
	return max(curveAway, curveFloor-(curveFloor-curveTop)*float64(d)/float64(g.longest))
}

// leaves is how many retries are drawn: up to the first whose delay is beyond the
// scale, to which the curve leads.
func (g grid) leaves(rows []retry.Row) int {
	for i, r := range rows {
		if r.Capped > g.longest {
			return i + 1
		}
	}

	return len(rows)
}

// at is a point of a line as SVG writes it.
func (g grid) at(i int, d time.Duration) string {
	return format.Coord(g.x(i)) + "," + format.Tenth(g.y(d))
}

// line goes through one delay of every row.
func (g grid) line(rows []retry.Row, pick func(retry.Row) time.Duration) string {
	points := make([]string, len(rows))
	for i, r := range rows {
		points[i] = g.at(i, pick(r))
	}

	return strings.Join(points, " ")
}

// band goes along the longest delays and back along the shortest.
func (g grid) band(rows []retry.Row) string {
	points := make([]string, 2*len(rows))
	for i, r := range rows {
		points[i], points[len(points)-1-i] = g.at(i, r.Delay.High), g.at(i, r.Delay.Low)
	}

	return strings.Join(points, " ")
}

// point draws one retry. Where many stand close, not each has words.
func (g grid) point(i int, r retry.Row, reached bool, count int) curvePoint {
	y := g.y(r.Capped)

	c := curvePoint{x: format.Percent(g.x(i)), y: format.Tenth(y), textY: format.Tenth(y - 9), reached: reached, beyond: r.Capped > g.longest}
	stride := (g.points + 9) / 10
	if i%stride == 0 {
		c.number = format.Number(r.Retry)
	}

	if reached && (i%stride == 0 || i == count-1 && stride == 1) {
		c.delay = roughly(r.Capped)
	}

	return c
}

// roughly is a delay in one unit, for the little space in a drawing: "40 s",
// "2.7 min", "18 h".
func roughly(d time.Duration) string {
	unit, name := format.Day, "d"
	switch {
	case d < 90*time.Second:
		return format.Duration(d)
	case d < 100*time.Minute:
		unit, name = time.Minute, "min"
	case d < 48*time.Hour:
		unit, name = time.Hour, "h"
	}

	x := float64(d) / float64(unit)
	if x < 10 {
		return format.Decimal(x, 1) + " " + name
	}

	return format.Number(int64(math.Round(x))) + " " + name
}

// lines are the grid, and the cap where the curve comes that far.
func (g grid) lines(limit time.Duration) []curveLine {
	var lines []curveLine
	at, step := time.Duration(0), stepOf(g.longest, 5)
	for at <= g.longest-step {
		at += step
		if at != limit && !(limit <= g.longest && g.y(at)-g.y(limit) < 14) {
			lines = append(lines, g.mark(at, format.Duration(at), false))
		}
	}

	if limit <= g.longest {
		lines = append(lines, g.mark(limit, format.Duration(limit)+", cap", true))
	}

	return lines
}

// mark is a line of the grid with its word, which is written a little above it.
func (g grid) mark(d time.Duration, word string, isCap bool) curveLine {
	y := g.y(d)
	return curveLine{y: format.Tenth(y), textY: format.Tenth(y - 4), word: word, cap: isCap}
}

// stepOf is the round duration that divides a length into at most so many.
func stepOf(length time.Duration, parts int) time.Duration {
	var steps []time.Duration
	for unit := time.Microsecond; unit < time.Second; unit *= 10 {
		steps = append(steps, unit, 2*unit, 5*unit)
	}

	for _, unit := range []time.Duration{time.Second, time.Minute} {
		steps = append(steps, unit, 2*unit, 5*unit, 10*unit, 15*unit, 30*unit)
	}

	steps = append(steps, time.Hour, 2*time.Hour, 3*time.Hour, 6*time.Hour, 12*time.Hour)
	for _, step := range steps {
		if length/step <= time.Duration(parts) {
			return step
		}
	}

	step := format.Day
	for length/step > time.Duration(parts) {
		step *= 2
	}

	return step
}

// load is one row of the simulation: a load over time.
type load struct {
	class, name, note string
	peak              string
	top               string // what the full height stands for
	bars              []templates.Rect
}

// loads draws a simulation without jitter and with it.
func loads(p retry.Policy, h retry.Simulation) []load {
	most, buckets := max(h.Together.Peak, h.Spread.Peak, 1), bucketsOf(h)
	together := loadOf("is-dead", "No jitter", h.Together, buckets, most)

	spread := loadOf("is-retryable", "×"+format.Jitter(h.Jitter), h.Spread, buckets, most)
	together.note, spread.note = "if every delay were exact", "this policy"
	if !p.Jitter.On() {
		together.note, spread.note = "this policy", "with the jitter of the Open Job Spec"
		spread.class = "is-completed"
	}

	return []load{together, spread}
}

// bucketsOf is how many stretches of time a simulation fills.
func bucketsOf(h retry.Simulation) int {
	return max(minBuckets, len(h.Together.Buckets), len(h.Spread.Buckets))
}

// loadOf draws one load. What happened at all can be seen, however little it is
// next to the most.
func loadOf(class, name string, l retry.Lane, buckets, most int) load {
	drawn := load{class: class, name: name, peak: format.Number(l.Peak), top: format.Number(most) + " per s"}
	pitch := 100 / float64(buckets)
	for i, n := range l.Buckets {
		if n == 0 {
			continue
		}

		height := max(1.2, (loadFloor-loadTop)*float64(n)/float64(most))
		drawn.bars = append(drawn.bars, templates.Rect{
			X: format.Percent(float64(i) * pitch), Width: format.Percent(min(pitch*0.82, 2.4)),
			Y: format.Tenth(loadFloor - height), Height: format.Tenth(height),
		})
	}

	return drawn
}

// simulationTick is a time below a simulation.
type simulationTick struct{ x, class, word string }

// simulationTicks are a few round times below a simulation. None is where it would be cut off
// or touch the first word.
func simulationTicks(h retry.Simulation) []simulationTick {
	length := time.Duration(bucketsOf(h)) * h.Bucket

	all := []simulationTick{{"0%", "", "failure"}}
	at, step := time.Duration(0), stepOf(length, 5)
	for at <= length-step {
		at += step
		if x := 100 * float64(at) / float64(length); x > 8 && x < 95 { // not under the first, not cut off
			all = append(all, simulationTick{format.Percent(x), "mid", format.Duration(at)})
		}
	}

	return all
}

// simulationNote says what is simulated, and how far.
func simulationNote(h retry.Simulation) string {
	note := format.Number(h.Jobs) + " jobs fail in the same second and keep failing: retries per second"
	if h.Cut {
		note += ", of the first " + format.Number(h.Retries) + " retries"
	}

	if h.Bucket.Seconds() > 1 {
		note += "; each bar is the busiest second of " + format.Duration(h.Bucket)
	}

	return note
}

const (
	loadFloor, loadTop = 76.0, 12.0
	minBuckets         = 10
)
