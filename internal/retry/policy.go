// Package retry holds the rules that decide what becomes of a job that failed.
//
// It is pure: no input or output, no clock, no goroutine. A [Policy] says how
// often and how fast to try again; [Policy.Decide] turns one failed attempt
// into one [Decision]; [Policy.Delay] computes one delay and keeps every step
// of the calculation, so that a page can show it later. Random numbers are passed
// in by the caller.
//
// One structure says what four documented systems say:
//
//	                   Open Job Spec   daycry/jobs       yii2-queue   InitPHP Queue
//	MaxAttempts        3               maxRetries + 1    attempts     maxAttempts (3)
//	Strategy           exponential     exponential       immediate    schedule
//	InitialInterval    1 s             5 s               –            –
//	Coefficient        2.0             2.0               –            –
//	MaxInterval        5 min           5 min             –            –
//	Jitter             0.5 to 1.5      0.85 to 1.15      off          off
//	OnExhaustion       discard         dead letter       discard      dead letter
//
// Redrive's own default is the Open Job Spec's with dead letter on exhaustion:
// the product exists so that failed jobs are seen.
package retry

import (
	"math"
	"slices"
	"strings"
	"time"

	"redrive/internal/invalid"
)

// The limits of what a policy lists.
const (
	MaxEntries   = 100    // of its schedule, and of its errors that are never retried
	MaxAttempts  = 10_000 // of a run; a job that was stored before there was a limit may have more
	MaxErrorType = 255    // bytes of an error's type
)

// Strategy names the curve along which the delays of a policy grow.
type Strategy string

// The six strategies; n is the number of the retry, 1 after the first failure.
const (
	Immediate   Strategy = "immediate"   // 0
	Constant    Strategy = "constant"    // initial
	Linear      Strategy = "linear"      // initial × n
	Exponential Strategy = "exponential" // initial × coefficient^(n−1)
	Polynomial  Strategy = "polynomial"  // initial × n^coefficient
	Schedule    Strategy = "schedule"    // the n-th entry; the last one repeats
)

// Strategies lists every strategy, in the order in which people meet them.
func Strategies() []Strategy {
	return []Strategy{Immediate, Constant, Linear, Exponential, Polynomial, Schedule}
}

// Jitter is the pair of factors between which a delay is multiplied by chance,
// half open: [Low, High). The zero value is off.
type Jitter struct{ Low, High float64 }

// On reports whether delays are spread at all.
func (j Jitter) On() bool { return j != Jitter{} }

// Policy says how often a job is tried, how long it waits in between, and what
// becomes of it in the end. Durations are never negative in a valid policy.
type Policy struct {
	MaxAttempts     int             // executions in one run, the first included, at most [MaxAttempts]; 0 and 1 mean never retried
	Strategy        Strategy        // curve of the delays
	InitialInterval time.Duration   // the first retry's delay
	Coefficient     float64         // base of the power, or the exponent of Polynomial; at least 1
	Schedule        []time.Duration // delays of the strategy Schedule; empty means immediate
	MaxInterval     time.Duration   // cap of every delay, before and after jitter
	Jitter          Jitter
	NonRetryable    []string // error types that are never retried: exact, or a prefix such as "auth.*"
	OnExhaustion    Action   // DeadLetter or Discard
}

// Default is the policy of a job for which no other was configured: the Open Job
// Spec's default, except that an exhausted job becomes a dead letter.
func Default() Policy {
	return Policy{
		MaxAttempts:     3,
		Strategy:        Exponential,
		InitialInterval: time.Second,
		Coefficient:     2,
		MaxInterval:     5 * time.Minute,
		Jitter:          Jitter{0.5, 1.5},
		OnExhaustion:    DeadLetter,
	}
}

// Presets lists the names of the presets: whole policies, each like that of one of
// the documented systems. A policy that names a preset takes every field from it,
// except those that it sets itself.
func Presets() []string { return []string{"ojs", "daycry", "yii2", "initphp", "sidekiq"} }

// Preset returns the policy of that name; the caller owns its lists.
func Preset(name string) (p Policy, ok bool) {
	p = Default()
	switch name {
	case "ojs":
		p.OnExhaustion = Discard
	case "daycry":
		// A job of daycry/jobs that says no maxRetries is never retried
		// (src/Queues/RequeueHelper.php), and retryBackoffStrategy is "none"
		// (src/Config/Jobs.php). A policy that names the preset wants retries: three,
		// as in the examples of its documentation (docs/MIGRATION-v1-to-v3.md), with
		// the figures that src/Config/Jobs.php gives for the exponential strategy.
		p.MaxAttempts, p.InitialInterval, p.Jitter = 4, 5*time.Second, Jitter{0.85, 1.15}
	case "yii2":
		p.MaxAttempts, p.Strategy = 1, Immediate
		p.Jitter, p.OnExhaustion = Jitter{}, Discard
	case "initphp":
		p.Strategy, p.Schedule, p.Jitter = Schedule, []time.Duration{0}, Jitter{}
	case "sidekiq":
		// Its retry: 25 counts retries. It adds 15 s and a random part to each
		// delay, (n−1)^4 + 15 + rand(10)·n seconds, which this leaves out.
		p.MaxAttempts, p.Strategy = 26, Polynomial
		p.Coefficient, p.MaxInterval, p.Jitter = 4, 7*24*time.Hour, Jitter{}
	default:
		return Policy{}, false
	}

	return p, true
}

// Patch is a partial policy: a nil field says nothing.
type Patch struct {
	Use             string // name of a preset or of a policy in the configuration, beneath the fields; see package config
	MaxAttempts     *int
	Strategy        *Strategy
	InitialInterval *time.Duration
	Coefficient     *float64
	Schedule        *[]time.Duration
	MaxInterval     *time.Duration
	Jitter          *Jitter
	NonRetryable    *[]string
	OnExhaustion    *Action
}

// With returns p overridden by what the patch says, field by field. A patch
// that raises the delays past the cap without naming a cap raises the cap too:
// "initial_interval: PT1H" means an hour.
func (p Policy) With(patch Patch) Policy {
	set(&p.MaxAttempts, patch.MaxAttempts)
	set(&p.Strategy, patch.Strategy)
	set(&p.InitialInterval, patch.InitialInterval)
	set(&p.Coefficient, patch.Coefficient)
	set(&p.Schedule, patch.Schedule)
	set(&p.Jitter, patch.Jitter)
	set(&p.NonRetryable, patch.NonRetryable)
	set(&p.OnExhaustion, patch.OnExhaustion)

	if patch.MaxInterval != nil {
		p.MaxInterval = *patch.MaxInterval
		return p
	}

	// Without a cap of its own, a patch can name longer delays than the cap of p.
	if patch.InitialInterval != nil {
		p.MaxInterval = max(p.MaxInterval, p.InitialInterval)
	}

	if patch.Schedule != nil && len(p.Schedule) > 0 {
		p.MaxInterval = max(p.MaxInterval, slices.Max(p.Schedule))
	}

	return p
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// Validate returns a *invalid.Error for the first field that no policy may have.
func (p Policy) Validate() error {
	if all := p.Problems(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// Problems are a *invalid.Error for each field that no policy may have.
func (p Policy) Problems() (all []error) {
	if p.MaxAttempts < 0 {
		all = append(all, invalid.Errorf("max_attempts", "%d is negative; it counts executions, the first included", p.MaxAttempts))
	}

	if p.MaxAttempts > MaxAttempts {
		all = append(all, invalid.Errorf("max_attempts", "%d is too many; a run has at most 10,000 attempts", p.MaxAttempts))
	}

	if !slices.Contains(Strategies(), p.Strategy) {
		all = append(all, invalid.Errorf("strategy", "%q is unknown%s; use immediate, constant, linear, exponential, polynomial or schedule",
			p.Strategy, didYouMean(p.Strategy, Strategies()...)))
	}

	if p.OnExhaustion != DeadLetter && p.OnExhaustion != Discard {
		all = append(all, invalid.Errorf("on_exhaustion", "%q is unknown%s; use dead_letter or discard",
			p.OnExhaustion, didYouMean(p.OnExhaustion, DeadLetter, Discard)))
	}

	if !(p.Coefficient >= 1) || math.IsInf(p.Coefficient, 0) {
		all = append(all, invalid.Errorf("coefficient", "%v is not a number of at least 1", p.Coefficient))
	}

	if p.InitialInterval <= 0 {
		all = append(all, invalid.Errorf("initial_interval", "must be longer than zero; use the strategy immediate for no delay"))
	}

	if p.MaxInterval <= 0 {
		all = append(all, invalid.Errorf("max_interval", "must be longer than zero"))
	} else if p.MaxInterval < p.InitialInterval { // whatever the strategy: another one may be chosen for a replay
		all = append(all, invalid.Errorf("max_interval", "%v is shorter than initial_interval, %v", p.MaxInterval, p.InitialInterval))
	}

	if slices.ContainsFunc(p.Schedule, func(d time.Duration) bool { return d < 0 }) {
		all = append(all, invalid.Errorf("schedule", "a delay is negative"))
	}

	if p.Jitter.On() && !(p.Jitter.Low >= 0 && p.Jitter.Low <= p.Jitter.High && p.Jitter.High <= 100) {
		all = append(all, invalid.Errorf("jitter", "must be two factors, low and high, with 0 <= low <= high <= 100"))
	}

	if slices.Contains(p.NonRetryable, "") || slices.Contains(p.NonRetryable, ".*") {
		all = append(all, invalid.Errorf("non_retryable_errors", `an entry is empty; write an error type, or a prefix such as "auth.*"`))
	}

	return all
}

// didYouMean asks whether another word was meant.
func didYouMean[T ~string](said T, words ...T) string {
	var names []string
	for _, w := range words {
		names = append(names, string(w))
	}

	return invalid.DidYouMean(string(said), names)
}

// Limit is the number of executions that a run may have: at least 1.
func (p Policy) Limit() int { return max(p.MaxAttempts, 1) }

// LimitAt is the number of executions that a run may have, as far as is known at one of
// them: beyond the policy's limit, a rule added it.
func (p Policy) LimitAt(attempt int) int { return max(attempt, p.Limit()) }

// MatchNonRetryable returns the first entry that makes errors of this type
// permanent.
func (p Policy) MatchNonRetryable(errorType string) (entry string, ok bool) {
	for _, entry := range p.NonRetryable {
		if Matches(entry, errorType) {
			return entry, true
		}
	}

	return "", false
}

// Matches reports whether a pattern, an exact dotted name or a prefix ending in
// ".*", names this one: of errors, and of jobs alike. "auth.*" matches
// "auth.expired", but neither "auth" nor "auth." nor "external.auth".
func Matches(pattern, name string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	if !isPrefix || !strings.HasSuffix(prefix, ".") {
		return pattern == name
	}

	return strings.HasPrefix(name, prefix) && name != prefix
}

// Equal reports whether two policies say the same in every field.
func (p Policy) Equal(q Policy) bool {
	return p.MaxAttempts == q.MaxAttempts && p.Strategy == q.Strategy && p.InitialInterval == q.InitialInterval &&
		p.Coefficient == q.Coefficient && slices.Equal(p.Schedule, q.Schedule) && p.MaxInterval == q.MaxInterval &&
		p.Jitter == q.Jitter && slices.Equal(p.NonRetryable, q.NonRetryable) && p.OnExhaustion == q.OnExhaustion
}
