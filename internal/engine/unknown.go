package engine

import (
	"fmt"
	"time"

	"redrive/internal/job"
)

// unknown settles a claimed job that no handler knows. Under the strategy hold
// the store gives out no such jobs.
func (e *Engine) unknown(j *job.Job, now time.Time) outcome {
	return e.settle(j, job.Ending{
		Outcome: job.Failed, FinishedAt: now.UTC(), Unknown: e.o.UnknownType,
		Error: job.ErrorInfo{Type: "unknown_type", Message: fmt.Sprintf("no handler is configured for the type %q", j.Type)},
	})
}
