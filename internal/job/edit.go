package job

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"redrive/internal/retry"
)

// Edit is what the next run of a job shall have that the run before it had not.
// The zero value of a field keeps what there is.
type Edit struct {
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
func (e Edit) Before(j Job) Edit {
	if e.Body != nil && e.Body.equal(j.Body()) {
		e.Body = nil
	}
	if e.Queue == j.Queue {
		e.Queue = ""
	}
	if e.Priority != nil && *e.Priority == j.Priority {
		e.Priority = nil
	}
	if e.Policy != nil && e.Policy.Equal(j.Policy) && maps.Equal(e.Origins, j.Origins) {
		e.Policy, e.Origins = nil, nil
	}
	if e.Timeout == j.Timeout {
		e.Timeout = 0
	}
	return e
}

// Empty reports whether the next run is like the one before but for its time.
func (e Edit) Empty() bool {
	return e.Body == nil && e.Queue == "" && e.Priority == nil && e.Policy == nil && e.Timeout == 0
}

// Apply is the job with the change, in the same run and state.
func (e Edit) Apply(j Job) Job {
	if e.Body != nil {
		j = e.Body.in(j)
	}
	if e.Queue != "" {
		j.Queue = e.Queue
	}
	if e.Priority != nil {
		j.Priority = *e.Priority
	}
	if e.Policy != nil {
		j.Policy, j.Origins = *e.Policy, e.Origins
	}
	if e.Timeout > 0 {
		j.Timeout = e.Timeout
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

// Apply is the job as it was in that run.
func (e *Earlier) Apply(j Job) Job {
	if e.Body != nil {
		j = e.Body.in(j)
	}
	j.Queue, j.Type, j.Priority, j.Policy, j.Origins, j.Timeout = e.Queue, e.Type, e.Priority, e.Policy, e.Origins, e.Timeout
	return j
}
