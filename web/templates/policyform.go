package templates

import (
	"net/url"
	"redrive/internal/retry"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
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

// MaxWhatIf is how many bytes a field of the form takes.
const MaxWhatIf = 400

// Compact writes a duration as a configuration and the form take it: "5s",
// "1m30s", "7d".
func Compact(d time.Duration) string {
	if d >= format.Day && d%format.Day == 0 {
		return strconv.Itoa(int(d/format.Day)) + "d"
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

// WhatIfFields are the fields of the form on /policies, by name, as they stand
// there for a policy.
func WhatIfFields(p retry.Policy) map[string]string {
	factor := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	all := map[string]string{
		"strategy": string(p.Strategy), "max_attempts": strconv.Itoa(p.MaxAttempts),
		"initial_interval": Compact(p.InitialInterval), "coefficient": factor(p.Coefficient),
		"schedule": CompactList(p.Schedule), "max_interval": Compact(p.MaxInterval),
		"jitter_low": "", "jitter_high": "",
	}
	if p.Jitter.On() {
		all["jitter_low"], all["jitter_high"] = factor(p.Jitter.Low), factor(p.Jitter.High)
	}
	return all
}

// whatIfURL is the page of policies with the form filled in with a policy.
func whatIfURL(p retry.Policy) templ.SafeURL {
	values := url.Values{}
	for name, value := range WhatIfFields(p) {
		values.Set(name, value)
	}
	return link.Policies("") + templ.SafeURL("?"+values.Encode())
}
