package templates

import (
	"math"
	"strconv"
	"time"

	"redrive/internal/retry"
	"redrive/web/templates/format"
)

// tapeOf writes down how a delay came about, step by step; the last cell is
// the delay. entries is the schedule of the job's policy, if it has one.
func tapeOf(d retry.Delay, entries []time.Duration) []cell {
	if d.Source == retry.FromHandler {
		return finish(d, []cell{{text: "handler", note: retryNumber(d)}, {text: "Retry-After: " + format.Duration(d.Raw)}})
	}
	if d.Source == retry.FromRule {
		return finish(d, []cell{{text: "rule", note: retryNumber(d)}, {text: "asks for " + rawDelay(d)}})
	}
	cells := []cell{{text: format.Visible(string(d.Strategy)), note: retryNumber(d)}}
	result := " = " + rawDelay(d)
	initial := format.Duration(d.Initial)
	switch d.Strategy {
	case retry.Immediate:
		return append(cells, cell{text: "none"})
	case retry.Linear:
		cells = append(cells, cell{text: initial + " × " + format.Number(d.Retry) + result})
	case retry.Exponential:
		cells = append(cells, cell{text: initial + " × " + format.Factor(d.Coefficient), power: strconv.Itoa(d.Retry - 1), rest: result})
	case retry.Polynomial:
		cells = append(cells, cell{text: initial + " × " + format.Number(d.Retry), power: format.Factor(d.Coefficient), rest: result})
	case retry.Schedule:
		cells = append(cells, cell{text: entryName(d, entries) + result})
	default:
		cells = append(cells, cell{text: rawDelay(d)})
	}
	return finish(d, cells)
}

// finish adds the cap, the jitter and the sum.
func finish(d retry.Delay, cells []cell) []cell {
	cells = append(cells, cell{text: "cap " + format.Duration(d.Cap), note: reached(d.Raw > d.Cap)})
	if d.Jitter.On() {
		cells = append(cells, cell{
			text: "jitter " + format.Factor(d.Jitter.Low) + " to " + format.Factor(d.Jitter.High), note: "drew",
			tail: "×" + format.Decimal(d.Factor, 2),
		})
		if float64(d.Capped)*d.Factor > float64(d.Cap) {
			cells = append(cells, cell{text: "cap " + format.Duration(d.Cap), note: "reached again"})
		}
	}
	return append(cells, cell{text: wait(d.Final)})
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
