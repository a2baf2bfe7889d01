package templates

import (
	"cmp"

	"redrive/internal/retry"
)

// whatIf is a field of the form.
type whatIf struct {
	name, label, hint string
	class             string // for which strategies it means something
	list              bool   // it is a longer text
}

func whatIfs() []whatIf {
	return []whatIf{
		{name: "max_attempts", label: "Attempts", hint: "the first included"},
		{name: "initial_interval", label: "First delay", hint: "as 5s, 2m or PT1H", class: "for-growth"},
		{name: "coefficient", label: "Coefficient", hint: "at least 1", class: "for-power"},
		{name: "schedule", label: "Schedule", hint: "as 1s, 5s, 15s; the last repeats", class: "for-schedule", list: true},
		{name: "max_interval", label: "Cap", hint: "of every delay", class: "for-delay"},
		{name: "jitter_low", label: "Jitter, from", hint: "both empty: none", class: "for-delay"},
		{name: "jitter_high", label: "Jitter, to", hint: "times the delay", class: "for-delay"},
	}
}

// strategyOf is the strategy that the form shows as chosen.
func (v Policies) strategyOf() retry.Strategy {
	return cmp.Or(retry.Strategy(v.Form["strategy"]), v.From.Policy.Strategy)
}
