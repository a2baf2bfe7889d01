package retry

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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
	CodeDeadLetter Code = "DEAD_LETTER" // never again: a person has to look
	CodeFail       Code = "FAIL"        // like DISCARD, for a failure that the handler recognised
)

// Valid reports whether c is empty or one of the four codes.
func (c Code) Valid() bool {
	return slices.Contains([]Code{"", CodeRetry, CodeDiscard, CodeDeadLetter, CodeFail}, c)
}

// Reason says, as a stable code, why a job ended without success.
type Reason string

const (
	AttemptsExhausted Reason = "attempts_exhausted"  // the last allowed attempt failed
	NonRetryable      Reason = "non_retryable"       // the error's type is listed in the policy
	HandlerDeadLetter Reason = "handler_dead_letter" // the handler answered DEAD_LETTER, or that retrying is futile
	HandlerDiscard    Reason = "handler_discard"     // the handler answered DISCARD or FAIL
	RuleDecided       Reason = "rule"                // a rule of the operator decided
	UnknownType       Reason = "unknown_type"        // no handler is configured for the type
	Expired           Reason = "expired"             // its time to live ended before it ran
	Manual            Reason = "manual"              // a person decided
	GoneAtSource      Reason = "gone_at_source"      // the dead letter of a source is no longer there
	ReasonUnknown     Reason = "unknown"             // the source of the job does not say
)

// The reasons for which an envelope of BabelQueue is set aside before anything
// runs. Its bytes are kept as they came.
const (
	NotJSON            Reason = "not_json"                   // it is not a JSON object that can be read exactly
	MissingURN         Reason = "missing_urn"                // it does not say what it is
	MissingMeta        Reason = "missing_meta"               // it has no meta object
	InvalidData        Reason = "invalid_data"               // its data is not an object or array
	MissingTraceID     Reason = "missing_trace_id"           // it has no trace id
	InvalidAttempts    Reason = "invalid_attempts"           // its attempts are not a whole number from zero on
	UnsupportedVersion Reason = "unsupported_schema_version" // it was written by a newer producer
)

// Poison lists the reasons for which an envelope is set aside.
func Poison() []Reason {
	return []Reason{NotJSON, MissingURN, MissingMeta, InvalidData, MissingTraceID, InvalidAttempts, UnsupportedVersion}
}

// ReplayHelps reports whether another run can end otherwise: the bytes of an envelope that
// was set aside stay as they are, but a newer Redrive may know its version.
func (r Reason) ReplayHelps() bool {
	return r == UnsupportedVersion || !slices.Contains(Poison(), r)
}

// Reasons lists every reason.
func Reasons() []Reason {
	return append([]Reason{
		AttemptsExhausted, NonRetryable, HandlerDeadLetter, HandlerDiscard, RuleDecided, UnknownType, Expired, Manual, GoneAtSource,
		ReasonUnknown,
	}, Poison()...)
}

// Answer is what a handler said about its own failure. The zero value is no
// answer: the policy decides alone.
type Answer struct {
	Code       Code
	Poison     Reason         // the job is an envelope that cannot be read: a dead letter for this reason
	Retryable  *bool          // false: like DEAD_LETTER; true: like RETRY
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

// Ruling is what a rule of the operator said about a failure. It goes before
// the handler's answer and the policy.
type Ruling struct {
	Rule   string         // the rule's name
	Action Action         // Retry, DeadLetter or Discard
	Delay  *time.Duration // before the retry; nil: the policy's own
	Limit  int            // executions up to which the rule retries, beyond the policy's or below; 0: the policy's
}

// Failure is one failed attempt, as far as the rules care.
type Failure struct {
	Attempt int     // completed cycles in this run, this one included
	Type    string  // the error's type, such as "http.503"
	Ruling  *Ruling // nil: no rule spoke
	Answer  Answer
	Unknown Unknown // set when no handler knew the job's type
	Expired Action  // set when the job's time to live ended before it ran: what becomes of it
}

// Decision is the fate of a job after a failed attempt, and who chose it.
type Decision struct {
	Action Action
	Reason Reason // empty when the action is Retry
	By     string // stable code: "handler:DEAD_LETTER", "policy:exhausted:3/3"
	Delay  *Delay // set when the action is Retry
}

// Decide chooses the fate of a job after a failed attempt. Before everything go
// a type that no handler knows, where that means dead_letter or delete, and a
// time to live that is over: then neither rule, answer nor policy is asked. A rule
// goes before the handler's answer, and that before the policy, except that no
// answer allows an attempt beyond MaxAttempts, and no rule one beyond its own
// limit: then it is as if it had said nothing. Within the policy, the list of
// errors that are never retried goes before the number of attempts. This is the
// only place where that happens, for the engine and the reaper alike.
func (p Policy) Decide(f Failure, random func() float64) Decision {
	d := p.decide(f, random)
	if f.Unknown != "" && d.Action != Retry {
		d.Reason = UnknownType
	}

	return d
}

func (p Policy) decide(f Failure, random func() float64) Decision {
	by := "unknown_type:" + string(f.Unknown)
	switch f.Unknown {
	case UnknownDeadLetter:
		return Decision{Action: DeadLetter, By: by}
	case UnknownDelete:
		return Decision{Action: Discard, By: by}
	}

	if f.Expired != "" {
		return Decision{Action: f.Expired, Reason: Expired, By: "expired:" + string(f.Expired)}
	}

	// A rule goes before the answer of the handler, and that before the policy.
	if d, ok := p.ruled(f, random); ok {
		return d
	}

	if d, ok := p.answered(f.Answer); ok {
		return d
	}

	wantsRetry := f.Answer.wantsRetry()

	// A handler that asks for a retry goes before the list of errors, but not before the limit.
	if entry, ok := p.MatchNonRetryable(f.Type); ok && !wantsRetry {
		return Decision{Action: p.OnExhaustion, Reason: NonRetryable, By: "policy:non_retryable:" + entry}
	}

	used := fmt.Sprintf("%d/%d", f.Attempt, p.LimitAt(f.Attempt))
	if f.Attempt >= p.Limit() {
		return Decision{Action: p.OnExhaustion, Reason: AttemptsExhausted, By: "policy:exhausted:" + used}
	}

	d := Decision{Action: Retry, By: "policy:retry:" + used}
	var delay Delay
	if f.Answer.RetryAfter != nil {
		delay = p.delay(FromHandler, f.Attempt, *f.Answer.RetryAfter) // never spread
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

// ruled returns the decision of a rule.
func (p Policy) ruled(f Failure, random func() float64) (Decision, bool) {
	if f.Ruling == nil {
		return Decision{}, false
	}

	d := Decision{Action: f.Ruling.Action, By: "rule:" + f.Ruling.Rule}
	if d.Action != Retry {
		d.Reason = RuleDecided
		return d, true
	}

	// At the limit the rule decides nothing, and the handler and the policy do.
	if f.Attempt >= cmp.Or(f.Ruling.Limit, p.Limit()) {
		return Decision{}, false
	}

	var delay Delay
	if f.Ruling.Delay != nil {
		delay = p.delay(FromRule, f.Attempt, *f.Ruling.Delay)
	} else {
		delay = p.Delay(f.Attempt, random)
	}

	d.Delay = &delay

	return d, true
}

// answered returns the decision of a handler that ended its job.
func (p Policy) answered(a Answer) (Decision, bool) {
	switch {
	case a.Poison != "":
		return Decision{Action: DeadLetter, Reason: a.Poison, By: "envelope:" + string(a.Poison)}, true
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

// Source says where a delay came from.
type Source string

const (
	FromPolicy  Source = "policy"
	FromHandler Source = "handler" // the handler answered with a retry-after
	FromRule    Source = "rule"    // a rule of the operator set it
)

// Delay is one computed delay with its whole calculation: Raw by the strategy,
// Capped by Cap, multiplied by Factor, capped again: Final. It repeats the
// policy's figures because a job's policy can change at a replay, and the
// explanation of an old attempt must not.
type Delay struct {
	Source      Source        `json:"source"`
	Strategy    Strategy      `json:"strategy,omitempty"` // empty when the handler chose
	Retry       int           `json:"retry"`              // n: 1 after the first failed attempt
	Initial     time.Duration `json:"initial,omitempty"`
	Coefficient float64       `json:"coefficient,omitempty"`
	Raw         time.Duration `json:"raw"`
	Cap         time.Duration `json:"cap"`
	Capped      time.Duration `json:"capped"`
	Jitter      Jitter        `json:"jitter,omitzero"`
	Factor      float64       `json:"factor"` // 1 when jitter is off
	Final       time.Duration `json:"final"`
}

// Delay computes the wait before retry n, n = 1 after the first failed
// attempt. random returns numbers in [0, 1) and is not called when jitter is
// off. The result is never negative and never above MaxInterval, at any n and
// coefficient.
func (p Policy) Delay(n int, random func() float64) Delay {
	n = max(n, 1)

	d := p.delay(FromPolicy, n, p.raw(n))

	d.Strategy, d.Initial = p.Strategy, p.InitialInterval
	d.Coefficient, d.Jitter = p.Coefficient, p.Jitter
	if p.Jitter.On() {
		d.Factor = p.Jitter.factor(random)
		d.Final = p.cut(d.Capped, d.Factor)
	}
	// The store keeps microseconds; cutting never lifts a delay over its cap.
	d.Final = d.Final.Truncate(time.Microsecond)

	return d
}

// factor draws one of the factors of a jitter that is on.
func (j Jitter) factor(random func() float64) float64 { return j.Low + random()*(j.High-j.Low) }

// cut multiplies a delay and caps it again.
func (p Policy) cut(d time.Duration, factor float64) time.Duration {
	return min(saturate(float64(d)*factor), p.MaxInterval)
}

func (p Policy) delay(source Source, n int, raw time.Duration) Delay {
	capped := max(0, min(raw, p.MaxInterval))
	return Delay{Source: source, Retry: n, Raw: raw, Cap: p.MaxInterval, Capped: capped, Factor: 1, Final: capped}
}

// raw is the strategy's own delay, before any cap.
func (p Policy) raw(n int) time.Duration {
	initial, number := float64(p.InitialInterval), float64(n)
	switch p.Strategy {
	case Constant:
		return p.InitialInterval
	case Linear:
		return saturate(initial * number)
	case Exponential:
		return saturate(initial * math.Pow(p.Coefficient, number-1))
	case Polynomial:
		return saturate(initial * math.Pow(number, p.Coefficient))
	case Schedule:
		if len(p.Schedule) > 0 {
			return p.Schedule[min(n, len(p.Schedule))-1]
		}
	}

	return 0
}

// saturate converts without overflow: what does not fit is the longest
// duration there is.
func saturate(d float64) time.Duration {
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(d)
}
