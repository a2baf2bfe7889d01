package work

import (
	"redrive/internal/apitype"
	"redrive/internal/operation"
	"redrive/internal/source"
)

// OperationAct is what an operation on many jobs did to one.
type OperationAct struct {
	// The number of the operation.
	Operation int64 `json:"operation"`
	// What it does.
	Kind operation.Kind `json:"kind"`
	// The run that the job was in before.
	Run int `json:"run"`
	// When it came to the job.
	At apitype.Time `json:"at"`
	// Who started the operation.
	By string `json:"by"`
}

// SourceAct is a request to a source about one of its jobs.
type SourceAct struct {
	// The number of the request.
	ID int64 `json:"id"`
	// The job.
	JobID string `json:"job_id"`
	// The run that a replay began, or that a discard ended.
	Run int `json:"run"`
	// What the source was asked to do.
	Kind source.Kind `json:"kind"`
	// How a replay counts attempts.
	Mode source.Mode `json:"mode,omitzero"`
	// What became of the request.
	State source.State `json:"state"`
	// What the source answered, when it did not do it.
	Why string `json:"why,omitzero"`
	// When it was requested.
	AskedAt apitype.Time `json:"asked_at"`
	// When it ended.
	EndedAt apitype.Time `json:"ended_at,omitzero"`
	// Who requested it.
	By string `json:"by"`
	// The operation that it was part of.
	Operation int64 `json:"operation,omitzero"`
}

// JobAnswer is the job on which a request acted.
type JobAnswer struct {
	// The job as it is now.
	Job FullJob `json:"job"`
}

// RunRequest names the run that the caller looked at.
type RunRequest struct {
	// The run that you looked at, 1 or higher. Any other run is a conflict.
	Run int `json:"run"`
}

// ReplayRequest starts the next run of a job, and says what should be different in it.
type ReplayRequest struct {
	// The run that you looked at, 1 or higher. Any other run is a conflict.
	Run int `json:"run"`
	// Another payload, any JSON up to 1 MiB.
	Payload apitype.Payload `json:"payload,omitempty"`
	// Another queue, which must be in use.
	Queue *string `json:"queue,omitzero"`
	// Another priority, from -100 to 100.
	Priority *int `json:"priority,omitzero"`
	// The run does not begin before.
	RunAt *apitype.Time `json:"run_at,omitzero"`
	// Instead of run_at: how long to wait from now.
	Delay *apitype.Duration `json:"delay,omitzero"`
	// The name of another retry policy, or an object with some of its members.
	Policy apitype.PolicyPatch `json:"policy,omitempty"`
	// How the source of the job counts the attempts of the run.
	Mode *source.Mode `json:"mode,omitzero"`
}

// RescheduleRequest moves a job that waits.
type RescheduleRequest struct {
	// The run that you looked at, 1 or higher. Any other run is a conflict.
	Run int `json:"run"`
	// When the job shall run. A time that has passed means now.
	RunAt *apitype.Time `json:"run_at,omitzero"`
	// Instead of run_at: how long to wait from now.
	Delay *apitype.Duration `json:"delay,omitzero"`
}
