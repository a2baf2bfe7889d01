package work

import (
	"redrive/internal/apitype"
	"redrive/internal/operation"
)

// Operation is a replay, a discard or a restore of many jobs. Its numbers count from its start:
// total = pending + done + skipped + failed, and of a replay done = succeeded + relapsed +
// dropped + unknown + unsettled.
type Operation struct {
	// The number of the operation.
	ID int64 `json:"id"`
	// What it does to its jobs.
	Kind operation.Kind `json:"kind"`
	// Where it is: preview, running, paused, finished or aborted.
	State operation.State `json:"state"`
	// Why it paused or ended.
	Why string `json:"why,omitzero"`
	// The filter that selected its jobs; missing when they were named.
	Filter string `json:"filter,omitzero"`
	// The number of another operation: the jobs are those that it replayed and that failed again.
	RelapsedOf int64 `json:"relapsed_of,omitzero"`
	// When the jobs were selected: a job that changed later is none of them.
	Until apitype.Time `json:"until"`
	// Jobs a second; 0: no limit.
	Rate float64 `json:"rate"`
	// Instead of a rate: the time over which the jobs are spread.
	Spread apitype.Duration `json:"spread,omitzero"`
	// It pauses after so many jobs; 0: never. Missing until the jobs are collected, when a share of them is to be the canary.
	Canary *int64 `json:"canary,omitzero"`
	// It pauses when too many of the last replays failed again with the error that they had before.
	Guard bool `json:"guard"`
	// When it was made.
	CreatedAt apitype.Time `json:"created_at"`
	// Who made it.
	CreatedBy string `json:"created_by"`
	// When it was started.
	StartedAt apitype.Time `json:"started_at,omitzero"`
	// Who started it.
	StartedBy string `json:"started_by,omitzero"`
	// When it finished or was aborted.
	FinishedAt apitype.Time `json:"finished_at,omitzero"`
	// How many jobs it has.
	Total int64 `json:"total"`
	// How many jobs it has not come to.
	Pending int64 `json:"pending"`
	// How many jobs it acted on.
	Done int64 `json:"done"`
	// How many jobs were no longer in the run or the state in which they were selected.
	Skipped int64 `json:"skipped"`
	// How many jobs it could not act on.
	Failed int64 `json:"failed"`
	// How many of the replayed jobs succeeded.
	Succeeded int64 `json:"succeeded"`
	// How many of the replayed jobs failed permanently again.
	Relapsed int64 `json:"relapsed"`
	// How many of the replayed jobs were cancelled or discarded before they ended.
	Dropped int64 `json:"dropped"`
	// Of how many of the replayed jobs it is unknown whether their source has begun to run them.
	Unknown int64 `json:"unknown"`
	// How many of the replayed jobs have not ended.
	Unsettled int64 `json:"unsettled"`
	// How long the rest takes at the rate that was set; missing without one.
	Left *apitype.Duration `json:"left,omitzero"`
	// How many causes the jobs have: one for each error group, and one for each type of jobs that have no group.
	Causes int64 `json:"causes"`
}

// OperationList is one page of the operations.
type OperationList struct {
	// The operations, the newest first.
	Operations []Operation `json:"operations"`
	apitype.NumberedPage
}

// OperationAnswer is the operation on which a request acted.
type OperationAnswer struct {
	// The operation as it is now.
	Operation Operation `json:"operation"`
}

// OperationDetail is an operation with its progress, what its jobs consist of, and who did what to it.
type OperationDetail struct {
	// The operation.
	Operation Operation `json:"operation"`
	// How it went so far.
	Progress Progress `json:"progress"`
	// What its jobs consist of.
	Breakdown Breakdown `json:"breakdown"`
	// The first 25 jobs that were skipped.
	Skipped []OperationItem `json:"skipped"`
	// The entries of the audit log about the operation.
	Log []apitype.AuditEntry `json:"log"`
}

// Progress is how an operation went so far: its canary, the replays that sources have,
// and what its guard sees.
type Progress struct {
	// Of the canary, how many succeeded.
	CanarySucceeded int64 `json:"canary_succeeded"`
	// Of the canary, how many failed permanently again.
	CanaryRelapsed int64 `json:"canary_relapsed"`
	// Of the canary, how many were cancelled or discarded.
	CanaryDropped int64 `json:"canary_dropped"`
	// Of the canary, how many have an unknown fate at their source.
	CanaryUnknown int64 `json:"canary_unknown"`
	// Of the canary, how many have not ended.
	CanaryUnsettled int64 `json:"canary_unsettled"`
	// Of the unsettled ones of the canary, how many sources have.
	CanaryAtSource int64 `json:"canary_at_source"`
	// How many of those count as returned to their source: they have not failed there for ten minutes, and most sources tell of nothing else.
	CanaryReturned int64 `json:"canary_returned"`
	// Of all unsettled ones, how many sources have.
	AtSource int64 `json:"at_source"`
	// How many of those count as returned to their source: they have not failed there for ten minutes, and most sources tell of nothing else.
	Returned int64 `json:"returned"`
	// The source that has them; missing when several have.
	Source string `json:"source,omitzero"`
	// What that source reports: "failures", or "failures and successes". Missing like the source.
	SourceReports string `json:"source_reports,omitzero"`
	// When the last of those at sources that do not count as returned yet will do so.
	ReturnedUntil apitype.Time `json:"returned_until,omitzero"`
	// The canary by cause, the one of which most jobs failed again first.
	CanaryCauses []CanaryCause `json:"canary_causes"`
	// How many of the last replays, as far as the guard looks back, have ended.
	GuardEnded int64 `json:"guard_ended"`
	// How many of those failed again with the error that they had before.
	GuardSame int64 `json:"guard_same"`
	// The cause that came back most often among those.
	GuardBack *CauseCount `json:"guard_back,omitzero"`
}

// Cause is why jobs had failed when they were selected: an error group with its class, or the type of
// jobs that have no group.
type Cause struct {
	// The fingerprint of the error group.
	Group string `json:"group,omitzero"`
	// The class of the error.
	Class string `json:"class,omitzero"`
	// The type of the jobs.
	Type string `json:"type,omitzero"`
}

// CauseCount is a cause with the number of its jobs.
type CauseCount struct {
	Cause
	// How many jobs have it.
	Count int64 `json:"count"`
}

// CanaryCause is what became of the jobs of one cause in a canary.
type CanaryCause struct {
	Cause
	// How many succeeded.
	Succeeded int64 `json:"succeeded"`
	// How many failed permanently again.
	Relapsed int64 `json:"relapsed"`
	// How many were cancelled or discarded.
	Dropped int64 `json:"dropped"`
	// How many have an unknown fate at their source.
	Unknown int64 `json:"unknown"`
	// How many have not ended.
	Unsettled int64 `json:"unsettled"`
}

// Breakdown is what the jobs of an operation consist of.
type Breakdown struct {
	// The jobs by queue and type, the most first.
	Scope []ScopePart `json:"scope"`
	// The jobs by cause, the most first.
	Causes []CauseCount `json:"causes"`
	// The jobs by source, the most first.
	Sources []ScopeSource `json:"sources"`
	// How many jobs have a type without a handler.
	Unhandled int64 `json:"unhandled"`
	// Why jobs were skipped, the most frequent reason first.
	Skips []SkipCount `json:"skips"`
}

// ScopePart is the jobs of one queue and type.
type ScopePart struct {
	// The name of the queue.
	Queue string `json:"queue"`
	// The type of the jobs.
	Type string `json:"type"`
	// How many there are.
	Count int64 `json:"count"`
}

// ScopeSource is the jobs of one source.
type ScopeSource struct {
	// The name of the source.
	Name string `json:"name"`
	// How many jobs there are.
	Count int64 `json:"count"`
	// Whether the configuration names the source.
	Attached bool `json:"attached"`
}

// SkipCount is how many jobs were skipped for one reason.
type SkipCount struct {
	// The reason.
	Code operation.Skip `json:"code"`
	// How many jobs there are.
	Count int64 `json:"count"`
}

// OperationItem is one job of an operation, and what became of it.
type OperationItem struct {
	// The place of the job in the order of work, from 1.
	N int64 `json:"n"`
	// The job; missing when it is gone.
	JobID string `json:"job_id,omitzero"`
	// The type of the job.
	Type string `json:"type,omitzero"`
	// The queue of the job.
	Queue string `json:"queue,omitzero"`
	// The run on which the operation acts.
	Run int `json:"run"`
	// What the operation did to the job.
	State operation.ItemState `json:"state"`
	// Why it was skipped, for programs.
	Code operation.Skip `json:"code,omitzero"`
	// Why it was skipped or failed, for people.
	Why string `json:"why,omitzero"`
	// The operation that acted on the job first, when it was skipped for that.
	OtherOperation int64 `json:"other_operation,omitzero"`
	// When the operation came to the job.
	At apitype.Time `json:"at,omitzero"`
	// How the replayed run ended.
	Outcome operation.RunOutcome `json:"outcome,omitzero"`
	// When the replayed run ended.
	EndedAt apitype.Time `json:"ended_at,omitzero"`
	// Whether its source has the job, and it has not failed there for ten minutes.
	Returned bool `json:"returned,omitzero"`
}

// OperationItems is one page of the jobs of an operation.
type OperationItems struct {
	// The jobs, in the order of work.
	Items []OperationItem `json:"items"`
	apitype.NumberedPage
}

// OperationRate is how many jobs an operation acted on in each of equal stretches of time since its start.
type OperationRate struct {
	// When the first stretch began; missing when nothing was done.
	From apitype.Time `json:"from,omitzero"`
	// How long each stretch is, in seconds.
	StepSeconds float64 `json:"step_seconds,omitzero"`
	// The jobs of each stretch.
	Done []int64 `json:"done"`
}

// NewOperation makes an operation. Exactly one of filter, jobs and relapsed_of says on
// which jobs it acts.
type NewOperation struct {
	// What to do to the jobs.
	Kind operation.Kind `json:"kind" want:"replay, discard or restore"`
	// Start as soon as the jobs are collected, without a preview.
	Start bool `json:"start,omitzero"`
	// Selects the jobs.
	Filter *string `json:"filter,omitzero" want:"a filter as text"`
	// The number of an operation: the jobs are those that it replayed and that failed again.
	RelapsedOf *int64 `json:"relapsed_of,omitzero" want:"the number of an operation"`
	// Names the jobs.
	Jobs []JobRun `json:"jobs,omitempty" want:"a list of {\"id\", \"run\"}"`
	PaceRequest
}

// JobRun names a job in a run.
type JobRun struct {
	// The id of the job.
	ID string `json:"id" want:"a job's id"`
	// The run that it is in, 1 or higher; a job that is in another one by now is skipped.
	Run int `json:"run" want:"a number"`
}

// PaceRequest says how fast and how carefully an operation works. What is missing stays
// as it is; a new operation has no limit, a canary that depends on the number of its jobs, and a guard.
type PaceRequest struct {
	RateRequest
	// Pause after so many jobs; 0: never.
	Canary *int64 `json:"canary,omitzero" want:"a whole number of jobs"`
	// Pause when too many of the last replays failed again with the error that they had before.
	Guard *bool `json:"guard,omitzero"`
}

// RateRequest says how fast an operation works.
type RateRequest struct {
	// Jobs a second; 0: no limit.
	Rate *float64 `json:"rate,omitzero" want:"a number of jobs a second"`
	// Instead of a rate: the time over which to spread the jobs.
	Spread *apitype.Duration `json:"spread,omitzero"`
}
