package templates

import (
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
