package templates

import (
	"strings"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates/format"
)

// thenOf says what happened after attempt i of a run: the fate that was
// decided, and what became of it.
func thenOf(v *JobPage, r *jobRun, i int) answer {
	s, a := answer{sentence{now: v.Now}}, r.attempts[i]
	switch {
	case a.Outcome == job.Interrupted:
		s.says("released by a graceful stop and put back at once; it does not count")
	case a.Outcome == job.CancelledBy:
		s.says("cancelled by a person while it ran; it does not count")
	case a.Action == retry.Retry:
		s.retried(v, r, i)
	case a.Action == retry.DeadLetter:
		s.lettered(r)
	case a.Action == retry.Discard:
		s.says("discarded, without a dead letter")
	}
	if i == len(r.attempts)-1 && a.Outcome != job.CancelledBy && a.Action != retry.Retry {
		s.followed(r)
	}
	return s
}

// retried says when the retry took place, or that something came before it.
func (s *answer) retried(v *JobPage, r *jobRun, i int) {
	switch {
	case i+1 < len(r.attempts):
		next := r.attempts[i+1].StartedAt
		s.says("retried "+s.when(next)+" %v", next)
	case r.current && v.Job.State == job.Retryable:
		s.says("retries "+s.when(v.Job.RunAt)+" %v", v.Job.RunAt)
	case r.current && v.Job.State == job.Active:
		s.says("retried "+s.when(v.Job.StartedAt)+" %v", v.Job.StartedAt)
	case r.replay != nil:
		s.says("before that, %v replayed the job "+s.when(r.replay.At)+" %v", format.By(r.replay.By), r.replay.At)
	case r.current:
		s.says("but the job left the wait: it is %v", lookOf(r.status).word)
	}
}

// lettered says whether the dead letter was accepted, and where.
func (s *answer) lettered(r *jobRun) {
	switch l := r.letter; {
	case l == nil:
		s.says("sent to the dead-letter queue")
		return
	case l.Refused && l.Problem == "":
		s.says("its dead letter was refused. The job was kept")
		return
	case l.Refused:
		s.says("its dead letter was refused: %v. The job was kept", strings.TrimRight(l.Problem, "."))
		return
	default:
		s.says("stored in the dead-letter queue "+s.when(l.FailedAt)+" %v", l.FailedAt)
	}
	if l := r.letter; l.ForwardedTo != "" {
		s.says(", a copy sent to %v "+s.when(l.ForwardedAt)+" %v", l.ForwardedTo, l.ForwardedAt)
	}
}

// followed says what a person did about the end of a run.
func (s *answer) followed(r *jobRun) {
	if l := r.letter; l != nil && !l.DiscardedAt.IsZero() {
		s.says("; %v discarded it "+s.when(l.DiscardedAt)+" %v", format.By(l.DiscardedBy), l.DiscardedAt)
	}
	if r.replay != nil {
		s.says("; %v replayed it "+s.when(r.replay.At)+" %v, run %v", format.By(r.replay.By), r.replay.At, r.number+1)
	}
}
