package work

import (
	"redrive/internal/apitype"
	"redrive/internal/retry"
)

// Enqueued is the answer to a program that brought a job.
type Enqueued struct {
	// The job as it is now.
	Job FullJob `json:"job"`
	// That no handler can run the job, if so.
	Warning string `json:"warning,omitzero"`
}

// EnqueuedReceipt is the answer to a program that may only bring jobs.
type EnqueuedReceipt struct {
	// The job.
	Job JobReceipt `json:"job"`
	// That no handler can run the job, if so.
	Warning string `json:"warning,omitzero"`
}

// EnqueuedBatch is the answer to a program that brought several jobs.
type EnqueuedBatch struct {
	// The jobs, in the order of the request, without their payloads.
	Jobs []JobRow `json:"jobs"`
	// That no handler can run some of the jobs, if so.
	Warning string `json:"warning,omitzero"`
}

// EnqueuedBatchReceipt is the answer to a program that may only bring jobs.
type EnqueuedBatchReceipt struct {
	// The jobs, in the order of the request.
	Jobs []JobReceipt `json:"jobs"`
	// That no handler can run some of the jobs, if so.
	Warning string `json:"warning,omitzero"`
}

// EnvelopesTaken is what became of envelopes.
type EnvelopesTaken struct {
	// The job of each envelope, in the order in which they came.
	Jobs []EnvelopeTaken `json:"jobs"`
	// How many became jobs.
	Accepted int `json:"accepted"`
	// How many had come before.
	Repeated int `json:"repeated"`
	// How many could not be read; they are dead letters.
	Poison int `json:"poison"`
	// How many a rule refused; they are dead letters.
	Refused int `json:"refused"`
}

// EnvelopeTaken is the job that an envelope became; of a repeat, the one that came first.
type EnvelopeTaken struct {
	JobReceipt
	// The envelope had come before.
	Repeat bool `json:"repeat,omitzero"`
	// Why the job is a dead letter.
	Reason retry.Reason `json:"reason,omitzero"`
	// What is wrong with the envelope.
	Error *Error `json:"error,omitzero"`
}

// NewJob is a job to enqueue.
type NewJob struct {
	// What the job does; chooses its handler.
	Type string `json:"type"`
	// The queue; default without one.
	Queue string `json:"queue,omitzero"`
	// From -100 to 100; the higher, the earlier the job runs.
	Priority int `json:"priority,omitzero"`
	// Any JSON up to 1 MiB, stored byte for byte; null without one.
	Payload apitype.Payload `json:"payload,omitempty"`
	// An object with what is to be known about the job.
	Meta apitype.Meta `json:"meta,omitempty"`
	// The name of a retry policy, or an object with some of its members.
	Policy apitype.PolicyPatch `json:"policy,omitempty"`
	// The longest that an attempt may take.
	TTR *apitype.Duration `json:"ttr,omitzero"`
	// An id that other systems know.
	TraceID *string `json:"trace_id,omitzero"`
	// The job does not run before.
	RunAt *apitype.Time `json:"run_at,omitzero"`
	// Instead of run_at: how long to wait from now.
	Delay *apitype.Duration `json:"delay,omitzero"`
	// The first attempt begins before that, or never.
	ExpiresAt *apitype.Time `json:"expires_at,omitzero"`
	// Instead of expires_at: how long from now.
	ExpiresIn *apitype.Duration `json:"expires_in,omitzero"`
}

// NewJobs are jobs of which either all are enqueued or none.
type NewJobs struct {
	// Up to 10,000 jobs.
	Jobs []NewJob `json:"jobs" want:"a list of jobs"`
}
