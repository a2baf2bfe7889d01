package jobpage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// The timeline is drawn in percentages of its width, so that it stretches
// and its text does not. All lanes share one scale, each from its own zero.
const (
	timelineWidth = 95.0 // bars end here; the rest is for the mark at the end
	minBar        = 0.5  // of a bar, however short its attempt
	minGap        = 0.1  // between bars
	minPitch      = 2.4  // between the numbers over bars
	charWidth     = 0.8  // of one character of a label in a lane of 640 px
	maxBars       = 60   // attempts in a lane
	maxPlanned    = 12   // attempts to come in a lane
)

// timeline is the picture of all attempts of a job.
type timeline struct {
	title   string
	lanes   []lane            // oldest run first
	ticks   []label           // of the scale
	legend  []templates.Style // the outcomes that are drawn
	planned bool              // attempts to come are drawn
	jitter  bool              // bands of jitter are drawn
}

// lane is the picture of one run. Its time begins at its own zero, so that the
// runs of a job can be compared although days are between them.
type lane struct {
	run    jobRun
	note   string // which attempts are drawn, when not all are
	more   int    // attempts to come that are not drawn
	bars   []bar
	delays []label
	bands  []box
	now    float64 // negative: not drawn
	end    endMark
	said   string // the lane in words

	spans []span
	zero  time.Time
}

// box is a stretch of the width.
type box struct{ x, w float64 }

// end is where the box ends.
func (b box) end() float64 { return b.x + b.w }

// middle is where its label is written.
func (b box) middle() float64 { return b.x + b.w/2 }

// bar is one attempt; planned when it is still to come.
type bar struct {
	box
	style   templates.Style
	number  string // over the bar; empty where there is no space
	title   string
	anchor  string
	planned bool
}

// label is a text at a place.
type label struct {
	x    float64
	text string
}

// endMark says how the run ended, or may end.
type endMark struct {
	x     float64 // of the dot
	class string
	text  string
	open  bool // it has not come to that
}

// aside reports whether the text stands beside the dot, where there is space,
// rather than under it at the end of the lane.
func (e endMark) aside() bool { return e.x < 80 }

// span is one attempt in time, counted from the zero of its lane; place makes a
// bar of it.
type span struct {
	from, to  time.Duration
	bar       bar
	low, high time.Duration // how far its start may be from where it is drawn
	delay     string        // before it, in words
}

// timelineOf draws the runs of a job, and its forecast in the last one. The length
// of the longest run is known before the forecast is added: attempts to come may
// stretch the scale, but not so far that the past cannot be read any more.
func timelineOf(d history.Detail, runs []jobRun, f forecast, now time.Time) timeline {
	s, j := timeline{}, d.Job
	total, attempts := time.Millisecond, d.Total
	for _, r := range runs {
		l := laneOf(j, r, now)
		if r.current {
			l.addForecast(f, now, total)
		}

		if n := len(l.spans); n > 0 {
			total = max(total, l.spans[n-1].to)
		}

		s.lanes = append(s.lanes, l)
	}

	if j.State == job.Active {
		attempts++
	}

	s.title = format.UpperFirst(format.InWords(j.Run, "run", "runs"))
	if j.Source == "" { // a source tells of the last attempt of a run, seldom of the others
		s.title += ", " + format.InWords(attempts, "attempt", "attempts")
	}

	s.draw(total, f, now)

	return s
}

// laneOf puts the attempts of a run, and the execution in progress, on its time.
// Of a run with very many attempts the newest are drawn.
func laneOf(j job.Job, r jobRun, now time.Time) lane {
	l := lane{run: r, now: -1, zero: latest(j.RunAt, now)}

	attempts := timed(r.attempts)
	if over := len(attempts) - maxBars; over > 0 {
		attempts = attempts[over:]
	}

	if len(attempts) == maxBars && len(attempts) < len(r.attempts) || r.cut {
		l.note = "the newest " + strconv.Itoa(len(attempts))
	}

	// The lane begins with the first attempt that is drawn.
	active := r.current && j.State == job.Active
	switch {
	case len(attempts) > 0:
		l.zero = began(attempts[0])
	case active:
		l.zero = j.StartedAt
	}

	for i, a := range attempts {
		l.add(a, templates.StyleOfOutcome(a.Outcome), a.FinishedAt, delayBefore(attempts, i))
	}

	if active {
		delay := ""
		if n := len(attempts); n > 0 {
			delay = waited(attempts[n-1], j.StartedAt)
		}

		l.add(running(j), templates.StyleOf(job.Status(job.Active)), now, delay)
	}

	return l
}

// timed are the attempts of which at least the end is known: sources may not say it.
func timed(all []job.Attempt) []job.Attempt {
	return slices.DeleteFunc(slices.Clone(all), func(a job.Attempt) bool { return a.FinishedAt.IsZero() })
}

// began is when an attempt began, or when it ended if its source says no more.
func began(a job.Attempt) time.Time {
	if a.StartedAt.IsZero() {
		return a.FinishedAt
	}
	return a.StartedAt
}

// delayBefore is the wait before attempt i, in words.
func delayBefore(attempts []job.Attempt, i int) string {
	if i == 0 {
		return ""
	}
	return waited(attempts[i-1], began(attempts[i]))
}

// waited is the time between an attempt and the next one: the delay that was
// chosen, unless the job had to wait longer for a worker.
func waited(a job.Attempt, next time.Time) string {
	gap := max(0, next.Sub(a.FinishedAt))
	if a.Delay == nil {
		return format.Duration(gap)
	}

	if late := gap - a.Delay.Final; late > max(time.Second, gap/20) || late < -time.Second {
		return format.Duration(gap)
	}

	return format.Duration(a.Delay.Final)
}

// add puts an attempt on the time of the lane. An attempt whose clock ran
// backwards has no length.
func (l *lane) add(a job.Attempt, style templates.Style, end time.Time, delay string) {
	from := max(0, began(a).Sub(l.zero))
	to := max(from, end.Sub(l.zero))

	b := bar{style: style, anchor: anchor(a), title: fmt.Sprintf("Run %d, %s: %s", a.Run, strings.ToLower(attemptName(a)), style.Word)}
	if a.Number > 0 {
		b.number = format.Number(a.Number)
	}

	if l.run.foreign && a.Number == 0 {
		b.title = fmt.Sprintf("Run %d, an attempt: %s", a.Run, style.Word)
	}

	if !a.StartedAt.IsZero() {
		b.title += " after " + format.Duration(to-from)
	}

	if style.Word == string(job.Active) {
		b.title = fmt.Sprintf("Run %d, attempt %d: running for %s", a.Run, a.Number, format.Duration(to-from))
	}

	l.spans = append(l.spans, span{from: from, to: to, bar: b, delay: delay})
}

// addForecast adds the attempts to come, as far as they leave the past readable:
// up to three times its length, but the next one always.
func (l *lane) addForecast(f forecast, now time.Time, longest time.Duration) {
	horizon := longest
	if n := len(l.spans); n > 0 {
		horizon = max(horizon, 4*max(l.spans[n-1].to, now.Sub(l.zero)))
	}

	for i, c := range f.coming {
		from := max(0, c.at.Sub(l.zero))
		fresh := len(l.spans) < 5 && i == len(l.spans) // nothing happened yet
		if i >= maxPlanned || i > 0 && from > horizon && !fresh {
			l.more = len(f.coming) - i
			break
		}

		s := span{from: from, to: from + f.length, bar: bar{
			planned: true, number: format.Number(c.number), title: fmt.Sprintf("Attempt %d, still to come", c.number),
		}}
		if c.high > 0 {
			middle := (c.low + c.high) / 2
			s.low, s.high, s.delay = middle-c.low, c.high-middle, format.DurationRange(c.low, c.high)
		} else if n := len(l.run.attempts); n > 0 && i == 0 {
			s.delay = waited(l.run.attempts[n-1], c.at)
		}

		l.spans = append(l.spans, s)
	}
}
