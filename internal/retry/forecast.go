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

const (
	simulationJobs    = 1000 // jobs that fail together
	simulationRetries = 30   // retries of each that are followed
	simulationBuckets = 120  // stretches of time into which they are counted
)

// Simulation is of many jobs that fail together: many jobs fail at the same moment, and then at every
// retry until their policy ends, as they do when a service is down that all of
// them need. What hits that service is counted by the second.
type Simulation struct {
	Jobs    int
	Retries int           // of each job, as far as they were followed
	Cut     bool          // the policy allows more than those
	Jitter  Jitter        // of Spread: the policy's own, or the Open Job Spec's where it has none
	Bucket  time.Duration // whole seconds that one number of a lane counts
	Together,
	Spread Lane // without jitter, and with it
}

// Lane is the load that retries make, in retries per second.
type Lane struct {
	Peak    int   // of the busiest second of all
	Waves   []int // of the busiest second of all first retries, all second ones, …
	Buckets []int // of the busiest second of each stretch of time
}

// Simulate runs the simulation for a policy. random returns numbers in [0, 1); the
// same numbers give the same simulation.
func (p Policy) Simulate(random func() float64) Simulation {
	h := Simulation{Jobs: simulationJobs, Retries: min(p.Limit()-1, simulationRetries), Cut: p.Limit()-1 > simulationRetries, Jitter: p.Jitter}
	if !h.Jitter.On() {
		h.Jitter = Default().Jitter
	}

	calm, wild := p, p
	calm.Jitter, wild.Jitter = Jitter{}, h.Jitter

	together, spread := calm.waves(1, h.Retries, nil), wild.waves(h.Jobs, h.Retries, random)
	var last int64
	for n := range h.Retries {
		last = max(last, slices.Max(together[n]), slices.Max(spread[n]))
	}

	width := last/simulationBuckets + 1
	h.Bucket = time.Duration(width) * time.Second
	h.Together = laneOf(together, h.Jobs, width)
	h.Spread = laneOf(spread, 1, width)

	return h
}

// waves are the seconds in which jobs are tried again: all first retries, all
// second ones, and so on.
func (p Policy) waves(jobs, retries int, random func() float64) [][]int64 {
	all := make([][]int64, retries)
	at := make([]time.Duration, jobs)
	for n := range all {
		all[n] = make([]int64, jobs)
		capped := p.delay(FromPolicy, n+1, p.raw(n+1)).Capped
		for j := range at {
			wait := capped
			if p.Jitter.On() {
				wait = p.cut(capped, p.Jitter.factor(random))
			}

			at[j] = plus(at[j], wait)
			all[n][j] = int64(at[j] / time.Second)
		}
	}

	return all
}

// laneOf counts the seconds of all waves. Each of them counts for as many
// jobs, and a bucket is so many seconds wide.
func laneOf(waves [][]int64, jobs int, width int64) Lane {
	var lane Lane
	for _, wave := range waves {
		slices.Sort(wave)

		busiest := 0
		for _, n := range runs(wave) {
			busiest = max(busiest, n*jobs)
		}

		lane.Waves = append(lane.Waves, busiest)
	}

	// The jobs of different waves can run in the same second, so the buckets count all waves
	// together.
	all := slices.Concat(waves...)
	slices.Sort(all)

	for second, n := range runs(all) {
		bucket := int(second / width)
		for len(lane.Buckets) <= bucket {
			lane.Buckets = append(lane.Buckets, 0)
		}

		lane.Buckets[bucket] = max(lane.Buckets[bucket], n*jobs)
		lane.Peak = max(lane.Peak, n*jobs)
	}

	return lane
}

// runs yields each value of a sorted list and how often it is there.
func runs(sorted []int64) iter.Seq2[int64, int] {
	return func(yield func(int64, int) bool) {
		i := 0
		for i < len(sorted) {
			end := i + 1
			for end < len(sorted) && sorted[end] == sorted[i] {
				end++
			}

			if !yield(sorted[i], end-i) {
				return
			}

			i = end
		}
	}
}
