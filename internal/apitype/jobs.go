package apitype

import (
	"encoding/json"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/source"
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
	TTR *Duration `json:"ttr,omitzero"`
	// The job does not run before.
	RunAt Time `json:"run_at,omitzero"`
	// The first attempt begins before that, or never.
	ExpiresAt Time `json:"expires_at,omitzero"`
	// When the job was brought.
	EnqueuedAt Time `json:"enqueued_at,omitzero"`
	// When the job entered its state.
	ChangedAt Time `json:"changed_at,omitzero"`
	// When the newest execution began.
	StartedAt Time `json:"started_at,omitzero"`
	// When the run ended.
	FinishedAt Time `json:"finished_at,omitzero"`
	// The worker that runs the job, or the source that has it back.
	Worker string `json:"worker,omitzero"`
	// Why the run ended.
	Reason retry.Reason `json:"reason,omitzero"`
	// Of a job of a source: when Redrive saw it first.
	AddedAt Time `json:"added_at,omitzero"`
	// The source took the job for a replay, and it is not back.
	AtSource bool `json:"at_source,omitzero"`
	// When a job that its source has will count as returned.
	ReturnedUntil Time `json:"returned_until,omitzero"`
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
	Payload Payload `json:"payload"`
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
	Page
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
	Trail []AuditEntry `json:"trail"`
}

// Attempt is one execution of a job.
type Attempt struct {
	// The run that it belongs to.
	Run int `json:"run"`
	// Its number in the run; missing when it did not count.
	Number int `json:"number,omitzero"`
	// Its number over all runs.
	Execution int `json:"execution"`
	// The worker that ran it.
	Worker string `json:"worker,omitzero"`
	// When it began.
	StartedAt Time `json:"started_at,omitzero"`
	// When it ended.
	FinishedAt Time `json:"finished_at,omitzero"`
	// How it ended.
	Outcome job.Outcome `json:"outcome,omitzero"`
	// Why it failed.
	Error *Error `json:"error,omitzero"`
	// What became of the job.
	Action retry.Action `json:"action,omitzero"`
	// What decided that: a stable code.
	DecidedBy string `json:"decided_by,omitzero"`
	// Of a retry: the wait, in milliseconds.
	DelayMS *float64 `json:"delay_ms,omitzero"`
	// Of a retry: how the wait was computed.
	Delay *Delay `json:"delay,omitzero"`
	// What else a person should know, for example that a rule failed.
	Note string `json:"note,omitzero"`
}

// Delay is how the wait before a retry was computed. All lengths are in milliseconds.
type Delay struct {
	// What chose it: policy, handler or rule.
	Source retry.Source `json:"source"`
	// As it was computed.
	RawMS float64 `json:"raw_ms"`
	// At most the longest wait of the policy.
	CappedMS float64 `json:"capped_ms"`
	// The factor of the jitter; 1 without.
	Factor float64 `json:"factor"`
	// As it was in the end.
	FinalMS float64 `json:"final_ms"`
}

// DeadLetter is the record of a run that ended in the dead-letter queue, or should have.
type DeadLetter struct {
	// The job.
	JobID string `json:"job_id"`
	// The run that ended.
	Run int `json:"run"`
	// Why it ended.
	Reason retry.Reason `json:"reason"`
	// What the last error said.
	Error string `json:"error"`
	// The class of the last error.
	Exception string `json:"exception"`
	// When the run failed permanently.
	FailedAt Time `json:"failed_at,omitzero"`
	// The queue that the job was in.
	OriginalQueue string `json:"original_queue"`
	// How many attempts the run had.
	Attempts *int `json:"attempts,omitzero"`
	// timed_out or lost, when the last attempt ended so.
	Cause job.Outcome `json:"cause,omitzero"`
	// The letter was asked for and not accepted.
	Refused bool `json:"refused,omitzero"`
	// Why it was not accepted.
	Problem string `json:"problem,omitzero"`
	// Where a copy was accepted.
	ForwardedTo string `json:"forwarded_to,omitzero"`
	// When a copy was accepted.
	ForwardedAt Time `json:"forwarded_at,omitzero"`
	// When the run was replayed.
	ReplayedAt Time `json:"replayed_at,omitzero"`
	// Who replayed the run.
	ReplayedBy string `json:"replayed_by,omitzero"`
	// When the letter was discarded.
	DiscardedAt Time `json:"discarded_at,omitzero"`
	// Who discarded the letter.
	DiscardedBy string `json:"discarded_by,omitzero"`
}

// DeadLetterRow is a dead letter as a row of a list.
type DeadLetterRow struct {
	DeadLetter
	// The members that are cut because they are long: error.
	Clipped []string `json:"clipped,omitempty"`
}

// DeadLetterList is one page of the open dead letters.
type DeadLetterList struct {
	// The letters, each with its job.
	DeadLetters []DeadLetterAndJob `json:"dead_letters"`
	Page
	// How many jobs cannot be found by their texts yet.
	NotSearchableYet int `json:"not_searchable_yet,omitzero"`
}

// DeadLetterAndJob is a dead letter with its job.
type DeadLetterAndJob struct {
	// The letter.
	DeadLetter DeadLetterRow `json:"letter"`
	// Its job, without the payload.
	Job JobRow `json:"job"`
}

// Trash is one page of the discarded jobs.
type Trash struct {
	// The jobs, those that were discarded last first.
	Trash []Discarded `json:"trash"`
	Page
}

// Discarded is a job in the trash, from which it can be restored until it is purged.
type Discarded struct {
	// The job.
	JobID string `json:"job_id"`
	// The run that was discarded.
	Run int `json:"run"`
	// The type of the job.
	Type string `json:"type"`
	// The queue of the job.
	Queue string `json:"queue"`
	// The status from which it was discarded.
	Was job.Status `json:"was"`
	// When it was discarded.
	DiscardedAt Time `json:"discarded_at"`
	// Who discarded it.
	DiscardedBy string `json:"discarded_by"`
	// When it will be purged.
	PurgedAt Time `json:"purged_at,omitzero"`
}

// Replay is a run that was replayed.
type Replay struct {
	// The run that was replayed; the next one is Run+1.
	Run int `json:"run"`
	// The state in which it ended.
	State job.State `json:"state"`
	// Why it ended.
	Reason retry.Reason `json:"reason,omitzero"`
	// How many attempts it had.
	Attempts *int `json:"attempts,omitzero"`
	// When it was replayed.
	At Time `json:"at"`
	// Who replayed it.
	By string `json:"by"`
	// The next run differs in something.
	Changed bool `json:"changed,omitzero"`
}

// OperationAct is what an operation on many jobs did to one.
type OperationAct struct {
	// The number of the operation.
	Operation int64 `json:"operation"`
	// What it does.
	Kind operation.Kind `json:"kind"`
	// The run that the job was in before.
	Run int `json:"run"`
	// When it came to the job.
	At Time `json:"at"`
	// Who started the operation.
	By string `json:"by"`
}

// JobAnswer is the job on which a request acted.
type JobAnswer struct {
	// The job as it is now.
	Job FullJob `json:"job"`
}

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
	Payload Payload `json:"payload,omitempty"`
	// An object with what is to be known about the job.
	Meta Meta `json:"meta,omitempty"`
	// The name of a retry policy, or an object with some of its members.
	Policy PolicyPatch `json:"policy,omitempty"`
	// The longest that an attempt may take.
	TTR *Duration `json:"ttr,omitzero"`
	// An id that other systems know.
	TraceID *string `json:"trace_id,omitzero"`
	// The job does not run before.
	RunAt *Time `json:"run_at,omitzero"`
	// Instead of run_at: how long to wait from now.
	Delay *Duration `json:"delay,omitzero"`
	// The first attempt begins before that, or never.
	ExpiresAt *Time `json:"expires_at,omitzero"`
	// Instead of expires_at: how long from now.
	ExpiresIn *Duration `json:"expires_in,omitzero"`
}

// NewJobs are jobs of which either all are enqueued or none.
type NewJobs struct {
	// Up to 10,000 jobs.
	Jobs []NewJob `json:"jobs" want:"a list of jobs"`
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
	Payload Payload `json:"payload,omitempty"`
	// Another queue, which must be in use.
	Queue *string `json:"queue,omitzero"`
	// Another priority, from -100 to 100.
	Priority *int `json:"priority,omitzero"`
	// The run does not begin before.
	RunAt *Time `json:"run_at,omitzero"`
	// Instead of run_at: how long to wait from now.
	Delay *Duration `json:"delay,omitzero"`
	// The name of another retry policy, or an object with some of its members.
	Policy PolicyPatch `json:"policy,omitempty"`
	// How the source of the job counts the attempts of the run.
	Mode *source.Mode `json:"mode,omitzero"`
}

// RescheduleRequest moves a job that waits.
type RescheduleRequest struct {
	// The run that you looked at, 1 or higher. Any other run is a conflict.
	Run int `json:"run"`
	// When the job shall run. A time that has passed means now.
	RunAt *Time `json:"run_at,omitzero"`
	// Instead of run_at: how long to wait from now.
	Delay *Duration `json:"delay,omitzero"`
}
