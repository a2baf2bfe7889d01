package jobpage

import (
	"cmp"
	"strings"

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
	noRules  = "Rules: none decided"
	noAnswer = "Handler: no answer"
	unasked  = "Handler: not asked"
	notAsked = "Policy: not asked"
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
			return []decider{{text: noRules}, {text: handlerBefore(a, kind)}, decided("Policy: "+text, a)}
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
	case "expired":
		return []decider{decided("Time to live: ended before it ran, so "+action, a), rules, {text: unasked}, {text: notAsked}}
	}
	return []decider{decided(format.UpperFirst(action), a)}
}

// ruled is what a rule did with a job: "retried it".
func ruled(a retry.Action) string {
	return cmp.Or(map[retry.Action]string{
		retry.Retry:      "retried it",
		retry.DeadLetter: "dead-lettered it",
		retry.Discard:    "discarded it",
	}[a], "decided "+templates.ActionWord(a))
}

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

// handlerBefore is what the handler said when the policy decided. An answer
// that asks for another attempt does not survive the last one.
func handlerBefore(a job.Attempt, kind string) string {
	if kind == "exhausted" {
		return cmp.Or(handlerEnded(a.Outcome), "Handler: did not end it")
	}
	return cmp.Or(handlerEnded(a.Outcome), noAnswer)
}

// handlerEnded says how a handler ended that could not answer.
func handlerEnded(o job.Outcome) string {
	return map[job.Outcome]string{
		job.Lost:     "Handler: gone",
		job.TimedOut: "Handler: no answer in time",
		job.Panicked: "Handler: panicked",
	}[o]
}

// handlerSaid is empty for a code that is not known.
func handlerSaid(a job.Attempt, what string) string {
	switch what {
	case "success":
		return "success"
	case "not_retryable":
		return "dead letter, retrying is futile"
	case string(retry.CodeDeadLetter):
		return "dead letter"
	case string(retry.CodeDiscard):
		return "discard"
	case string(retry.CodeFail):
		return "fail for good, no dead letter"
	case string(retry.CodeRetry), "retry_after", "retryable":
		if a.Delay != nil && a.Delay.Source == retry.FromHandler {
			return "retry after " + format.Duration(a.Delay.Raw)
		}
		return "retry"
	}
	return ""
}

// policyAfter is what was left to the policy when somebody else decided.
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
