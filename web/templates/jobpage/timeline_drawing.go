package jobpage

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"redrive/internal/job"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// draw turns time into percentages, one scale for all lanes.
func (s *timeline) draw(total time.Duration, f forecast, now time.Time) {
	for _, l := range s.lanes {
		if n := len(l.spans); n > 0 {
			total = max(total, l.spans[n-1].to+l.spans[n-1].high)
		}
	}

	scale := scaleFor(s.lanes, total)
	for i := range s.lanes {
		l := &s.lanes[i]
		l.place(scale)

		if l.run.current {
			l.drawNow(scale, now)
		}

		l.drawDelays()
		l.drawNumbers()
		l.end = endOf(*l, f)
		l.said = saidOf(*l)
		s.addToLegend(*l)
	}

	s.ticks = ticksOf(total, scale)
}

// timeScale is how much of the width one nanosecond takes.
type timeScale float64

// at is the part of the width that a duration takes.
func (s timeScale) at(d time.Duration) float64 { return float64(d) * float64(s) }

// scaleFor is the largest scale at which the bars of every lane fit: the shortest
// ones are drawn longer than they are. It is found by trying ever smaller scales,
// which ends because the number of bars in a lane is bounded.
func scaleFor(lanes []lane, total time.Duration) timeScale {
	scale := timeScale(timelineWidth / float64(total))
	for _, l := range lanes {
		for needs(l.spans, scale) > timelineWidth {
			scale *= 0.95
		}
	}

	return scale
}

// needs is how much of the width the bars of a lane take at a scale.
func needs(spans []span, scale timeScale) float64 {
	total := 0.0
	for _, s := range spans {
		total += width(s, scale) + minGap
	}

	return total
}

// width is how wide the bar of an attempt is; the shortest can still be pointed at.
func width(s span, scale timeScale) float64 { return max(minBar, scale.at(s.to-s.from)) }

// place lays the bars from left to right without overlap, and pushes back from
// the end those that short bars have pushed over it.
func (l *lane) place(scale timeScale) {
	left := 0.0
	for _, s := range l.spans {
		s.bar.box = box{max(left, scale.at(s.from)), width(s, scale)}
		left = s.bar.end() + minGap
		l.bars = append(l.bars, s.bar)
	}

	// From the last bar to the first, each keeps its place unless the one behind it needs room.
	right := timelineWidth
	for i := len(l.bars) - 1; i >= 0; i-- {
		b := &l.bars[i]

		b.x = max(0, min(b.x, right-b.w))
		right = b.x - minGap
		if s := l.spans[i]; s.low > 0 || s.high > 0 {
			x := max(0, b.x-scale.at(s.low))
			l.bands = append(l.bands, box{x, min(100, b.x+scale.at(s.high)+b.w) - x})
		}
	}
}

// drawNow marks this moment in the lane of a run that is not over.
func (l *lane) drawNow(scale timeScale, now time.Time) {
	x := scale.at(now.Sub(l.zero))
	if now.Before(l.zero) || x > timelineWidth || l.run.over {
		return
	}

	for i, b := range l.bars { // bars may have been pushed from their true place
		s := l.spans[i]
		if b.planned {
			x = min(x, b.x)
		} else if now.Sub(l.zero) >= s.to {
			x = max(x, b.end())
		}
	}

	l.now = x
}

// drawDelays writes each delay into its gap, where it fits. A gap that the line of
// now divides has the delay in its wider half.
func (l *lane) drawDelays() {
	for i := 1; i < len(l.bars); i++ {
		gap := box{l.bars[i-1].end(), l.bars[i].x - l.bars[i-1].end()}
		if l.now > gap.x && l.now < gap.end() { // beside the line, not across it
			if l.now-gap.x > gap.end()-l.now {
				gap.w = l.now - gap.x
			} else {
				gap = box{l.now, gap.end() - l.now}
			}
		}

		text := l.spans[i].delay
		if text != "" && gap.w >= max(4, charWidth*float64(len([]rune(text)))) {
			l.delays = append(l.delays, label{gap.middle(), text})
		}
	}
}

// drawNumbers leaves out the numbers that would touch the one before, or the
// word at the line of now.
func (l *lane) drawNumbers() {
	last := -100.0
	for i := range l.bars {
		b := &l.bars[i]

		x := b.middle()
		underNow := l.now >= 0 && x > l.now-1 && x < l.now+5
		if b.number == "" || underNow || x-last < minPitch {
			b.number = ""
			continue
		}

		last = x
	}
}

// endOf is the mark behind the last bar of a lane. It names how the run ended, or
// how it would end if nothing succeeds.
func endOf(l lane, f forecast) endMark {
	// The mark keeps clear of the last bar, and of the bands in which jitter may move bars. It
	// never leaves the drawing.
	m := endMark{x: 1.4}
	if n := len(l.bars); n > 0 {
		m.x = l.bars[n-1].end() + 1.4
	}

	for _, b := range l.bands {
		m.x = max(m.x, b.end()+1)
	}

	m.x = min(m.x, 98)
	if l.run.over {
		m.class, m.text = endWord(l.run)
		return m
	}

	// The run goes on: the mark says what is not drawn, or what happens if all that is drawn
	// fails.
	m.open = true
	switch {
	case l.more > 0:
		m.text = "and " + format.Counted(l.more, "more attempt", "more attempts")
	case len(f.coming) > 0 || !f.ends.IsZero():
		m.class, m.text = f.fate.Class, "or "+f.fate.Word
	}

	return m
}

// endWord says how a run ended. A run that was replayed while it waited for a retry
// has not failed, and is not drawn as if it had.
func endWord(r jobRun) (class, text string) {
	style := templates.StyleOf(r.status)
	switch r.status {
	case job.StatusDLQFailed:
		return style.Class, "dead letter refused"
	case job.Status(job.Completed):
		return style.Class, "succeeded"
	case job.Status(job.Retryable):
		return style.Class, "replayed early"
	}

	return style.Class, style.Word
}

// saidOf is the lane as a sentence, for readers who do not see it. It says what the
// drawing shows, in the same order.
func saidOf(l lane) string {
	n := len(l.run.attempts)
	said := format.InWords(n, "attempt", "attempts")
	if l.run.cut {
		said = "the newest " + said
	}

	s := fmt.Sprintf("Run %d: %s", l.run.number, said)
	if took := l.run.took(); took > 0 {
		s += " in " + format.Duration(took)
	}

	// The sentence about a run that is over says how the run ended. Any other goes on with the
	// attempts that are running or to come.
	if l.run.over {
		if _, text := endWord(l.run); text != "" {
			s += ", then " + text
		}
		return s
	}

	if n > 0 {
		s += " so far"
	}

	for _, p := range l.spans {
		switch {
		case p.bar.planned && p.delay != "":
			s += fmt.Sprintf("; attempt %s after %s", p.bar.number, p.delay)
		case p.bar.planned:
			s += fmt.Sprintf("; attempt %s to come", p.bar.number)
		case p.bar.style.Word == string(job.Active):
			s += "; one is running"
		}
	}

	return s
}

// addToLegend notes what the legend has to explain.
func (s *timeline) addToLegend(l lane) {
	s.jitter = s.jitter || len(l.bands) > 0
	for _, b := range l.bars {
		if b.planned {
			s.planned = true
		} else if !slices.Contains(s.legend, b.style) {
			s.legend = append(s.legend, b.style)
		}
	}
}

// ticksOf divides the scale into a few round steps, and leaves the right end free
// for the words there.
func ticksOf(total time.Duration, scale timeScale) []label {
	step := roundStep(total / 6)
	ticks := []label{{0, "0 s"}}
	for d := step; scale.at(d) <= 82 && len(ticks) < 12; d += step {
		ticks = append(ticks, label{scale.at(d), format.Duration(d)})
	}

	return ticks
}

// roundStep is the first round duration that is not shorter than d.
func roundStep(d time.Duration) time.Duration {
	units := []struct {
		unit  time.Duration
		steps []time.Duration
	}{
		{time.Millisecond, []time.Duration{1, 2, 5, 10, 20, 50, 100, 200, 500}},
		{time.Second, []time.Duration{1, 2, 5, 10, 15, 30}},
		{time.Minute, []time.Duration{1, 2, 5, 10, 15, 30}},
		{time.Hour, []time.Duration{1, 2, 3, 6, 12}},
	}
	for _, u := range units {
		for _, n := range u.steps {
			if n*u.unit >= d {
				return n * u.unit
			}
		}
	}

	// Beyond half a day, steps are days, doubled as often as needed. The bound keeps the
	// product from overflowing.
	step := format.Day
	for step < d && step < 1<<61 {
		step *= 2
	}

	return step
}

// percent writes a place in the timeline as an attribute of SVG.
func percent(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) + "%" }
