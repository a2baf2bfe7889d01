package jobpage

import (
	"slices"
	"strconv"
	"time"

	"redrive/internal/retry"
	"redrive/web/templates/format"
)

// delaySteps writes down how a delay came about, step by step; the last one is
// the delay. entries is the schedule of the job's policy, if it has one.
func delaySteps(d retry.Delay, entries []time.Duration) []format.Calculation {
	raw, nth := format.LongDuration(d.Raw), "retry "+format.Number(d.Retry)
	var step format.Calculation
	switch {
	case d.Source == retry.FromHandler:
		return finish(d, format.Calculation{Text: "handler", Note: nth}, format.Calculation{Text: "Retry-After: " + format.Duration(d.Raw)})
	case d.Source == retry.FromRule:
		return finish(d, format.Calculation{Text: "rule", Note: nth}, format.Calculation{Text: "asks for " + raw})
	case d.Strategy == retry.Immediate:
		return []format.Calculation{{Text: format.Visible(string(d.Strategy)), Note: nth}, {Text: "none"}}
	case d.Strategy == retry.Schedule:
		step.Text = entryName(d, entries) + " = " + raw
	case slices.Contains([]retry.Strategy{retry.Linear, retry.Exponential, retry.Polynomial}, d.Strategy):
		step = format.Growth(d.Strategy, d.Initial, d.Coefficient, format.Number(d.Retry), strconv.Itoa(d.Retry-1))
		step.Rest = " = " + raw
	default:
		step.Text = raw
	}
	return finish(d, format.Calculation{Text: format.Visible(string(d.Strategy)), Note: nth}, step)
}

// finish adds the cap, the jitter and the sum.
func finish(d retry.Delay, steps ...format.Calculation) []format.Calculation {
	limit := format.Calculation{Text: "cap " + format.Duration(d.Cap), Note: "not reached"}
	if d.Raw > d.Cap {
		limit.Note = "reached"
	}
	steps = append(steps, limit)
	if d.Jitter.On() {
		drew := "×" + format.Decimal(d.Factor, 2)
		steps = append(steps, format.Calculation{Text: "jitter " + format.Jitter(d.Jitter), Note: "drew", Tail: drew})
		if float64(d.Capped)*d.Factor > float64(d.Cap) {
			steps = append(steps, format.Calculation{Text: limit.Text, Note: "reached again"})
		}
	}
	return append(steps, format.Calculation{Text: wait(d.Final)})
}

// entryName says which entry of a schedule was used; the last one repeats.
func entryName(d retry.Delay, entries []time.Duration) string {
	if n := len(entries); n > 0 && d.Retry > n && entries[n-1] == d.Raw {
		return "entry " + format.Number(n) + ", the last, again"
	}
	return "entry " + format.Number(d.Retry)
}

// wait is a delay in words.
func wait(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return format.Duration(d)
}
