// Package history is the whole history of one job: its runs, attempts, dead
// letters and replays, its error group, and the operations that touched it.
package history

import (
	"slices"

	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/operation"
)

// Detail is everything that is known of one job. Attempts are in the order of
// execution; Letters and Replays in the order of runs.
type Detail struct {
	Job      job.Job
	Attempts []job.Attempt
	Letters  []job.DeadLetter
	Replays  []job.Replay
	Group    failures.Group // of the newest failure in this run, without queues and hours; zero when none failed
	Bulk     []operation.Act
}

// RunAs is the job as it was in one of its runs, as far as a replay can change
// it: its type, queue, priority, policy, ttr and body.
func (d Detail) RunAs(run int) job.Job {
	j := d.Job
	for _, r := range slices.Backward(d.Replays) {
		if r.Run < run || r.Earlier == nil {
			continue
		}
		j = r.Earlier.Apply(j)
	}
	return j
}
