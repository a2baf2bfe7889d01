package retry

import (
	"iter"
	"math"
	"slices"
	"time"
)

// Span is a duration that chance decides: the shortest, the average of many,
// and the longest.
type Span struct{ Low, Mean, High time.Duration }

// Row is what a policy says about one retry before any chance is drawn.
type Row struct {
	Retry  int           // n: 1 after the first failed attempt
	Raw    time.Duration // by the strategy
	Capped time.Duration // the delay, were it not for jitter
	Delay  Span          // with jitter, under the cap
	Total  Span          // of all delays up to this one
}

// Table computes the delays before the first n retries, whether or not the
// policy allows as many.
func (p Policy) Table(n int) []Row {
	return slices.Collect(p.rows(n))
}

// maxAdded bounds the delays that UntilDeath adds up one by one.
const maxAdded = 10_000

// UntilDeath is how long a job waits in all when every attempt of a run fails;
// the executions themselves come on top. A run of very many different delays
// is not added up to its end: then exact is false, and it takes longer.
func (p Policy) UntilDeath() (total Span, exact bool) {
	retries := p.Limit() - 1
	for row := range p.rows(min(retries, maxAdded)) {
		total = row.Total
		if p.steady(row.Retry) {
			return total.plus(row.Delay.times(retries - row.Retry)), true
		}
	}
	return total, retries <= maxAdded
}

// rows yields the first n rows.
func (p Policy) rows(n int) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		var total Span
		for retry := 1; retry <= n; retry++ {
			d := p.delay(FromPolicy, retry, p.raw(retry))
			delay := p.spread(d.Capped)
			total = total.plus(delay)
			if !yield(Row{retry, d.Raw, d.Capped, delay, total}) {
				return
			}
		}
	}
}

// steady reports whether every delay after retry n is the one before it.
func (p Policy) steady(n int) bool {
	switch p.Strategy {
	case Immediate, Constant:
		return true
	case Schedule:
		return n >= len(p.Schedule)
	case Exponential:
		return p.Coefficient == 1 || p.raw(n) >= p.MaxInterval
	}
	return p.raw(n) >= p.MaxInterval
}

// spread is what jitter makes of a capped delay. The cap is applied again, so
// the average is not the middle where the cap cuts the upper part off.
func (p Policy) spread(capped time.Duration) Span {
	if !p.Jitter.On() || capped == 0 {
		return Span{capped, capped, capped}.kept()
	}
	low, high, ratio := p.Jitter.Low, p.Jitter.High, float64(p.MaxInterval)/float64(capped)
	mean := low
	if high > low {
		bend := max(low, min(high, ratio)) // the factor that reaches the cap
		mean = ((bend-low)*(low+bend)/2 + (high-bend)*ratio) / (high - low)
	}
	return Span{p.cut(capped, low), p.cut(capped, mean), p.cut(capped, high)}.kept()
}

// kept cuts a span to the microseconds that the store keeps.
func (s Span) kept() Span {
	return Span{s.Low.Truncate(time.Microsecond), s.Mean.Truncate(time.Microsecond), s.High.Truncate(time.Microsecond)}
}

func (s Span) plus(t Span) Span {
	return Span{plus(s.Low, t.Low), plus(s.Mean, t.Mean), plus(s.High, t.High)}
}

func (s Span) times(n int) Span {
	return Span{times(s.Low, n), times(s.Mean, n), times(s.High, n)}
}

// plus adds without overflow, as saturate converts.
func plus(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func times(d time.Duration, n int) time.Duration {
	if n > 0 && d > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return d * time.Duration(n)
}
