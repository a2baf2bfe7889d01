package engine

import (
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// unknown settles a claimed job that no handler knows. Under Hold the store
// gives out no such jobs.
func (e *Engine) unknown(j *job.Job, now time.Time) outcome {
	end := job.Ending{
		Outcome: job.Failed, FinishedAt: now.UTC(),
		Error: job.ErrorInfo{Type: "unknown_type", Message: fmt.Sprintf("no handler is configured for the type %q", j.Type)},
	}
	switch e.o.UnknownType {
	case DeadLetter:
		end.Answer.Code = retry.CodeDeadLetter
	case Delete:
		end.Answer.Code = retry.CodeDiscard
	}
	s := j.Settle(end, e.o.DeadLetters(j.Queue), e.o.Random)
	if s.Reason != "" {
		s.Reason = retry.UnknownType
	}
	if end.Answer.Code != "" {
		s.Attempt.DecidedBy = "unknown_type:" + string(e.o.UnknownType)
	}
	return outcome{j, s}
}
