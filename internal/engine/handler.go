package engine

import (
	"context"

	"redrive/internal/job"
)

// Handler does the work of one job. Nil is success. Any error fails the
// attempt; a *job.Failure, wrapped or not, carries a type, a trace and an
// answer to the policy. ctx ends at the job's ttr, when a person cancels the
// job, when its lease is lost, and at the end of a graceful stop; its cause
// says which. A handler that returns later than that is not believed.
type Handler func(ctx context.Context, j job.Job) error
