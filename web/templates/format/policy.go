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

// PolicyLine is how often a job is tried, and what becomes of it then.
func PolicyLine(p retry.Policy) string {
	end := "then dead letter"
	if p.OnExhaustion == retry.Discard {
		end = "then discarded"
	}
	return Attempts(p) + ", " + end
}

// PolicyInShort is how often a job is tried, and how long it waits in between.
func PolicyInShort(p retry.Policy) Calculation {
	c := PolicyDelays(p)
	c.Text = Attempts(p) + ", " + c.Text
	return c
}

func Attempts(p retry.Policy) string {
	return Counted(p.Limit(), "attempt", "attempts")
}

// PolicyDelays says how long a job waits between its attempts, as a formula in which
// n is the number of the retry.
func PolicyDelays(p retry.Policy) Calculation {
	initial := Duration(p.InitialInterval)
	var c Calculation
	switch {
	case p.Limit() == 1:
		return Calculation{Text: "never retried"}
	case p.Strategy == retry.Immediate:
		return Calculation{Text: "retried at once"}
	case p.Strategy == retry.Linear:
		c.Text = initial + " × n"
	case p.Strategy == retry.Exponential:
		c.Text, c.Power = initial+" × "+Factor(p.Coefficient), "n−1"
	case p.Strategy == retry.Polynomial:
		c.Text, c.Power = initial+" × n", Factor(p.Coefficient)
	case p.Strategy == retry.Schedule:
		c.Text = ScheduleList(p.Schedule)
	default:
		c.Text = initial + " apart"
	}
	c.Rest = ", cap " + Duration(p.MaxInterval)
	if p.Jitter.On() {
		c.Rest += ", jitter " + Factor(p.Jitter.Low) + " to " + Factor(p.Jitter.High)
	}
	return c
}

// ScheduleList lists the delays of a schedule, as far as a line holds them.
func ScheduleList(schedule []time.Duration) string {
	if len(schedule) == 0 {
		return "retried at once"
	}
	var words []string
	for i, d := range schedule {
		if i == 6 && len(schedule) > 8 {
			words = append(words, Counted(len(schedule)-7, "more", "more"))
			break
		}
		if i < len(schedule)-1 {
			words = append(words, Duration(d))
		}
	}
	last := "always " + Duration(schedule[len(schedule)-1])
	if len(words) == 0 {
		return last
	}
	return "after " + strings.Join(words, ", ") + ", then " + last
}

// Calculation is one step of a calculation: text, raised text, text, small text, text.
type Calculation struct{ Text, Power, Rest, Note, Tail string }

// PolicyEnding is what becomes of a job whose last attempt failed.
func PolicyEnding(p retry.Policy) string {
	if p.OnExhaustion == retry.Discard {
		return "then discarded"
	}
	return "then dead letter"
}

// PolicyFormula is the delay before retry n, as a calculation.
func PolicyFormula(p retry.Policy) Calculation {
	c, limit := Calculation{Text: Duration(p.InitialInterval)}, ", "+Duration(p.MaxInterval)+" )"
	switch p.Strategy {
	case retry.Immediate:
		return Calculation{Text: "delay(n) = 0"}
	case retry.Schedule:
		if len(p.Schedule) == 0 {
			return Calculation{Text: "delay(n) = 0"}
		}
		c.Text = fmt.Sprintf("[%s][min(n, %d)]", longSchedule(p.Schedule), len(p.Schedule))
	case retry.Linear:
		c.Text += " × n"
	case retry.Exponential:
		c.Text, c.Power = c.Text+" × "+Factor(p.Coefficient), "n−1"
	case retry.Polynomial:
		c.Text, c.Power = c.Text+" × n", Factor(p.Coefficient)
	}
	c.Text, c.Rest = "min( "+c.Text, limit
	if p.Jitter.On() {
		c.Text = "min( " + c.Text
		c.Rest += " × [" + Factor(p.Jitter.Low) + ", " + Factor(p.Jitter.High) + ")" + limit
	}
	c.Text = "delay(n) = " + c.Text
	return c
}

func ShortSchedule(schedule []time.Duration) string {
	words := make([]string, 0, 4)
	for i, d := range schedule[:min(len(schedule), 3)] {
		words = append(words, Duration(d))
		if i == 2 && len(schedule) > 3 {
			words = append(words, "…")
		}
	}
	return cmp.Or(strings.Join(words, ", "), "of nothing")
}

// longSchedule lists a schedule, its middle left out where it is long.
func longSchedule(schedule []time.Duration) string {
	words := make([]string, 0, len(schedule))
	for i, d := range schedule {
		if len(schedule) > 12 && i == 10 {
			words = append(words, "…")
		}
		if len(schedule) <= 12 || i < 10 || i == len(schedule)-1 {
			words = append(words, Duration(d))
		}
	}
	return strings.Join(words, ", ")
}

// PolicySentence says the formula in words.
func PolicySentence(p retry.Policy) string {
	if p.Limit() == 1 {
		return "A job has one attempt and is never retried."
	}
	s, initial := "", Duration(p.InitialInterval)
	switch p.Strategy {
	case retry.Immediate:
		return "Each retry starts at once."
	case retry.Schedule:
		if len(p.Schedule) == 0 {
			return "The schedule is empty: each retry starts at once."
		}
		s = "Retry n waits for the n-th delay of the list, and the last one repeats"
	case retry.Linear:
		s = fmt.Sprintf("The first retry waits %s, and each further one %s longer", initial, initial)
	case retry.Exponential:
		s = fmt.Sprintf("The first retry waits %s, and each further one %s times as long as the one before", initial, Factor(p.Coefficient))
	case retry.Polynomial:
		s = fmt.Sprintf("The first retry waits %s, and retry n that times n to the power of %s", initial, Factor(p.Coefficient))
	default:
		s = fmt.Sprintf("Each retry waits %s", initial)
	}
	s += fmt.Sprintf(", but none more than %s.", Duration(p.MaxInterval))
	if p.Jitter.On() {
		s += fmt.Sprintf(" Chance makes each delay %s to %s times that, under the same cap.", Factor(p.Jitter.Low), Factor(p.Jitter.High))
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

// Span says between which bounds a span lies, or nothing where chance has no
// part in it.
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
	initial := Duration(p.InitialInterval)
	switch p.Strategy {
	case retry.Immediate:
		return Calculation{Text: "at once"}
	case retry.Linear:
		return Calculation{Text: initial + " × " + Number(r.Retry)}
	case retry.Exponential:
		return Calculation{Text: initial + " × " + Factor(p.Coefficient), Power: strconv.Itoa(r.Retry - 1)}
	case retry.Polynomial:
		return Calculation{Text: initial + " × " + Number(r.Retry), Power: Factor(p.Coefficient)}
	case retry.Schedule:
		return Calculation{Text: entryOf(p, r.Retry)}
	}
	return Calculation{Text: initial}
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

func Jitter(j retry.Jitter) string {
	return "×" + Factor(j.Low) + " to " + Factor(j.High)
}

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

// Compact writes a duration as a configuration and the form take it: "5s",
// "1m30s", "7d".
func Compact(d time.Duration) string {
	if d >= Day && d%Day == 0 {
		return strconv.Itoa(int(d/Day)) + "d"
	}
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
