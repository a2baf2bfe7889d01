package templates

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"redrive/internal/retry"
	"redrive/web/templates/format"
)

// policyLine is how often a job is tried, and what becomes of it then.
func policyLine(p retry.Policy) string {
	end := "then dead letter"
	if p.OnExhaustion == retry.Discard {
		end = "then discarded"
	}
	return attemptsAllowed(p) + ", " + end
}

// policyFormula is how often a job is tried, and how long it waits in between.
func policyFormula(p retry.Policy) cell {
	c := delays(p)
	c.text = attemptsAllowed(p) + ", " + c.text
	return c
}

func attemptsAllowed(p retry.Policy) string {
	return format.Counted(p.Limit(), "attempt", "attempts")
}

// delays says how long a job waits between its attempts, as a formula in which
// n is the number of the retry.
func delays(p retry.Policy) cell {
	initial := format.Duration(p.InitialInterval)
	var c cell
	switch {
	case p.Limit() == 1:
		return cell{text: "never retried"}
	case p.Strategy == retry.Immediate:
		return cell{text: "retried at once"}
	case p.Strategy == retry.Linear:
		c.text = initial + " × n"
	case p.Strategy == retry.Exponential:
		c.text, c.power = initial+" × "+format.Factor(p.Coefficient), "n−1"
	case p.Strategy == retry.Polynomial:
		c.text, c.power = initial+" × n", format.Factor(p.Coefficient)
	case p.Strategy == retry.Schedule:
		c.text = scheduleList(p.Schedule)
	default:
		c.text = initial + " apart"
	}
	c.rest = ", cap " + format.Duration(p.MaxInterval)
	if p.Jitter.On() {
		c.rest += ", jitter " + format.Factor(p.Jitter.Low) + " to " + format.Factor(p.Jitter.High)
	}
	return c
}

// scheduleList lists the delays of a schedule, as far as a line holds them.
func scheduleList(schedule []time.Duration) string {
	if len(schedule) == 0 {
		return "retried at once"
	}
	var words []string
	for i, d := range schedule {
		if i == 6 && len(schedule) > 8 {
			words = append(words, format.Counted(len(schedule)-7, "more", "more"))
			break
		}
		if i < len(schedule)-1 {
			words = append(words, format.Duration(d))
		}
	}
	last := "always " + format.Duration(schedule[len(schedule)-1])
	if len(words) == 0 {
		return last
	}
	return "after " + strings.Join(words, ", ") + ", then " + last
}

// cell is one step of a calculation: text, raised text, text, small text, text.
type cell struct{ text, power, rest, note, tail string }

// ending is what becomes of a job whose last attempt failed.
func ending(p retry.Policy) string {
	if p.OnExhaustion == retry.Discard {
		return "then discarded"
	}
	return "then dead letter"
}

// formula is the delay before retry n, as a calculation.
func formula(p retry.Policy) cell {
	c, limit := cell{text: format.Duration(p.InitialInterval)}, ", "+format.Duration(p.MaxInterval)+" )"
	switch p.Strategy {
	case retry.Immediate:
		return cell{text: "delay(n) = 0"}
	case retry.Schedule:
		if len(p.Schedule) == 0 {
			return cell{text: "delay(n) = 0"}
		}
		c.text = fmt.Sprintf("[%s][min(n, %d)]", longSchedule(p.Schedule), len(p.Schedule))
	case retry.Linear:
		c.text += " × n"
	case retry.Exponential:
		c.text, c.power = c.text+" × "+format.Factor(p.Coefficient), "n−1"
	case retry.Polynomial:
		c.text, c.power = c.text+" × n", format.Factor(p.Coefficient)
	}
	c.text, c.rest = "min( "+c.text, limit
	if p.Jitter.On() {
		c.text = "min( " + c.text
		c.rest += " × [" + format.Factor(p.Jitter.Low) + ", " + format.Factor(p.Jitter.High) + ")" + limit
	}
	c.text = "delay(n) = " + c.text
	return c
}

func shortSchedule(schedule []time.Duration) string {
	words := make([]string, 0, 4)
	for i, d := range schedule[:min(len(schedule), 3)] {
		words = append(words, format.Duration(d))
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
			words = append(words, format.Duration(d))
		}
	}
	return strings.Join(words, ", ")
}

// inSentences says the formula in words.
func inSentences(p retry.Policy) string {
	if p.Limit() == 1 {
		return "A job has one attempt and is never retried."
	}
	s, initial := "", format.Duration(p.InitialInterval)
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
		s = fmt.Sprintf("The first retry waits %s, and each further one %s times as long as the one before", initial, format.Factor(p.Coefficient))
	case retry.Polynomial:
		s = fmt.Sprintf("The first retry waits %s, and retry n that times n to the power of %s", initial, format.Factor(p.Coefficient))
	default:
		s = fmt.Sprintf("Each retry waits %s", initial)
	}
	s += fmt.Sprintf(", but none more than %s.", format.Duration(p.MaxInterval))
	if p.Jitter.On() {
		s += fmt.Sprintf(" Chance makes each delay %s to %s times that, under the same cap.", format.Factor(p.Jitter.Low), format.Factor(p.Jitter.High))
	}
	return s
}

// forever is what a sum of delays says that no clock can hold.
func forever(d time.Duration) string {
	if d == math.MaxInt64 {
		return "more than 292 years"
	}
	return format.Duration(d)
}

// spanWords says between which bounds a span lies, or nothing where chance has no
// part in it.
func spanWords(s retry.Span) string {
	if s.Low == s.High {
		return ""
	}
	if s.High == math.MaxInt64 {
		return "more than " + format.Duration(s.Low)
	}
	return format.DurationRange(s.Low, s.High)
}

// death is how long a job waits until its last attempt: the average, and what
// else there is to say.
func death(p retry.Policy, ttr time.Duration) (wait, more string) {
	total, exact := p.UntilDeath()
	wait = forever(total.Mean)
	if !exact {
		wait = "more than " + wait
	}
	more = " of waiting"
	if between := spanWords(total); between != "" && exact {
		more += ", " + between
	}
	if ttr > 0 {
		more += fmt.Sprintf(", plus up to %s × %s of running", format.Number(p.Limit()), format.Duration(ttr))
	} else {
		more += ", plus the attempts themselves"
	}
	return wait, more
}

// rawOf is the strategy's own delay before one retry, as a calculation.
func rawOf(p retry.Policy, r retry.Row) cell {
	initial := format.Duration(p.InitialInterval)
	switch p.Strategy {
	case retry.Immediate:
		return cell{text: "at once"}
	case retry.Linear:
		return cell{text: initial + " × " + format.Number(r.Retry)}
	case retry.Exponential:
		return cell{text: initial + " × " + format.Factor(p.Coefficient), power: strconv.Itoa(r.Retry - 1)}
	case retry.Polynomial:
		return cell{text: initial + " × " + format.Number(r.Retry), power: format.Factor(p.Coefficient)}
	case retry.Schedule:
		return cell{text: entryOf(p, r.Retry)}
	}
	return cell{text: initial}
}

// entryOf names the entry of a schedule; the last one repeats.
func entryOf(p retry.Policy, n int) string {
	switch last := len(p.Schedule); {
	case last == 0:
		return "at once"
	case n > last:
		return "entry " + format.Number(last) + " again"
	}
	return "entry " + format.Number(n)
}

func factors(j retry.Jitter) string {
	return "×" + format.Factor(j.Low) + " to " + format.Factor(j.High)
}

// plainText writes a calculation on one line.
func plainText(c cell) string {
	switch {
	case c.power == "":
		return c.text + c.rest
	case strings.ContainsAny(c.power, "−-+"):
		return c.text + "^(" + c.power + ")" + c.rest
	}
	return c.text + "^" + c.power + c.rest
}
