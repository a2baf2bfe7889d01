package jobpage

import (
	"strings"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// policyFact is a field of a job's effective policy, and whose word it is.
type policyFact struct {
	name   string
	value  string
	codes  []string // instead of the value: names, as people write them
	origin string
}

// policyFields are the fields of a job's policy that matter under its
// strategy, and its time limit.
func policyFields(j job.Job) []policyFact {
	p := j.Policy
	var all []policyFact
	add := func(field, name, value string) {
		all = append(all, policyFact{name: name, value: value, origin: originWords(j.Origins[field])})
	}
	add("max_attempts", "Attempts", format.Number(p.Limit()))
	add("strategy", "Strategy", format.Visible(string(p.Strategy)))
	switch p.Strategy {
	case retry.Immediate:
	case retry.Schedule:
		add("schedule", "Delays", format.ScheduleList(p.Schedule))
	default:
		add("initial_interval", "First delay", format.Duration(p.InitialInterval))
	}
	if p.Strategy == retry.Exponential || p.Strategy == retry.Polynomial {
		add("coefficient", "Coefficient", format.Factor(p.Coefficient))
	}
	if p.Strategy != retry.Immediate {
		add("max_interval", "Cap", format.Duration(p.MaxInterval))
		add("jitter", "Jitter", jitterWords(p.Jitter))
	}
	add("non_retryable_errors", "Never retried", "nothing")
	if len(p.NonRetryable) > 0 {
		all[len(all)-1].codes = p.NonRetryable
	}
	add("on_exhaustion", "On exhaustion", templates.ActionWord(p.OnExhaustion))
	add("ttr", "Time limit", timeLimit(j.Timeout))
	return all
}

func jitterWords(j retry.Jitter) string {
	if !j.On() {
		return "off"
	}
	return format.Jitter(j)
}

// originWords says whose word a field is; see [job.Origins].
func originWords(code string) string {
	place, kind, name := code, "", ""
	for _, k := range []string{"preset", "policy"} {
		if i := strings.LastIndex(code, "/"+k+":"); i >= 0 {
			place, kind, name = code[:i], k, code[i+len(k)+2:]
		}
	}
	if kind != "" {
		return kind + " " + format.Visible(name) + ", named by " + placeWords(place)
	}
	switch who, what, _ := strings.Cut(place, ":"); who {
	case "":
		return ""
	case "built_in":
		return "built in"
	case "rule":
		return "set by the rule " + format.Visible(what)
	}
	return "from " + placeWords(place)
}

func placeWords(place string) string {
	switch who, what, _ := strings.Cut(place, ":"); who {
	case "job":
		return "the job itself"
	case "replay":
		return "a replay"
	case "type", "queue", "rule":
		return "the " + who + " " + format.Visible(what)
	case "default":
		return "the configured default"
	}
	return format.Visible(place)
}
