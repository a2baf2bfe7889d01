package engine

import (
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/wire"
)

// unknown is the end of a claimed job that no handler knows. Under the strategy
// hold the store gives out no such jobs.
func (e *Engine) unknown(j job.Job, now time.Time) job.Ending {
	return job.Ending{
		Outcome: job.Failed, FinishedAt: now.UTC(), Unknown: e.o.UnknownType,
		Error: job.ErrorInfo{Type: "unknown_type", Message: fmt.Sprintf("no handler is configured for the type %q", j.Type)},
	}
}

// expired is the end of a claimed job whose time to live was over before its
// first attempt.
func (e *Engine) expired(j job.Job, now time.Time) job.Ending {
	return job.Ending{
		Outcome: job.Failed, FinishedAt: now.UTC(), Expired: e.o.Expired(j.Queue),
		Error: job.ErrorInfo{Type: "expired", Message: "its time to live ended at " + wire.FormatTime(j.ExpiresAt) + ", before it ran"},
	}
}
