package jobpage

import (
	"math"
	"strconv"
	"time"

	"redrive/internal/retry"
	"redrive/web/templates/format"
)

// delaySteps writes down how a delay came about, step by step; the last cell is
// the delay. entries is the schedule of the job's policy, if it has one.
func delaySteps(d retry.Delay, entries []time.Duration) []format.Calculation {
	if d.Source == retry.FromHandler {
		return finish(d, []format.Calculation{{Text: "handler", Note: retryNumber(d)}, {Text: "Retry-After: " + format.Duration(d.Raw)}})
	}
	if d.Source == retry.FromRule {
		return finish(d, []format.Calculation{{Text: "rule", Note: retryNumber(d)}, {Text: "asks for " + rawDelay(d)}})
	}
	cells := []format.Calculation{{Text: format.Visible(string(d.Strategy)), Note: retryNumber(d)}}
	result := " = " + rawDelay(d)
	initial := format.Duration(d.Initial)
	switch d.Strategy {
	case retry.Immediate:
		return append(cells, format.Calculation{Text: "none"})
	case retry.Linear:
		cells = append(cells, format.Calculation{Text: initial + " × " + format.Number(d.Retry) + result})
	case retry.Exponential:
		cells = append(cells, format.Calculation{Text: initial + " × " + format.Factor(d.Coefficient), Power: strconv.Itoa(d.Retry - 1), Rest: result})
	case retry.Polynomial:
		cells = append(cells, format.Calculation{Text: initial + " × " + format.Number(d.Retry), Power: format.Factor(d.Coefficient), Rest: result})
	case retry.Schedule:
		cells = append(cells, format.Calculation{Text: entryName(d, entries) + result})
	default:
		cells = append(cells, format.Calculation{Text: rawDelay(d)})
	}
	return finish(d, cells)
}

// finish adds the cap, the jitter and the sum.
func finish(d retry.Delay, cells []format.Calculation) []format.Calculation {
	cells = append(cells, format.Calculation{Text: "cap " + format.Duration(d.Cap), Note: reached(d.Raw > d.Cap)})
	if d.Jitter.On() {
		cells = append(cells, format.Calculation{
			Text: "jitter " + format.Factor(d.Jitter.Low) + " to " + format.Factor(d.Jitter.High), Note: "drew",
			Tail: "×" + format.Decimal(d.Factor, 2),
		})
		if float64(d.Capped)*d.Factor > float64(d.Cap) {
			cells = append(cells, format.Calculation{Text: "cap " + format.Duration(d.Cap), Note: "reached again"})
		}
	}
	return append(cells, format.Calculation{Text: wait(d.Final)})
}

func reached(yes bool) string {
	if yes {
		return "reached"
	}
	return "not reached"
}

func retryNumber(d retry.Delay) string { return "retry " + format.Number(d.Retry) }

// rawDelay is the strategy's own delay. Past what a clock can hold there is no
// figure to give.
func rawDelay(d retry.Delay) string {
	if d.Raw == math.MaxInt64 {
		return "more than 292 years"
	}
	return format.Duration(d.Raw)
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
