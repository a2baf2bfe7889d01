package work

import (
	"encoding/json"

	"redrive/internal/apitype"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/wire"
)

// Job is a job with everything but its payload. Members that a source does not say of
// its jobs are missing.
type Job struct {
	// Names the job: a UUID, version 7.
	ID string `json:"id"`
	// What the job does; chooses its handler.
	Type string `json:"type"`
	// The queue that the job is in; of a job of a source, QUEUE@SOURCE.
	Queue string `json:"queue"`
	// The state of the job, by the words of the Open Job Spec.
	State job.State `json:"state"`
	// The state, told apart: dead_letter, dlq_failed, trashed, held.
	Status job.Status `json:"status"`
	// The number of the run: 1 when the job is enqueued, one more at each replay.
	Run int `json:"run"`
	// How many attempts the run has completed.
	Attempts *int `json:"attempts,omitzero"`
	// How many attempts the run may have, by its policy and by rules.
	MaxAttempts *int `json:"max_attempts,omitzero"`
	// How often a worker has taken the job, over all runs.
	Execution int `json:"execution"`
	// The higher, the earlier the job runs.
	Priority *int `json:"priority,omitzero"`
	// What the producer said about the job.
	Meta json.RawMessage `json:"meta,omitempty"`
	// The policy by which the job is retried, as it was merged when the run began.
	Policy *wire.Policy `json:"policy,omitzero"`
	// Where each member of the policy, and the time limit, came from.
	Origins job.Origins `json:"origins,omitempty"`
	// The longest that an attempt may take.
	TTR *apitype.Duration `json:"ttr,omitzero"`
	// The job does not run before.
	RunAt apitype.Time `json:"run_at,omitzero"`
	// The first attempt begins before that, or never.
	ExpiresAt apitype.Time `json:"expires_at,omitzero"`
	// When the job was brought.
	EnqueuedAt apitype.Time `json:"enqueued_at,omitzero"`
	// When the job entered its state.
	ChangedAt apitype.Time `json:"changed_at,omitzero"`
	// When the newest execution began.
	StartedAt apitype.Time `json:"started_at,omitzero"`
	// When the run ended.
	FinishedAt apitype.Time `json:"finished_at,omitzero"`
	// The worker that runs the job, or the source that has it back.
	Worker string `json:"worker,omitzero"`
	// Why the run ended.
	Reason retry.Reason `json:"reason,omitzero"`
	// Of a job of a source: when Redrive saw it first.
	AddedAt apitype.Time `json:"added_at,omitzero"`
	// The source took the job for a replay, and it is not back.
	AtSource bool `json:"at_source,omitzero"`
	// When a job that its source has will count as returned.
	ReturnedUntil apitype.Time `json:"returned_until,omitzero"`
	// Nothing was heard of the job since its source took it, for ten minutes.
	Returned bool `json:"returned,omitzero"`
	// It is unknown whether the source took the replay.
	ReplayUnknown bool `json:"replay_unknown,omitzero"`
	// The error of the newest failed attempt of the run.
	Error *Error `json:"error,omitzero"`
	// The trace that the producer named.
	TraceID string `json:"trace_id,omitzero"`
	// The id of the envelope that the job came in.
	MessageID string `json:"message_id,omitzero"`
	// What a person should know of the enqueueing, for example that a rule failed.
	Note string `json:"note,omitzero"`
}

// Error is what failed.
type Error struct {
	// The class of the error, for example http.503.
	Type string `json:"type"`
	// What the error says.
	Message string `json:"message"`
	// Where it happened.
	Trace string `json:"trace,omitzero"`
}

// JobRow is a job as a row of a list.
type JobRow struct {
	Job
	// The members that are cut because they are long: error.message.
	Clipped []string `json:"clipped,omitempty"`
}

// FullJob is a job with its payload.
type FullJob struct {
	Job
	// What the job was given, byte for byte.
	Payload apitype.Payload `json:"payload"`
}

// JobReceipt is all that a caller who may not look at jobs is told of one.
type JobReceipt struct {
	// Names the job: a UUID, version 7.
	ID string `json:"id"`
	// The state of the job, by the words of the Open Job Spec.
	State job.State `json:"state"`
}

// JobList is one page of a list of jobs.
type JobList struct {
	// The jobs, without their payloads.
	Jobs []JobRow `json:"jobs"`
	apitype.Page
	// How many jobs cannot be found by their texts yet.
	NotSearchableYet int `json:"not_searchable_yet,omitzero"`
}

// JobCount is how many jobs a filter selects.
type JobCount struct {
	// How many there are, up to 100,000. Missing when counting took too long.
	Count *int `json:"count,omitzero"`
	// There are more than that.
	More *bool `json:"more,omitzero"`
	// Counting took too long, or waits for the search index.
	Incomplete bool `json:"incomplete,omitzero"`
}

// Facets are the values to which a list of jobs can be narrowed.
type Facets struct {
	// Why runs ended.
	Reasons []Facet `json:"reasons"`
	// The queues of the jobs.
	Queues []Facet `json:"queues"`
	// The types of the jobs.
	Types []Facet `json:"types"`
}

// Facet is a value with the number of jobs that have it.
type Facet struct {
	// The value.
	Value string `json:"value"`
	// How many jobs have it.
	Count int64 `json:"count"`
}

// JobDetail is everything about a job, with what people did to it.
type JobDetail struct {
	// The job.
	Job FullJob `json:"job"`
	// One page of its attempts, in the order of execution, and last the execution under way.
	Attempts []Attempt `json:"attempts"`
	// How many attempts there are.
	AttemptsTotal int `json:"attempts_total"`
	// The attempts_after of the page with earlier attempts, if there are any.
	AttemptsNext int `json:"attempts_next,omitzero"`
	// Its dead letters, one for each run that ended so.
	DeadLetters []DeadLetter `json:"dead_letters"`
	// The runs that were replayed.
	Replays []Replay `json:"replays"`
	// What operations on many jobs did to it.
	Operations []OperationAct `json:"operations"`
	// What its source was asked to do.
	Acts []SourceAct `json:"acts,omitempty"`
	// What its source reports of the jobs that it took: failures, or failures and successes.
	SourceReports string `json:"source_reports,omitzero"`
	// The fingerprint of its error group; empty without one.
	Group string `json:"group"`
	// The entries of the audit log about the job.
	Trail []apitype.AuditEntry `json:"trail"`
}
