package templates

import (
	"net/url"
	"strconv"

	"github.com/a-h/templ"

	"redrive/internal/retry"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// PolicyField is a field of the form.
type PolicyField struct {
	Name, Label, Hint string
	Class             string // for which strategies it means something
	List              bool   // it is a longer text
}

// PolicyFields are the fields of a policy in a form.
func PolicyFields() []PolicyField {
	return []PolicyField{
		{Name: "max_attempts", Label: "Attempts", Hint: "the first included"},
		{Name: "initial_interval", Label: "First delay", Hint: "5s, 2m or PT1H", Class: "for-growth"},
		{Name: "coefficient", Label: "Coefficient", Hint: "at least 1", Class: "for-power"},
		{Name: "schedule", Label: "Schedule", Hint: "1s, 5s, 15s; the last repeats", Class: "for-schedule", List: true},
		{Name: "max_interval", Label: "Cap", Hint: "of every delay", Class: "for-delay"},
		{Name: "jitter_low", Label: "Jitter, from", Hint: "both empty: none", Class: "for-delay"},
		{Name: "jitter_high", Label: "Jitter, to", Hint: "times the delay", Class: "for-delay"},
	}
}

// MaxField is how many bytes a field of the form takes.
const MaxField = 400

// PolicyValues are the fields of the form on /policies, by name, as they stand
// there for a policy.
func PolicyValues(p retry.Policy) map[string]string {
	all := map[string]string{
		"strategy": string(p.Strategy), "max_attempts": strconv.Itoa(p.MaxAttempts),
		"initial_interval": format.Compact(p.InitialInterval), "coefficient": format.Factor(p.Coefficient),
		"schedule": format.CompactList(p.Schedule), "max_interval": format.Compact(p.MaxInterval),
		"jitter_low": "", "jitter_high": "",
	}
	if p.Jitter.On() {
		all["jitter_low"], all["jitter_high"] = format.Factor(p.Jitter.Low), format.Factor(p.Jitter.High)
	}

	return all
}

// PolicyURL is the page of policies with the form filled in with a policy.
func PolicyURL(p retry.Policy) templ.SafeURL {
	values := url.Values{}
	for name, value := range PolicyValues(p) {
		values.Set(name, value)
	}

	return link.Policies("") + templ.SafeURL("?"+values.Encode())
}
