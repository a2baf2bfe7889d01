package prefetch

import "time"

// Pace is how many jobs of a queue its workers end while a commit is written, as
// far as the last ones showed.
type Pace struct {
	took  time.Duration // of an execution
	Ended bool          // one has, since the last claim
}

// Measure takes in an execution.
func (p *Pace) Measure(took time.Duration) {
	p.took = Smooth(p.took, took)
	p.Ended = true
}

// During is how many jobs so many workers end in a time, as far as is useful.
func (p *Pace) During(commit time.Duration, workers int) int {
	each := float64(commit) / float64(max(p.took, 1))
	return int(float64(workers) * min(each, PerWorker))
}

// Smooth takes a new figure in; the newest ones count most.
func Smooth(before, now time.Duration) time.Duration {
	if before == 0 {
		return now
	}
	return before + (now-before)/8
}
