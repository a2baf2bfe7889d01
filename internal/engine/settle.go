package engine

import (
	"context"

	"redrive/internal/job"
)

// settle decides what becomes of a job whose execution ended, and sends its
// dead letter on the way if it leaves one.
func (e *Engine) settle(j *job.Job, end job.Ending) outcome {
	if end.Outcome.Counted() && end.Outcome != job.Succeeded {
		end.Ruling, end.Note = e.o.Rules(*j, end)
	}
	s := j.Settle(end, e.o.Random)
	if letter, ok := s.DeadLetter(j.Queue); ok {
		s = s.Delivered(e.o.Deliver(context.Background(), *j, letter))
	}
	return outcome{j, s}
}
