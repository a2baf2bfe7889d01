package jobpage

import (
	"strings"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// thenOf says what happened after attempt i of a run: the fate that was
// decided, and what became of it.
func thenOf(v *View, r *jobRun, i int) answer {
	s, a := answer{templates.Sentence{Now: v.Now}}, r.attempts[i]
	switch {
	case a.Outcome == job.Interrupted:
		s.Says("released by a graceful stop and put back at once; it does not count")
	case a.Outcome == job.CancelledBy:
		s.Says("cancelled by a person while it ran; it does not count")
	case a.Action == retry.Retry:
		s.retried(v, r, i)
	case a.Action == retry.DeadLetter:
		s.lettered(r)
	case a.Action == retry.Discard:
		s.Says("discarded, without a dead letter")
	}
	if i == len(r.attempts)-1 && a.Outcome != job.CancelledBy && a.Action != retry.Retry {
		s.followed(r)
	}
	return s
}

// retried says when the retry took place, or that something came before it.
func (s *answer) retried(v *View, r *jobRun, i int) {
	switch {
	case i+1 < len(r.attempts):
		next := r.attempts[i+1].StartedAt
		s.Says("retried "+s.When(next)+" %v", next)
	case r.current && v.Job.State == job.Retryable:
		s.Says("retries "+s.When(v.Job.RunAt)+" %v", v.Job.RunAt)
	case r.current && v.Job.State == job.Active:
		s.Says("retried "+s.When(v.Job.StartedAt)+" %v", v.Job.StartedAt)
	case r.replay != nil:
		s.Says("before that, %v replayed the job "+s.When(r.replay.At)+" %v", format.By(r.replay.By), r.replay.At)
	case r.current:
		s.Says("but the job left the wait: it is %v", templates.LookOf(r.status).Word)
	}
}

// lettered says whether the dead letter was accepted, and where.
func (s *answer) lettered(r *jobRun) {
	switch l := r.letter; {
	case l == nil:
		s.Says("sent to the dead-letter queue")
		return
	case l.Refused && l.Problem == "":
		s.Says("its dead letter was refused. The job was kept")
		return
	case l.Refused:
		s.Says("its dead letter was refused: %v. The job was kept", strings.TrimRight(l.Problem, "."))
		return
	default:
		s.Says("stored in the dead-letter queue "+s.When(l.FailedAt)+" %v", l.FailedAt)
	}
	if l := r.letter; l.ForwardedTo != "" {
		s.Says(", a copy sent to %v "+s.When(l.ForwardedAt)+" %v", l.ForwardedTo, l.ForwardedAt)
	}
}

// followed says what a person did about the end of a run.
func (s *answer) followed(r *jobRun) {
	if l := r.letter; l != nil && !l.DiscardedAt.IsZero() {
		s.Says("; %v discarded it "+s.When(l.DiscardedAt)+" %v", format.By(l.DiscardedBy), l.DiscardedAt)
	}
	if r.replay != nil {
		s.Says("; %v replayed it "+s.When(r.replay.At)+" %v, run %v", format.By(r.replay.By), r.replay.At, r.number+1)
	}
}
