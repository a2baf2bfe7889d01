package work

import (
	"redrive/internal/apitype"
	"redrive/internal/job"
	"redrive/internal/retry"
)

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
	StartedAt apitype.Time `json:"started_at,omitzero"`
	// When it ended.
	FinishedAt apitype.Time `json:"finished_at,omitzero"`
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
	FailedAt apitype.Time `json:"failed_at,omitzero"`
	// The queue that the job was in.
	OriginalQueue string `json:"original_queue"`
	// How many attempts the run had.
	Attempts *int `json:"attempts,omitzero"`
	// timed_out or lost, when the last attempt ended so.
	Cause job.Outcome `json:"cause,omitzero"`
	// The dead letter was asked for and not accepted.
	Refused bool `json:"refused,omitzero"`
	// Why it was not accepted.
	Problem string `json:"problem,omitzero"`
	// Where a copy was accepted.
	ForwardedTo string `json:"forwarded_to,omitzero"`
	// When a copy was accepted.
	ForwardedAt apitype.Time `json:"forwarded_at,omitzero"`
	// When the run was replayed.
	ReplayedAt apitype.Time `json:"replayed_at,omitzero"`
	// Who replayed the run.
	ReplayedBy string `json:"replayed_by,omitzero"`
	// When the dead letter was discarded.
	DiscardedAt apitype.Time `json:"discarded_at,omitzero"`
	// Who discarded the dead letter.
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
	// The dead letters, each with its job.
	DeadLetters []DeadLetterAndJob `json:"dead_letters"`
	apitype.Page
	// How many jobs cannot be found by their texts yet.
	NotSearchableYet int `json:"not_searchable_yet,omitzero"`
}

// DeadLetterAndJob is a dead letter with its job.
type DeadLetterAndJob struct {
	// The dead letter.
	DeadLetter DeadLetterRow `json:"letter"`
	// Its job, without the payload.
	Job JobRow `json:"job"`
}

// Trash is one page of the discarded jobs.
type Trash struct {
	// The jobs, those that were discarded last first.
	Trash []Discarded `json:"trash"`
	apitype.Page
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
	DiscardedAt apitype.Time `json:"discarded_at"`
	// Who discarded it.
	DiscardedBy string `json:"discarded_by"`
	// When it will be purged.
	PurgedAt apitype.Time `json:"purged_at,omitzero"`
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
	At apitype.Time `json:"at"`
	// Who replayed it.
	By string `json:"by"`
	// The next run differs in something.
	Changed bool `json:"changed,omitzero"`
}
