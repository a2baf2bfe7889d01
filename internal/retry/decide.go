package retry

import (
	"fmt"
	"time"
)

// Action is what becomes of a job after an attempt.
type Action string

const (
	Complete   Action = "complete"    // it succeeded
	Retry      Action = "retry"       // it runs again after a delay
	DeadLetter Action = "dead_letter" // it is kept as a dead letter, for a person
	Discard    Action = "discard"     // it ends without a dead letter
)

// Code is the answer with which a handler overrides the policy, in the words
// of the Open Job Spec.
type Code string

const (
	CodeRetry      Code = "RETRY"       // try again, with the policy's delay
	CodeDiscard    Code = "DISCARD"     // never again, and no dead letter
	CodeDeadLetter Code = "DEAD_LETTER" // never again: a person shall look
	CodeFail       Code = "FAIL"        // as DISCARD, for a failure that the handler recognised
)

// Valid reports whether c is empty or one of the four codes.
func (c Code) Valid() bool {
	switch c {
	case "", CodeRetry, CodeDiscard, CodeDeadLetter, CodeFail:
		return true
	}
	return false
}

// Reason says, as a stable code, why a job ended without success.
type Reason string

const (
	AttemptsExhausted Reason = "attempts_exhausted"  // the last allowed attempt failed
	NonRetryable      Reason = "non_retryable"       // the error's type is listed in the policy
	HandlerDeadLetter Reason = "handler_dead_letter" // the handler answered DEAD_LETTER, or that retrying is futile
	HandlerDiscard    Reason = "handler_discard"     // the handler answered DISCARD or FAIL
	UnknownType       Reason = "unknown_type"        // no handler is configured for the type
	Manual            Reason = "manual"              // a person decided
)

// Reasons lists every reason.
func Reasons() []Reason {
	return []Reason{AttemptsExhausted, NonRetryable, HandlerDeadLetter, HandlerDiscard, UnknownType, Manual}
}

// Answer is what a handler said about its own failure. The zero value is no
// answer: the policy decides alone.
type Answer struct {
	Code       Code
	Retryable  *bool          // false: as DEAD_LETTER; true: as RETRY
	RetryAfter *time.Duration // replaces the policy's delay, under its cap
}

// Unknown says what becomes of a job whose type no handler knows.
type Unknown string

const (
	UnknownHold       Unknown = "hold"        // it waits until there is a handler: no attempt is made
	UnknownFail       Unknown = "fail"        // it fails, and its policy decides
	UnknownDeadLetter Unknown = "dead_letter" // it becomes a dead letter at once
	UnknownDelete     Unknown = "delete"      // it is discarded at once
)

// Valid reports whether u is one of the four.
func (u Unknown) Valid() bool {
	return u == UnknownHold || u == UnknownFail || u == UnknownDeadLetter || u == UnknownDelete
}

// Failure is one failed attempt, as far as the rules care.
type Failure struct {
	Attempt int    // completed cycles in this run, this one included
	Type    string // the error's type, as "http.503"
	Answer  Answer
	Unknown Unknown // set when no handler knew the job's type
}

// Decision is the fate of a job after a failed attempt, and who chose it.
type Decision struct {
	Action Action
	Reason Reason // empty when the action is Retry
	By     string // stable code: "handler:DEAD_LETTER", "policy:exhausted:3/3"
	Delay  *Delay // set when the action is Retry
}

// Decide chooses the fate of a job after a failed attempt. The handler's
// answer goes before the policy, except that no answer allows an attempt
// beyond MaxAttempts; within the policy, the list of errors that are never
// retried goes before the number of attempts. This is the only place where
// that happens, for the engine and the reaper alike.
func (p Policy) Decide(f Failure, random func() float64) Decision {
	d := p.decide(f, random)
	if f.Unknown != "" && d.Action != Retry {
		d.Reason = UnknownType
	}
	return d
}

func (p Policy) decide(f Failure, random func() float64) Decision {
	switch by := "unknown_type:" + string(f.Unknown); f.Unknown {
	case UnknownDeadLetter:
		return Decision{Action: DeadLetter, By: by}
	case UnknownDelete:
		return Decision{Action: Discard, By: by}
	}
	if d, ok := p.answered(f.Answer); ok {
		return d
	}
	wantsRetry := f.Answer.wantsRetry()
	if entry, ok := p.MatchNonRetryable(f.Type); ok && !wantsRetry {
		return Decision{Action: p.OnExhaustion, Reason: NonRetryable, By: "policy:non_retryable:" + entry}
	}
	used := fmt.Sprintf("%d/%d", f.Attempt, p.Limit())
	if f.Attempt >= p.Limit() {
		return Decision{Action: p.OnExhaustion, Reason: AttemptsExhausted, By: "policy:exhausted:" + used}
	}
	d := Decision{Action: Retry, By: "policy:retry:" + used}
	var delay Delay
	if f.Answer.RetryAfter != nil {
		delay = p.after(f.Attempt, *f.Answer.RetryAfter)
		d.By = "handler:retry_after"
	} else {
		delay = p.Delay(f.Attempt, random)
	}
	if f.Answer.Code == CodeRetry {
		d.By = "handler:RETRY"
	} else if f.Answer.RetryAfter == nil && wantsRetry {
		d.By = "handler:retryable"
	}
	d.Delay = &delay
	return d
}

// answered returns the decision of a handler that ended its job.
func (p Policy) answered(a Answer) (Decision, bool) {
	switch {
	case a.Code == CodeDiscard || a.Code == CodeFail:
		return Decision{Action: Discard, Reason: HandlerDiscard, By: "handler:" + string(a.Code)}, true
	case a.Code == CodeDeadLetter:
		return Decision{Action: DeadLetter, Reason: HandlerDeadLetter, By: "handler:DEAD_LETTER"}, true
	case a.Code == "" && a.Retryable != nil && !*a.Retryable:
		return Decision{Action: DeadLetter, Reason: HandlerDeadLetter, By: "handler:not_retryable"}, true
	}
	return Decision{}, false
}

// wantsRetry reports whether the handler asked for another attempt.
func (a Answer) wantsRetry() bool {
	return a.Code == CodeRetry || a.RetryAfter != nil || a.Retryable != nil && *a.Retryable
}
