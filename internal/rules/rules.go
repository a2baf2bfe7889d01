// Package rules lets an operator decide, in a line of configuration, what no
// policy can say: with which time limit, queue or policy a job is enqueued, and
// what becomes of a job that failed.
//
// A rule is a condition and what follows from it. The rules of a list are asked
// in order and the first that matches decides. What a rule can say is plain
// data, [EnqueueRule] and [FailureRule]; [New] compiles it or says which field
// of which rule is wrong.
//
// Conditions are expressions of github.com/expr-lang/expr, and of that language
// only what cannot run away: inspect.go holds the list. Each allowed thing takes
// time and memory linear in the size of the job, and inspect.go adds up how much of
// it an expression does, and all of a list; what is too much is refused at
// start. So no rule needs a clock to watch it. A rule sees the job, the attempt
// and the error, and nothing else: no time of day, no environment, no state.
// The same job gives the same answer.
//
// An expression goes through three steps. The inspector walks the tree that the
// parser made: it refuses what is not allowed and counts the work of the rest.
// The mender then changes the tree where the language would surprise, above all
// with durations. What the compiler makes of it is run by a virtual machine whose
// memory is bounded, for as many jobs at a time as there are; nothing is shared
// between two runs but the program.
//
// A rule that fails while it runs (a payload without the member that it reads,
// a division by zero) is skipped with a note for the person who looks at the
// job, and the next one is asked. It never fails the job.
package rules

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/wire"
)

// maxRules bounds each of the two lists.
const maxRules = 100

const tooMany = "has more than 100 rules"

// EnqueueRule changes a job before it is enqueued, or refuses it. Fields that
// are zero change nothing.
type EnqueueRule struct {
	Name, When string
	Refuse     string // what the producer is told; nothing else may stand beside it
	Queue      string
	TTR        time.Duration
	Policy     retry.Patch
	Priority   *int
	Meta       map[string]string // merged into the job's own
}

// FailureRule decides about a job that failed.
type FailureRule struct {
	Name, When  string
	Action      retry.Action // Retry, DeadLetter or Discard
	Delay       string       // before the retry: a duration, or an expression that gives one; empty: the policy's
	MaxAttempts int          // executions up to which the rule retries, also beyond the policy's limit; 0: the policy's limit
}

// Refused is the error of a job that a rule refused.
type Refused struct{ Rule, Text string }

func (r *Refused) Error() string { return r.Text }

// Set is two lists of rules, ready to be asked. Its methods are safe for
// concurrent use; nil is the set without rules.
type Set struct {
	before []enqueueRule
	after  []failureRule
}

// enqueueRule is a rule with its compiled condition.
type enqueueRule struct {
	EnqueueRule
	when *expression
}

// failureRule is a rule with its compiled condition, and a delay that is either
// fixed or an expression.
type failureRule struct {
	FailureRule
	when  *expression
	fixed *time.Duration
	delay *expression
}

// New compiles rules. It returns a *invalid.Error for each thing that is wrong,
// joined, whose field is a path such as "before_enqueue[0].when", or that of the rule
// when it is about the whole of it.
func New(before []EnqueueRule, after []FailureRule) (*Set, error) {
	if len(before) > maxRules {
		return nil, &invalid.Error{Field: "before_enqueue", Problem: tooMany}
	}

	if len(after) > maxRules {
		return nil, &invalid.Error{Field: "after_failure", Problem: tooMany}
	}

	s, names, work := &Set{}, map[string]bool{}, 0
	var all problems
	for i, rule := range before {
		r := enqueueRule{EnqueueRule: rule}
		wrong := r.compile(names)
		wrong.checkWork(&work, r.when)
		all = append(all, wrong.at("before_enqueue", i)...)
		s.before = append(s.before, r)
	}

	clear(names)

	work = 0
	for i, rule := range after {
		r := failureRule{FailureRule: rule}
		wrong := r.compile(names)
		wrong.checkWork(&work, r.when, r.delay)
		all = append(all, wrong.at("after_failure", i)...)
		s.after = append(s.after, r)
	}

	if len(all) > 0 {
		return nil, errors.Join(all...)
	}

	return s, nil
}

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

// checkWork adds the work of a rule to that of the rules before it. That it is too much
// is said once.
func (p *problems) checkWork(sum *int, of ...*expression) {
	before := *sum
	for _, x := range of {
		if x != nil {
			*sum += x.work
		}
	}

	if *sum > maxListWork && before <= maxListWork {
		p.add("when", "from here on, the rules of this list together cost too much for the largest job (%d of %d); do less with the payload",
			*sum/job.MaxPayload, maxListWork/job.MaxPayload)
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

// Len is the number of rules.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.before) + len(s.after)
}

// None is what stands for a rule where none matched; no rule has this name.
const None = "none"

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

	d, notADuration := wire.ParseDuration(r.Delay)
	if notADuration == nil {
		r.fixed = &d
		return
	}

	var err error
	if r.delay, err = compile(r.Delay, failureFacts{}, wait); err != nil {
		wrong.add("delay", "is neither a duration such as 30s nor a valid expression: %v", err)
	}
}

// Change is what a rule wants of a job that is about to be enqueued.
type Change struct {
	Rule   string
	Job    job.Job // with the rule's queue, priority and meta
	TTR    time.Duration
	Policy retry.Patch
}

// BeforeEnqueue asks the rules about a job that is about to be enqueued. apply
// takes the change of the rule that matches; when it cannot, with an error that
// says why, that is noted and the next rule is asked. The error is a *Refused.
func (s *Set) BeforeEnqueue(j job.Job, apply func(Change) error) (note string, err error) {
	if s == nil || len(s.before) == 0 {
		return "", nil
	}

	var notes []string
	facts := enqueueFacts{newJobFacts(j)}
	for i := range s.before {
		r := &s.before[i]
		matches, err := r.when.holds(facts, facts.Job)
		if err == nil && matches {
			if r.Refuse != "" {
				return strings.Join(notes, "; "), &Refused{r.Name, r.Refuse}
			}

			if err = r.change(j, apply); err == nil {
				return strings.Join(append(notes, r.moved(j)...), "; "), nil
			}
		}

		if err != nil {
			notes = append(notes, failed(r.Name, err))
		}
	}

	return strings.Join(notes, "; "), nil
}

// change makes of a job what the rule wants, and hands it to apply.
func (r *enqueueRule) change(j job.Job, apply func(Change) error) (err error) {
	c := Change{Rule: r.Name, Job: j, TTR: r.TTR, Policy: r.Policy}
	c.Job.Queue = cmp.Or(r.Queue, j.Queue)
	if r.Priority != nil {
		c.Job.Priority = *r.Priority
	}

	if c.Job.Meta, err = merge(j.Meta, r.Meta); err != nil {
		return err
	}

	return apply(c)
}

// moved is the note about what no origin tells: where the job would have been.
func (r *enqueueRule) moved(j job.Job) []string {
	var moves []string
	if r.Queue != "" && r.Queue != j.Queue {
		moves = append(moves, "queue "+r.Queue+" instead of "+j.Queue)
	}

	if r.Priority != nil && *r.Priority != j.Priority {
		moves = append(moves, fmt.Sprintf("priority %d instead of %d", *r.Priority, j.Priority))
	}

	if len(moves) == 0 {
		return nil
	}

	return []string{"rule " + r.Name + ": " + strings.Join(moves, ", ")}
}

// AfterFailure asks the rules about an execution that failed. It fits the
// engine's option Rules.
func (s *Set) AfterFailure(j job.Job, e job.Ending) (ruling *retry.Ruling, note string) {
	if s == nil || len(s.after) == 0 || decided(e) {
		return nil, ""
	}

	var notes []string
	facts := newFailureFacts(j, e)
	for i := range s.after {
		ruling, err := s.after[i].rule(facts, j.Policy.Limit())
		if err != nil {
			notes = append(notes, failed(s.after[i].Name, err))
		} else if ruling != nil {
			return ruling, strings.Join(notes, "; ")
		}
	}

	return nil, strings.Join(notes, "; ")
}

// decided reports whether the fate of the job is beyond the reach of rules: see
// [retry.Policy.Decide].
func decided(e job.Ending) bool {
	return e.Expired != "" || e.Unknown == retry.UnknownDeadLetter || e.Unknown == retry.UnknownDelete
}

// rule is the ruling about a failure; nil when the rule does not match.
func (r *failureRule) rule(facts failureFacts, limit int) (*retry.Ruling, error) {
	if r.Action == retry.Retry && facts.Attempt.Number >= cmp.Or(r.MaxAttempts, limit) {
		return nil, nil
	}

	matches, err := r.when.holds(facts, facts.Job)
	if err != nil || !matches {
		return nil, err
	}

	ruling := &retry.Ruling{Rule: r.Name, Action: r.Action, Delay: r.fixed, Limit: r.MaxAttempts}
	if r.delay != nil {
		d, err := r.delay.duration(facts, facts.Job)
		if err != nil {
			return nil, fmt.Errorf("delay: %w", err)
		}

		ruling.Delay = &d
	}

	return ruling, nil
}

// failed is the note about a rule that could not be asked.
func failed(rule string, err error) string {
	return fmt.Sprintf("rule %s failed: %s, skipped", rule, clip.Text(err.Error(), 200))
}
