package jobpage

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// decider is one of those who may decide about a failed attempt, and what it said.
type decider struct {
	text    string
	code    string // the stable code, of the one that decided
	decided bool
}

const (
	noRules   = "Rules: no rule matched"
	noVerdict = "Handler: no verdict"
	unasked   = "Handler: not asked"
	notAsked  = "Policy: not asked"
)

// decidersOf explains who chose the fate of a job after an attempt: the
// operator's rules, the handler, or the policy, in this order. An unknown code
// is shown as it is.
func decidersOf(a job.Attempt) []decider {
	who, what, _ := strings.Cut(a.DecidedBy, ":")
	kind, detail, _ := strings.Cut(what, ":")
	switch {
	case a.DecidedBy == "":
		return nil
	case who == "policy":
		if text := policySaid(a, kind, detail); text != "" {
			return []decider{{text: noRules}, {text: cmp.Or(handlerEnded(a.Outcome), noVerdict)}, decided("Policy: "+text, a)}
		}
	case who == "handler":
		if text := handlerSaid(a, what); text != "" {
			return []decider{{text: noRules}, decided("Handler: "+text, a), {text: policyAfter(a)}}
		}
	case who == "rule":
		handler := cmp.Or(handlerEnded(a.Outcome), unasked)
		return []decider{decided("Rules: "+format.Visible(what)+" "+ruled(a.Action), a), {text: handler}, {text: policyAfter(a)}}
	case who == "envelope":
		return []decider{{text: noRules}, decided("Envelope: set aside, "+templates.Explain(retry.Reason(what)).Short, a), {text: notAsked}}
	}

	return decidersUnrun(a, who)
}

// decidersUnrun is for a job that no handler was given.
func decidersUnrun(a job.Attempt, who string) []decider {
	rules, action := decider{text: "Rules: not asked"}, templates.ActionWord(a.Action)
	switch who {
	case "unknown_type":
		return []decider{rules, decided("Handler: none for this type, so "+action, a), {text: notAsked}}
	case "source":
		if a.Outcome == job.Succeeded {
			return []decider{{text: "Its source: it succeeded", decided: true}}
		}
		return []decider{{text: "Its source", decided: true}}
	case "expired":
		return []decider{decided("Time to live: ended before it ran, so "+action, a), rules, {text: unasked}, {text: notAsked}}
	}

	return []decider{decided(format.UpperFirst(action), a)}
}

// ruled is what a rule did with a job.
func ruled(a retry.Action) string {
	return cmp.Or(map[retry.Action]string{
		retry.Retry:      "retried the job",
		retry.DeadLetter: "dead-lettered the job",
		retry.Discard:    "discarded the job",
	}[a], "decided "+templates.ActionWord(a))
}

// decided is the one that decided. Its stable code is shown too, for a user who
// searches the logs or the API for it.
func decided(text string, a job.Attempt) decider {
	return decider{text: text, code: format.Visible(a.DecidedBy), decided: true}
}

// policySaid is empty for a code that is not known.
func policySaid(a job.Attempt, kind, detail string) string {
	switch kind {
	case "retry":
		used, limit, _ := strings.Cut(detail, "/")
		return "retry, attempt " + format.Visible(used) + " of " + format.Visible(limit)
	case "exhausted":
		return templates.ActionWord(a.Action) + ", exhausted"
	case "non_retryable":
		return templates.ActionWord(a.Action) + ", " + format.Visible(detail) + " is never retried"
	}

	return ""
}

// handlerEnded says how a handler ended that could not give a verdict.
func handlerEnded(o job.Outcome) string {
	return map[job.Outcome]string{
		job.Lost:     "Handler: gone",
		job.TimedOut: "Handler: timed out",
		job.Panicked: "Handler: panicked",
	}[o]
}

// handlerSaid is empty for a code that is not known.
func handlerSaid(a job.Attempt, what string) string {
	switch what {
	case "success":
		return "success"
	case "not_retryable":
		return "dead letter, not retryable"
	case string(retry.CodeDeadLetter):
		return "dead letter"
	case string(retry.CodeDiscard):
		return "discard"
	case string(retry.CodeFail):
		return "failed permanently, no dead letter"
	case string(retry.CodeRetry), "retry_after", "retryable":
		if a.Delay != nil && a.Delay.Source == retry.FromHandler {
			return "retry after " + format.Duration(a.Delay.Raw)
		}
		return "retry"
	}

	return ""
}

// policyAfter is what was left to the policy when something else decided.
func policyAfter(a job.Attempt) string {
	switch {
	case a.Delay == nil || a.Delay.Source == retry.FromRule:
		return notAsked
	case a.Delay.Source == retry.FromHandler:
		return "Policy: allows another attempt"
	case strings.HasPrefix(a.DecidedBy, "rule:"):
		return "Policy: gives the delay"
	}

	return "Policy: allows another attempt, gives the delay"
}

// ruleOf is the name of the rule that decided, or empty.
func ruleOf(a *job.Attempt) string {
	if a == nil {
		return ""
	}

	name, _ := strings.CutPrefix(a.DecidedBy, "rule:")
	if name == a.DecidedBy {
		return ""
	}

	return name
}

// delaySteps writes down how a delay came about, step by step; the last one is
// the delay. entries is the schedule of the job's policy, if it has one. The
// figures are those that were stored with the attempt: none is computed again.
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
		drew := "×" + format.Decimal(d.Factor, 4) // with which the sum adds up
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
