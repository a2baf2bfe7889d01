package engine

import (
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/wire"
)

// outcome is an execution that ended, and how that is written down.
type outcome struct {
	job        *job.Job // as it was claimed
	settlement job.Settlement
	sends      bool // its dead letter is still to be sent, and to become part of the settlement
}

// delivered returns the outcome with what became of its dead letter.
func (o outcome) delivered(d job.Delivery) outcome {
	return outcome{job: o.job, settlement: o.settlement.Delivered(d)}
}

func settlements(outcomes []outcome) []job.Settlement {
	list := make([]job.Settlement, len(outcomes))
	for i, o := range outcomes {
		list[i] = o.settlement
	}
	return list
}

// settle decides what becomes of a job whose execution ended. A dead letter
// that it leaves may still have to be sent.
func (e *Engine) settle(j *job.Job, end job.Ending) outcome {
	if end.Outcome.Counted() && end.Outcome != job.Succeeded {
		end.Ruling, end.Note = e.o.Rules(*j, end)
	}
	o := outcome{job: j, settlement: j.Settle(end, e.o.Random)}
	if o.settlement.Letter != job.NoLetter {
		kept, known := e.o.Kept(j.Queue)
		o.settlement, o.sends = o.settlement.Delivered(kept), !known
	}
	return o
}

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
