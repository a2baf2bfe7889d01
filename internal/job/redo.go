package job

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"redrive/internal/retry"
)

// Redo is what the next run of a job shall have that the run before it had not.
// The zero value of a field keeps what there is.
type Redo struct {
	Body     *Body
	Queue    string
	RunAt    time.Time // not before
	Priority *int
	Policy   *retry.Policy
	Origins  Origins       // of Policy
	Timeout  time.Duration // ttr
	Paths    []string      // of the payload, that are not as they were: for the audit log, which never sees values
}

// Body is what a job brings along, and what is read out of that.
type Body struct {
	Type      string
	TraceID   string
	MessageID string
	Meta      json.RawMessage
	Payload   []byte
	Envelope  []byte
}

// Body is the body of the job.
func (j Job) Body() Body {
	return Body{j.Type, j.TraceID, j.MessageID, j.Meta, j.Payload, j.Envelope}
}

func (b Body) equal(c Body) bool {
	return b.Type == c.Type && b.TraceID == c.TraceID && b.MessageID == c.MessageID &&
		bytes.Equal(b.Meta, c.Meta) && bytes.Equal(b.Payload, c.Payload) && bytes.Equal(b.Envelope, c.Envelope)
}

// Before returns what of the change really is one for the job: a field that
// says what the job has anyhow is empty.
func (r Redo) Before(j Job) Redo {
	if r.Body != nil && r.Body.equal(j.Body()) {
		r.Body = nil
	}
	if r.Queue == j.Queue {
		r.Queue = ""
	}
	if r.Priority != nil && *r.Priority == j.Priority {
		r.Priority = nil
	}
	if r.Policy != nil && r.Policy.Equal(j.Policy) && maps.Equal(r.Origins, j.Origins) {
		r.Policy, r.Origins = nil, nil
	}
	if r.Timeout == j.Timeout {
		r.Timeout = 0
	}
	return r
}

// Empty reports whether the next run is like the one before but for its time.
func (r Redo) Empty() bool {
	return r.Body == nil && r.Queue == "" && r.Priority == nil && r.Policy == nil && r.Timeout == 0
}

// Apply is the job with the change, in the same run and state.
func (r Redo) Apply(j Job) Job {
	if r.Body != nil {
		j = r.Body.in(j)
	}
	if r.Queue != "" {
		j.Queue = r.Queue
	}
	if r.Priority != nil {
		j.Priority = *r.Priority
	}
	if r.Policy != nil {
		j.Policy, j.Origins = *r.Policy, r.Origins
	}
	if r.Timeout > 0 {
		j.Timeout = r.Timeout
	}
	return j
}

func (b Body) in(j Job) Job {
	j.Type, j.TraceID, j.MessageID, j.Meta, j.Payload, j.Envelope = b.Type, b.TraceID, b.MessageID, b.Meta, b.Payload, b.Envelope
	return j
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

// RunAs is the job as it was in one of its runs, as far as a replay can change
// it: its type, queue, priority, policy, ttr and body.
func (d Detail) RunAs(run int) Job {
	j := d.Job
	for _, r := range slices.Backward(d.Replays) {
		if r.Run < run || r.Earlier == nil {
			continue
		}
		e := r.Earlier
		if e.Body != nil {
			j = e.Body.in(j)
		}
		j.Queue, j.Type, j.Priority, j.Policy, j.Origins, j.Timeout = e.Queue, e.Type, e.Priority, e.Policy, e.Origins, e.Timeout
	}
	return j
}
