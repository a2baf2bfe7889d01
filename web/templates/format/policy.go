package format

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"redrive/internal/retry"
)

// Calculation is one step of a calculation: text, raised text, text, small text,
// text.
type Calculation struct{ Text, Power, Rest, Note, Tail string }

// Plain is a calculation on one line of a terminal.
func (c Calculation) Plain() string {
	switch {
	case c.Power == "":
		return c.Text + c.Rest
	case strings.ContainsAny(c.Power, "−-+"):
		return c.Text + "^(" + c.Power + ")" + c.Rest
	}

	return c.Text + "^" + c.Power + c.Rest
}

// PolicyLine is how often a job is tried, and what becomes of it then.
func PolicyLine(p retry.Policy) string { return Attempts(p) + ", " + PolicyEnding(p) }

// PolicyInShort is how often a job is tried, and how long it waits in between.
func PolicyInShort(p retry.Policy) Calculation {
	c := PolicyDelays(p)
	c.Text = Attempts(p) + ", " + c.Text
	return c
}

// Attempts is how often a job is tried.
func Attempts(p retry.Policy) string { return Counted(p.Limit(), "attempt", "attempts") }

// Growth is the delay before retry n, as far as its strategy computes it. Where
// the strategy takes a power, that is of less, which is n−1.
func Growth(s retry.Strategy, initial time.Duration, coefficient float64, n, less string) Calculation {
	text := Duration(initial)
	switch s {
	case retry.Linear:
		return Calculation{Text: text + " × " + n}
	case retry.Exponential:
		return Calculation{Text: text + " × " + Factor(coefficient), Power: less}
	case retry.Polynomial:
		return Calculation{Text: text + " × " + n, Power: Factor(coefficient)}
	}

	return Calculation{Text: text}
}

// growth is the delay before retry n of a policy.
func growth(p retry.Policy) Calculation {
	return Growth(p.Strategy, p.InitialInterval, p.Coefficient, "n", "n−1")
}

// PolicyDelays says how long a job waits between its attempts, as a formula in which
// n is the number of the retry.
func PolicyDelays(p retry.Policy) Calculation {
	c := growth(p)
	switch {
	case p.Limit() == 1:
		return Calculation{Text: "never retried"}
	case p.Strategy == retry.Immediate:
		return Calculation{Text: "retried at once"}
	case p.Strategy == retry.Schedule:
		c.Text = ScheduleList(p.Schedule)
	case c.Text == Duration(p.InitialInterval):
		c.Text += " apart"
	}

	c.Rest = ", cap " + Duration(p.MaxInterval)
	if p.Jitter.On() {
		c.Rest += ", jitter " + Jitter(p.Jitter)
	}

	return c
}

// ScheduleList lists the delays of a schedule, as far as a line holds them.
func ScheduleList(schedule []time.Duration) string {
	n := len(schedule)
	if n == 0 {
		return "retried at once"
	}

	// The last delay repeats, so it is told apart: "after 5 s, 1 min, then always 5 min".
	words, last := durations(schedule[:n-1]), "always "+Duration(schedule[n-1])
	switch {
	case n == 1:
		return last
	case n > 8:
		words = append(words[:6], Counted(n-7, "more", "more"))
	}

	return "after " + strings.Join(words, ", ") + ", then " + last
}

// ShortSchedule is the beginning of a schedule.
func ShortSchedule(schedule []time.Duration) string {
	words := durations(schedule)
	if len(words) > 3 {
		words = append(words[:3], "…")
	}

	return cmp.Or(strings.Join(words, ", "), "of nothing")
}

// longSchedule lists a schedule, its middle left out where it is long.
func longSchedule(schedule []time.Duration) string {
	words := durations(schedule)
	if n := len(words); n > 12 {
		words = append(words[:10], "…", words[n-1])
	}

	return strings.Join(words, ", ")
}

// durations writes each delay of a schedule.
func durations(all []time.Duration) []string {
	words := make([]string, len(all))
	for i, d := range all {
		words[i] = Duration(d)
	}

	return words
}

// PolicyEnding is what becomes of a job whose last attempt failed.
func PolicyEnding(p retry.Policy) string {
	if p.OnExhaustion == retry.Discard {
		return "then discarded"
	}
	return "then dead letter"
}

// PolicyFormula is the delay before retry n, as a calculation.
func PolicyFormula(p retry.Policy) Calculation {
	c, limit := growth(p), ", "+Duration(p.MaxInterval)+" )"
	if p.Strategy == retry.Schedule {
		c.Text = fmt.Sprintf("[%s][min(n, %d)]", longSchedule(p.Schedule), len(p.Schedule))
	}

	if p.Strategy == retry.Immediate || p.Strategy == retry.Schedule && len(p.Schedule) == 0 {
		return Calculation{Text: "delay(n) = 0"}
	}

	// The longest delay bounds a delay both before jitter and after it:
	// "delay(n) = min( min( …, 1 h ) × [0.8, 1.2), 1 h )". A power stands between Text and Rest.
	c.Text, c.Rest = "min( "+c.Text, limit
	if p.Jitter.On() {
		c.Text = "min( " + c.Text
		c.Rest += " × [" + Factor(p.Jitter.Low) + ", " + Factor(p.Jitter.High) + ")" + limit
	}

	c.Text = "delay(n) = " + c.Text

	return c
}

// PolicySentence says the formula in words.
func PolicySentence(p retry.Policy) string {
	if p.Limit() == 1 {
		return "A job has one attempt and is never retried."
	}

	// The switch leaves s without its end, which names the longest delay.
	s, initial := "", Duration(p.InitialInterval)
	switch p.Strategy {
	case retry.Immediate:
		return "Each retry starts at once."
	case retry.Schedule:
		if len(p.Schedule) == 0 {
			return "The schedule is empty: each retry starts at once."
		}

		s = "Retry n waits for the nth delay in the list; the last delay repeats"
	case retry.Linear:
		s = fmt.Sprintf("The first retry waits %s, and each further one %s longer", initial, initial)
	case retry.Exponential:
		s = fmt.Sprintf("The first retry waits %s, and each further one %s times as long as the one before", initial, Factor(p.Coefficient))
	case retry.Polynomial:
		s = fmt.Sprintf("The first retry waits %s, and retry n that times n to the power of %s", initial, Factor(p.Coefficient))
	default:
		s = fmt.Sprintf("Each retry waits %s", initial)
	}

	s += fmt.Sprintf(", at most %s.", Duration(p.MaxInterval))
	if p.Jitter.On() {
		s += fmt.Sprintf(" Jitter multiplies each delay by %s, under the same cap.", Jitter(p.Jitter))
	}

	return s
}

// LongDuration is what a sum of delays says that no clock can hold.
func LongDuration(d time.Duration) string {
	if d == math.MaxInt64 {
		return "more than 292 years"
	}
	return Duration(d)
}

// Span says between which bounds a span is, or nothing where chance has no part in
// it.
func Span(s retry.Span) string {
	if s.Low == s.High {
		return ""
	}

	if s.High == math.MaxInt64 {
		return "more than " + Duration(s.Low)
	}

	return DurationRange(s.Low, s.High)
}

// TimeToDeath is how long a job waits until its last attempt: the average, and what
// else there is to say.
func TimeToDeath(p retry.Policy, ttr time.Duration) (wait, more string) {
	total, exact := p.UntilDeath()
	wait = LongDuration(total.Mean)
	if !exact {
		wait = "more than " + wait
	}

	more = " of waiting"
	if between := Span(total); between != "" && exact {
		more += ", " + between
	}

	if ttr > 0 {
		more += fmt.Sprintf(", plus up to %s × %s of running", Number(p.Limit()), Duration(ttr))
	} else {
		more += ", plus the attempts themselves"
	}

	return wait, more
}

// RawDelay is the strategy's own delay before one retry, as a calculation.
func RawDelay(p retry.Policy, r retry.Row) Calculation {
	switch p.Strategy {
	case retry.Immediate:
		return Calculation{Text: "at once"}
	case retry.Schedule:
		return Calculation{Text: entryOf(p, r.Retry)}
	}

	return Growth(p.Strategy, p.InitialInterval, p.Coefficient, Number(r.Retry), strconv.Itoa(r.Retry-1))
}

// entryOf names the entry of a schedule; the last one repeats.
func entryOf(p retry.Policy, n int) string {
	switch last := len(p.Schedule); {
	case last == 0:
		return "at once"
	case n > last:
		return "entry " + Number(last) + " again"
	}

	return "entry " + Number(n)
}

// Jitter is by how much chance changes a delay.
func Jitter(j retry.Jitter) string { return Factor(j.Low) + " to " + Factor(j.High) }

// Compact writes a duration as a configuration and the form take it: "5s",
// "1m30s", "7d".
func Compact(d time.Duration) string {
	if d >= Day && d%Day == 0 {
		return strconv.Itoa(int(d/Day)) + "d"
	}

	// Go writes "1m0s" and "1h0m0s", of which the zeros are left out.
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}

	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}

	return s
}

// CompactList is Compact for a schedule.
func CompactList(schedule []time.Duration) string {
	all := make([]string, len(schedule))
	for i, d := range schedule {
		all[i] = Compact(d)
	}

	return strings.Join(all, ", ")
}
