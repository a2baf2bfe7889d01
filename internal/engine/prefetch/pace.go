package prefetch

import "time"

// Pace estimates how many jobs of a queue end while a commit is written, from how long the last
// executions took.
type Pace struct {
	took  time.Duration // the smoothed duration of an execution
	Ended bool          // an execution has ended since the last claim
}

// Measure adds the duration of an execution to the estimate.
func (p *Pace) Measure(took time.Duration) {
	p.took = Smooth(p.took, took)
	p.Ended = true
}

// During returns how many jobs a number of workers will end during a commit, but at most PerWorker for
// each of them.
func (p *Pace) During(commit time.Duration, workers int) int {
	each := float64(commit) / float64(max(p.took, 1))
	return int(float64(workers) * min(each, PerWorker))
}

// Smooth returns a moving average: before, the average so far, moved by an eighth of the way to now.
func Smooth(before, now time.Duration) time.Duration {
	if before == 0 {
		return now
	}
	return before + (now-before)/8
}
