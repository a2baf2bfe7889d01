package job

import (
	"time"

	"redrive/internal/retry"
)

// Replay is the record of one replay: how the run before ended, and who
// started the next one.
type Replay struct {
	Run      int // the run that was replayed; the next one is Run+1
	State    State
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
	Origins  Origins
	Timeout  time.Duration
	Body     *Body // nil when the next run has the same
}

// Apply is the job as it was in that run.
func (e *Earlier) Apply(j Job) Job {
	j = Edit{Body: e.Body}.Apply(j)
	j.Queue, j.Type, j.Priority, j.Policy, j.Origins, j.Timeout = e.Queue, e.Type, e.Priority, e.Policy, e.Origins, e.Timeout
	return j
}

// Trashed is where a job was that a person discarded.
type Trashed struct {
	At     time.Time // when it was discarded
	By     string
	Bulk   int64 // the operation that did so, 0: a person did so alone
	State  State
	Letter Letter
	Reason retry.Reason
}
