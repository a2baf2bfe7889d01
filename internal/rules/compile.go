package rules

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/wire"
)

// problems are each a *invalid.Error about a field of a rule.
type problems []error

// add adds what is wrong with a field; without a name, with the whole rule.
func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, invalid.Errorf(field, format, args...))
}

// at puts the place of a rule before the fields.
func (p problems) at(list string, i int) problems {
	for _, err := range p {
		if wrong, ok := errors.AsType[*invalid.Error](err); ok {
			wrong.Field = strings.TrimSuffix(fmt.Sprintf("%s[%d].%s", list, i, wrong.Field), ".")
		}
	}

	return p
}

// checkCost adds the cost of a rule to that of the rules before it. That it is too much
// is said once.
func (p *problems) checkCost(sum *int, of ...*expression) {
	before := *sum
	for _, x := range of {
		if x != nil {
			*sum += x.cost
		}
	}

	if *sum > maxListCost && before <= maxListCost {
		p.add("when", "from here on, the rules of this list together cost too much for the largest job (%d of %d); do less with the payload",
			*sum/job.MaxPayload, maxListCost/job.MaxPayload)
	}
}

// condition compiles the condition of a rule.
func (p *problems) condition(source string, facts any) *expression {
	x, err := compile(source, facts, condition)
	if err != nil {
		p.add("when", "%v", err)
	}

	return x
}

var ruleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// checkName refuses names that could not be told apart where attempts and notes
// show them.
func (p *problems) checkName(name string, seen map[string]bool) {
	switch {
	case !ruleName.MatchString(name):
		p.add("name", "%q is not the name of a rule: letters, digits, dot, dash and underscore, at most 64", clip.Text(name, 64))
	case name == None:
		p.add("name", "%q is reserved for examples in which no rule matches", name)
	case seen[name]:
		p.add("name", "%q is the name of two rules in this list", name)
	}

	seen[name] = true
}

// compile checks a rule and makes its condition ready.
func (r *enqueueRule) compile(names map[string]bool) (wrong problems) {
	wrong.checkName(r.Name, names)

	sets := r.Queue != "" || r.TTR != 0 || r.Policy != (retry.Patch{}) || r.Priority != nil || len(r.Meta) > 0
	switch {
	case r.Refuse == "" && !sets:
		wrong.add("", "the rule does nothing; set ttr, queue, policy, priority or meta, or refuse")
	case r.Refuse != "" && sets:
		wrong.add("refuse", "cannot be combined with other settings: a refused job is not enqueued")
	case len(r.Refuse) > job.MaxNote:
		wrong.add("refuse", "is longer than %d bytes", job.MaxNote)
	}

	if r.Queue != "" && job.CheckQueue(r.Queue) != nil {
		wrong.add("queue", "%q is not a queue name", clip.Text(r.Queue, 64))
	}

	if p := r.Priority; p != nil && (*p < -job.MaxPriority || *p > job.MaxPriority) {
		wrong.add("priority", "%d is not between %d and %d", *p, -job.MaxPriority, job.MaxPriority)
	}

	r.when = wrong.condition(r.When, enqueueFacts{})

	return wrong
}

// compile checks a rule and makes its condition and its delay ready. Without an action
// that there is, nothing is said about what goes with it.
func (r *failureRule) compile(names map[string]bool) (wrong problems) {
	wrong.checkName(r.Name, names)

	switch r.Action {
	case retry.Retry:
		if r.MaxAttempts < 0 {
			wrong.add("max_attempts", "must be at least 1")
		}

		if r.MaxAttempts > retry.MaxAttempts {
			wrong.add("max_attempts", "%d is too many; a run has at most 10,000 attempts", r.MaxAttempts)
		}
	case retry.DeadLetter, retry.Discard:
		if r.Delay != "" {
			wrong.add("delay", "requires the action retry")
		}

		if r.MaxAttempts != 0 {
			wrong.add("max_attempts", "requires the action retry")
		}
	default:
		actions := []string{string(retry.Retry), string(retry.DeadLetter), string(retry.Discard)}
		wrong.add("action", "%q is unknown%s; use retry, dead_letter or discard",
			clip.Text(string(r.Action), 64), invalid.DidYouMean(string(r.Action), actions))
	}

	r.when = wrong.condition(r.When, failureFacts{})
	r.compileDelay(&wrong)

	return wrong
}

// compileDelay reads a delay: a duration if it is one, else an expression.
func (r *failureRule) compileDelay(wrong *problems) {
	if r.Delay == "" {
		return
	}

	// "30s" or "seconds(5 * attempt.number)"
	d, notADuration := wire.ParseDuration(r.Delay)
	if notADuration == nil {
		r.fixed = &d
		return
	}

	var err error

	r.delay, err = compile(r.Delay, failureFacts{}, wait)
	if err != nil {
		wrong.add("delay", "is neither a duration such as 30s nor a valid expression: %v", err)
	}
}
