package rules

import (
	"encoding/json"
	"fmt"
	"time"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// The facts that an expression sees, under the names in the tags.
type (
	enqueueFacts struct {
		Job *jobFacts `expr:"job"`
	}

	failureFacts struct {
		Job     *jobFacts    `expr:"job"`
		Attempt attemptFacts `expr:"attempt"`
		Error   errorFacts   `expr:"error"`
	}

	jobFacts struct {
		ID          string         `expr:"id"`
		Type        string         `expr:"type"`
		Queue       string         `expr:"queue"`
		Priority    int            `expr:"priority"`
		Run         int            `expr:"run"`
		MaxAttempts int            `expr:"max_attempts"`
		TTR         time.Duration  `expr:"ttr"`
		TraceID     string         `expr:"trace_id"`
		Payload     any            `expr:"payload"`
		Meta        map[string]any `expr:"meta"`

		raw job.Job
	}

	attemptFacts struct {
		Number   int           `expr:"number"`
		Outcome  string        `expr:"outcome"`
		Duration time.Duration `expr:"duration"`
		Worker   string        `expr:"worker"`
	}

	errorFacts struct {
		Type      string `expr:"type"`
		Message   string `expr:"message"`
		Code      string `expr:"code"`
		Retryable any    `expr:"retryable"` // a bool, or nil when the handler did not say
	}
)

// newJobFacts are the facts of a job without its payload and its meta, which
// are decoded only when a rule reads them.
func newJobFacts(j job.Job) *jobFacts {
	return &jobFacts{
		ID: j.ID, Type: j.Type, Queue: j.Queue, Priority: j.Priority, Run: max(j.Run, 1),
		MaxAttempts: j.Policy.Limit(), TTR: j.Timeout, TraceID: j.TraceID, raw: j,
	}
}

// newFailureFacts are the facts of a failure. Texts are as long as they are
// kept at most, so that the price of a rule holds for them.
func newFailureFacts(j job.Job, e job.Ending) failureFacts {
	f := failureFacts{
		Job: newJobFacts(j),
		Attempt: attemptFacts{
			Number: j.Attempts + 1, Outcome: string(e.Outcome),
			Duration: max(0, e.FinishedAt.Sub(j.StartedAt)), Worker: j.Worker,
		},
		Error: errorFacts{
			Type: clip.Text(e.Error.Type, retry.MaxErrorType), Message: clip.Text(e.Error.Message, job.MaxErrorMessage),
			Code: string(e.Answer.Code),
		},
	}
	if r := e.Answer.Retryable; r != nil {
		f.Error.Retryable = *r
	}

	return f
}

// fill decodes what an expression needs and no other did before it.
func (f *jobFacts) fill(payload, meta bool) error {
	if payload && f.Payload == nil {
		if err := json.Unmarshal(f.raw.Payload, &f.Payload); err != nil {
			return fmt.Errorf("the payload cannot be read: %w", err)
		}
	}

	if meta && f.Meta == nil && len(f.raw.Meta) > 0 {
		if err := json.Unmarshal(f.raw.Meta, &f.Meta); err != nil {
			return fmt.Errorf("the meta cannot be read: %w", err)
		}
	}

	return nil
}

// merge adds members to a job's meta and leaves its others as they are.
func merge(meta json.RawMessage, more map[string]string) (json.RawMessage, error) {
	if len(more) == 0 {
		return meta, nil
	}

	var all map[string]json.RawMessage
	if len(meta) > 0 {
		if err := json.Unmarshal(meta, &all); err != nil {
			return nil, fmt.Errorf("the meta cannot be read: %w", err)
		}
	}

	// The job has no meta, or null.
	if all == nil {
		all = map[string]json.RawMessage{}
	}

	for name, value := range more {
		data, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("meta.%s: %w", name, err)
		}

		all[name] = data
	}

	merged, err := json.Marshal(all)
	if err == nil && len(merged) > job.MaxMeta {
		err = fmt.Errorf("the meta would have %d bytes; the maximum is %d", len(merged), job.MaxMeta)
	}

	return merged, err
}
