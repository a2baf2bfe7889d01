package retry

import (
	"math"
	"time"
)

// Source says whose delay it is.
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
	d.Strategy, d.Initial, d.Coefficient, d.Jitter = p.Strategy, p.InitialInterval, p.Coefficient, p.Jitter
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
