package job

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"redrive/internal/retry"
)

// Edit is what a person changes of a job for its next run. The zero value of a
// field changes nothing.
type Edit struct {
	Body     *Body
	Queue    string
	RunAt    time.Time // not before
	Priority *int
	Policy   *retry.Policy
	Origins  Origins       // of Policy
	Timeout  time.Duration // ttr
	Mode     string        // of a source's job: how its attempts count; empty: as its own retry does it
	Paths    []string      // in the payload where something was changed: for the audit log, which never sees values
}

// Body is what a job brings along, and what is read from it.
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

// Effective returns the part of the edit that changes something about the job: a
// field that says what the job has anyhow is empty.
func (e Edit) Effective(j Job) Edit {
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

// Empty reports whether the next run differs from the one before by its time only.
func (e Edit) Empty() bool {
	return e.Body == nil && e.Queue == "" && e.Priority == nil && e.Policy == nil && e.Timeout == 0
}

// Apply returns the job with the edit, in the same run and state.
func (e Edit) Apply(j Job) Job {
	if b := e.Body; b != nil {
		j.Type, j.TraceID = b.Type, b.TraceID
		j.MessageID, j.Meta = b.MessageID, b.Meta
		j.Payload, j.Envelope = b.Payload, b.Envelope
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
