package rules

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/retry"
)

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

		// A condition that fails matches nothing, and is noted.
		matches, err := r.when.holds(facts, facts.Job)
		if err == nil && matches {
			if r.Refuse != "" {
				return strings.Join(notes, "; "), &Refused{r.Name, r.Refuse}
			}

			err = r.change(j, apply)
			if err == nil {
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

	c.Job.Meta, err = merge(j.Meta, r.Meta)
	if err != nil {
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
