package operation

import (
	"cmp"
	"slices"

	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
)

// Named is a run of a job that a person named.
type Named struct {
	ID  string
	Run int
}

// Request asks for an operation. Its scope is one of the three: a filter,
// jobs by name, or what failed again after another operation replayed it.
type Request struct {
	Kind     Kind
	Filter   filter.Filter
	Named    []Named
	Relapsed int64 // the other operation
	Pace     Pace
	Start    bool   // without waiting for a person who has seen the preview
	Key      string // idempotency key, or empty
	Caller   string // whose key it is
	Content  string // hash of what was asked for; empty: not known
}

// scope lists the statuses of the jobs to which an operation of this kind can do
// something, first the one that it means by default; nil for an unknown kind.
func (k Kind) scope() []job.Status {
	switch k {
	case Replay:
		return []job.Status{
			job.StatusDeadLetter, job.StatusDLQFailed, job.Status(job.Discarded), job.Status(job.Cancelled), job.Status(job.Retryable),
		}
	case Discard:
		return []job.Status{
			job.StatusDeadLetter, job.StatusDLQFailed, job.Status(job.Discarded), job.Status(job.Retryable),
			job.Status(job.Scheduled), job.Status(job.Returning), job.Status(job.Returned), job.Status(job.Available), job.StatusHeld,
		}
	case Restore:
		return []job.Status{job.StatusTrashed}
	}

	return nil
}

// Check returns a *invalid.Error for what cannot be done to jobs.
func (k Kind) Check() error {
	if k.scope() == nil {
		return invalid.Errorf("kind", "%q is unknown; use replay, discard or restore", clip.Text(string(k), 64))
	}
	return nil
}

// Scope completes the filter of an operation: without a state it means the
// dead letters, or the trash. It returns a *invalid.Error for a state to
// whose jobs this kind of operation can do nothing.
func (k Kind) Scope(f filter.Filter) (filter.Filter, error) {
	if err := k.Check(); err != nil {
		return f, err
	}

	fit := k.scope()
	f.Status = cmp.Or(f.Status, fit[0])
	if !slices.Contains(fit, f.Status) {
		return f, invalid.Errorf("state", "no job that is %s can take part in a %s; use one of %s", f.Status, k, fit)
	}

	return f, nil
}

// Skip is why a job does not take part, as a stable code.
type Skip string

// Unfit says why an operation of this kind can do nothing to the run of the
// job; empty when it can.
func (k Kind) Unfit(j job.Job, run int) Skip {
	switch {
	case j.Run > run:
		return SkipReplayed
	case j.Run < run:
		return SkipNoRun
	case k == Restore && j.Restorable(),
		k == Replay && j.Replayable() && j.DeadLetter != job.DeadLetterTrashed,
		k == Discard && j.Discardable() && j.DeadLetter != job.DeadLetterTrashed:
		return ""
	}

	return Skip(j.Status())
}

// The reasons to skip a job. A state that does not fit is named by its status.
const (
	SkipGone     Skip = "gone"     // the job was removed, or never was
	SkipReplayed Skip = "replayed" // another replay was first: the job is in a later run
	SkipNoRun    Skip = "no_run"   // the job never had this run
	SkipRefused  Skip = "refused"  // the source where the job is does not allow it
	SkipCause    Skip = "cause"    // a person resumed the operation without the cause of the job
)
