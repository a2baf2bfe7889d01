package retry

import (
	"iter"
	"slices"
	"time"
)

const (
	herdJobs    = 1000 // jobs that fail together
	herdRetries = 30   // retries of each that are followed
	herdBuckets = 120  // stretches of time into which they are counted
)

// Herd is a simulation: many jobs fail at the same moment, and then at every
// retry until their policy ends, as they do when a service is down that all of
// them need. What hits that service is counted by the second.
type Herd struct {
	Jobs    int
	Retries int           // of each job, as far as they were followed
	Cut     bool          // the policy allows more than those
	Jitter  Jitter        // of Spread: the policy's own, or the Open Job Spec's where it has none
	Bucket  time.Duration // whole seconds for which one number of a lane stands
	Together,
	Spread Lane // without jitter, and with it
}

// Lane is the load that a herd makes, in retries per second.
type Lane struct {
	Peak    int   // of the busiest second of all
	Waves   []int // of the busiest second of all first retries, all second ones, …
	Buckets []int // of the busiest second of each stretch of time
}

// Herd runs the simulation for a policy. random returns numbers in [0, 1); the
// same numbers give the same herd.
func (p Policy) Herd(random func() float64) Herd {
	h := Herd{Jobs: herdJobs, Retries: min(p.Limit()-1, herdRetries), Cut: p.Limit()-1 > herdRetries, Jitter: p.Jitter}
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
	width := last/herdBuckets + 1
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

// laneOf counts the seconds of all waves. Each of them stands for as many
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
		for i := 0; i < len(sorted); {
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
