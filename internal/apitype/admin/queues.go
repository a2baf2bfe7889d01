package admin

import (
	"redrive/internal/apitype"
	"redrive/internal/retention"
	"redrive/internal/stats"
	"redrive/internal/wire"
)

// Queue is a queue with its numbers. The queue of a source has no workers, running and
// dead_letter, which are the source's own.
type Queue struct {
	// The name; of a queue of a source, QUEUE@SOURCE.
	Name string `json:"name"`
	// The source that the queue belongs to.
	Source string `json:"source,omitzero"`
	stats.Totals
	// How many jobs are in each status, also at zero.
	States stats.Depths `json:"states"`
	// Since when the oldest job that may run waits.
	Oldest apitype.Time `json:"oldest,omitzero"`
	// When the queue was paused.
	PausedAt apitype.Time `json:"paused_at,omitzero"`
	// Who paused the queue.
	PausedBy string `json:"paused_by,omitzero"`
	// How many workers the queue has.
	Workers *int `json:"workers,omitzero"`
	// How many jobs are running.
	Running *int `json:"running,omitzero"`
	// Jobs that fail permanently become dead letters.
	DeadLetter *bool `json:"dead_letter,omitzero"`
	// The host to which dead letters are sent.
	Forward string `json:"forward,omitzero"`
}

// QueueList is one page of the queues.
type QueueList struct {
	// The queues by name, up to a thousand.
	Queues []Queue `json:"queues"`
	apitype.Page
}

// QueueAnswer is one queue.
type QueueAnswer struct {
	// The queue.
	Queue Queue `json:"queue"`
}

// QueuePaused is the answer to a pause or a resume.
type QueuePaused struct {
	// The name of the queue.
	Queue string `json:"queue"`
	// Whether the queue is paused now.
	Paused bool `json:"paused"`
}

// QueueRemoved is the answer to the removal of a queue.
type QueueRemoved struct {
	// The name of the queue.
	Queue string `json:"queue"`
	// How many finished jobs were removed with it.
	RemovedJobs int64 `json:"removed_jobs"`
}

// Fill says how full the dead-letter queue is.
type Fill struct {
	// The dead letters that are neither replayed nor discarded.
	Open int64 `json:"open"`
	// Open dead letters at sources: they are not among the others, and not limited.
	AtSources int64 `json:"at_sources"`
	// How many dead letters are kept.
	Limit int64 `json:"limit,omitzero"`
	// The share of the limit that is used, from 0 to 1; 0 without a limit.
	Share float64 `json:"share"`
	// Of the open ones, how many failed in this hour or the 23 before.
	LastDay int64 `json:"last_day"`
	// When the oldest open one failed.
	Oldest apitype.Time `json:"oldest,omitzero"`
	// How long dead letters are kept.
	MaxAge apitype.Duration `json:"max_age,omitzero"`
	// When the queue will warn, at the pace of the last day.
	WarnsAt apitype.Time `json:"warns_at,omitzero"`
	// When the queue will be full, at the pace of the last day.
	FullAt apitype.Time `json:"full_at,omitzero"`
	// The queue is so full that it warns.
	Warning bool `json:"warning"`
}

// Retention is how long jobs are kept, what will be removed, and what was.
type Retention struct {
	// When that was counted.
	AsOf apitype.Time `json:"as_of,omitzero"`
	// Nothing is removed before.
	StartsAt apitype.Time `json:"starts_at,omitzero"`
	// Nothing is removed until then, because the clock of the machine jumped.
	HeldUntil apitype.Time `json:"held_until,omitzero"`
	// How many dead letters are kept.
	MaxDeadLetters int64 `json:"max_dead_letters,omitzero"`
	// The kinds of jobs that are kept for a time.
	Kinds []RetentionKind `json:"kinds"`
	// What was removed since the beginning.
	Removed []Removal `json:"removed"`
}

// RetentionKind is the jobs that ended in one way.
type RetentionKind struct {
	// How they ended.
	Kind retention.Kind `json:"kind"`
	// How many there are.
	Kept int64 `json:"kept"`
	// When the oldest ended.
	Oldest apitype.Time `json:"oldest,omitzero"`
	// How long they are kept; missing: forever.
	Age apitype.Duration `json:"age,omitzero"`
	// How many will be removed within 24 hours.
	RemovedWithinDay int64 `json:"removed_within_day"`
	// There are more than that.
	More bool `json:"more,omitzero"`
}

// Removal is what was removed of one queue.
type Removal struct {
	// How the jobs had ended.
	Kind retention.Kind `json:"kind"`
	// The name of the queue.
	Queue string `json:"queue"`
	// How many jobs were removed.
	Jobs int64 `json:"jobs"`
	// When the newest of them was removed.
	LastAt apitype.Time `json:"last_at"`
}

// WorkerList is the worker in this process.
type WorkerList struct {
	// One worker.
	Workers []Worker `json:"workers"`
	apitype.Page
}

// Worker is the worker in this process, with the jobs that any worker has.
type Worker struct {
	// The name of the worker.
	Name string `json:"name"`
	// When it began.
	Since apitype.Time `json:"since"`
	// It takes no jobs.
	Quiet bool `json:"quiet"`
	// Since when it takes none.
	QuietAt apitype.Time `json:"quiet_at,omitzero"`
	// Who told it so.
	QuietBy string `json:"quiet_by,omitzero"`
	// The queues that it works on.
	Queues []WorkerQueue `json:"queues"`
	// The jobs that run, by whatever worker, the newest first.
	Jobs []Claim `json:"jobs"`
	// The jobs whose handlers do not return although they were given up.
	Stuck []StuckJob `json:"stuck"`
}

// WorkerQueue is a queue as its worker sees it.
type WorkerQueue struct {
	// The name of the queue.
	Name string `json:"name"`
	// How many jobs may run at once.
	Workers int `json:"workers"`
	// How many jobs are running.
	Running int `json:"running"`
	// How many jobs may run.
	Available int64 `json:"available"`
	// The queue is paused.
	Paused bool `json:"paused"`
}

// Claim is a job that a worker has.
type Claim struct {
	// Names the job: a UUID, version 7.
	ID string `json:"id"`
	// The type of the job.
	Type string `json:"type"`
	// The queue of the job.
	Queue string `json:"queue"`
	// The run that it is in.
	Run int `json:"run"`
	// The number of the execution, over all runs.
	Execution int `json:"execution"`
	// The worker that has it.
	Worker string `json:"worker"`
	// When the execution began.
	StartedAt apitype.Time `json:"started_at"`
	// The worker has the job until then, unless it extends that.
	LeaseUntil apitype.Time `json:"lease_until"`
	// The last sign of life of the worker.
	LastSeen apitype.Time `json:"last_seen"`
	// The job waits for the handler of an earlier execution.
	Waits bool `json:"waits,omitzero"`
}

// StuckJob is a job whose handler does not return.
type StuckJob struct {
	// Names the job: a UUID, version 7.
	ID string `json:"id"`
	// The type of the job.
	Type string `json:"type"`
	// The queue of the job.
	Queue string `json:"queue"`
	// When the execution began.
	StartedAt apitype.Time `json:"started_at"`
	// When it was given up.
	GivenUpAt apitype.Time `json:"given_up_at"`
}

// PolicyList is the retry policies.
type PolicyList struct {
	// Those of the configuration.
	Policies []NamedPolicy `json:"policies"`
	// Those that are built in.
	Presets []NamedPolicy `json:"presets"`
}

// NamedPolicy is a retry policy with the name by which jobs refer to it.
type NamedPolicy struct {
	// The name: default, queue:NAME, type:NAME, or one of its own.
	Name string `json:"name"`
	// The policy.
	Policy wire.Policy `json:"policy"`
	// The longest that an attempt may take, where the configuration says so.
	TTR apitype.Duration `json:"ttr,omitzero"`
}

// Reloaded is what reading the configuration again has changed.
type Reloaded struct {
	// The settings that changed.
	Changed []string `json:"changed" schema:"nullable"`
	// Those that take effect only after a restart.
	Restart []string `json:"restart" schema:"nullable"`
}
