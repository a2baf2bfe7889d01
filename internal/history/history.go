// Package history is the whole history of one job: its runs, attempts, dead
// letters and replays, its error group, and the operations that touched it.
package history

import (
	"slices"
	"time"

	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/source"
)

// Detail is everything that is known of one job, with one page of its attempts.
// Letters and Replays are in the order of runs.
type Detail struct {
	Job job.Job
	AttemptPage
	DeadLetters []job.DeadLetter
	Replays     []Replay
	Group       failures.Group // of the newest failure in this run, without queues and hours; zero when none failed
	Bulk        []operation.Act
	Mirrored    *source.Mirrored // nil: the job is no source's
}

// AttemptPage is a page of the attempts of a job, in the order of execution.
type AttemptPage struct {
	Attempts  []job.Attempt
	Total     int          // how many there are
	Earlier   int          // how many are older than these
	Following *job.Attempt // the one after these; nil: these are the newest
}

// Before is the execution from which the page of earlier attempts counts back; 0: there are
// none.
func (p AttemptPage) Before() int {
	if p.Earlier == 0 || len(p.Attempts) == 0 {
		return 0
	}
	return p.Attempts[0].Execution
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

// Replay is the record of one replay: how the run before ended, and who
// started the next one.
type Replay struct {
	Run      int // the run that was replayed; the next one is Run+1
	State    job.State
	Reason   retry.Reason
	Attempts int
	At       time.Time
	By       string
	Earlier  *Earlier // what the run had that the next one has otherwise; nil when that is nothing
}

// Earlier is what a run had that the next one has otherwise.
type Earlier struct {
	Queue    string
	Type     string
	Priority int
	Policy   retry.Policy
	Origins  job.Origins
	Timeout  time.Duration
	Body     *job.Body // nil when the next run has the same
}

// Apply is the job as it was in that run.
func (e *Earlier) Apply(j job.Job) job.Job {
	j = job.Edit{Body: e.Body}.Apply(j)
	j.Queue, j.Type = e.Queue, e.Type
	j.Priority, j.Policy = e.Priority, e.Policy
	j.Origins, j.Timeout = e.Origins, e.Timeout

	return j
}

// Trashed is where a job was that a person discarded.
type Trashed struct {
	At         time.Time // when it was discarded
	By         string
	Bulk       int64 // the operation that did so, 0: a person did so alone
	State      job.State
	DeadLetter job.DeadLetterState
	Reason     retry.Reason
}
