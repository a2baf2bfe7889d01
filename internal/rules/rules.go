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
// only what cannot run away: functions.go and inspector.go hold the list. Each allowed
// thing takes time and memory linear in the size of the job, and its cost (cost.go) is
// added up over an expression, and over a list of rules; what is too much is refused at
// start. So no rule needs a clock to watch it. A rule sees the job, the attempt
// and the error, and nothing else: no time of day, no environment, no state.
// The same job gives the same answer.
//
// An expression goes through three steps. The inspector walks the tree that the
// parser made: it refuses what is not allowed and counts the cost of the rest.
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
	"errors"
	"time"

	"redrive/internal/invalid"
	"redrive/internal/retry"
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

	s, names, cost := &Set{}, map[string]bool{}, 0
	var all problems
	for i, rule := range before {
		r := enqueueRule{EnqueueRule: rule}
		wrong := r.compile(names)
		wrong.checkCost(&cost, r.when)
		all = append(all, wrong.at("before_enqueue", i)...)
		s.before = append(s.before, r)
	}

	// A list has its own names and its own limit of costs.
	clear(names)

	cost = 0
	for i, rule := range after {
		r := failureRule{FailureRule: rule}
		wrong := r.compile(names)
		wrong.checkCost(&cost, r.when, r.delay)
		all = append(all, wrong.at("after_failure", i)...)
		s.after = append(s.after, r)
	}

	if len(all) > 0 {
		return nil, errors.Join(all...)
	}

	return s, nil
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
