package templates

import (
	"slices"
	"strings"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates/format"
)

// discarded says how a job ended that failed for good.
func (s *answer) discarded(v JobPage) {
	ended := latest(v.Job.FinishedAt, v.Job.ChangedAt)
	switch {
	case v.Job.Letter == job.LetterRefused:
		s.refused(v)
	case v.Job.Letter == job.LetterStored:
		s.stored(v)
	case v.Job.Reason == retry.Manual:
		s.byHand(v)
	case v.Job.Reason == retry.UnknownType:
		s.answers("It was discarded "+s.when(ended)+" %v: %v", ended, whyOver(v))
		s.says(". The configuration says so for unknown types.")
	case v.Job.Reason == retry.HandlerDiscard:
		s.answers("Its handler discarded it "+s.when(ended)+" %v", ended)
		s.says(", %v, after attempt %v: it asked for no dead letter.", format.Relative(ended, s.now), format.Number(v.Job.Attempts))
	case v.Job.Reason == retry.RuleDecided:
		s.answers("A rule discarded it "+s.when(ended)+" %v", ended)
		s.says(", %v: %v. It asks for no dead letter.", format.Relative(ended, s.now), whyOver(v))
	case v.Job.Reason == retry.Expired:
		s.answers("It was discarded "+s.when(ended)+" %v: %v", ended, whyOver(v))
		s.says(". The configuration says so for expired jobs.")
	default:
		s.answers("Its policy discarded it "+s.when(ended)+" %v", ended)
		s.says(", %v: %v. The policy asks for no dead letter.", format.Relative(ended, s.now), whyOver(v))
	}
	s.replayStarts(v)
}

// stored says why a job lies in the dead-letter queue. An envelope that could
// not be read, or that a rule refused, never was a job that ran.
func (s *answer) stored(v JobPage) {
	ended := latest(v.Job.FinishedAt, v.Job.ChangedAt)
	if poisoned(v.Job) {
		s.answers("It was set aside "+s.when(ended)+" %v: %v", ended, becauseOf(v.Job.Reason).short)
		s.says(", %v", format.Relative(ended, s.now))
		if m := v.Job.Error.Message; m != "" {
			s.says(": %v", clip.Text(m, 300))
		}
		s.says(". %v %v", becauseOf(v.Job.Reason).means, becauseOf(v.Job.Reason).todo)
		return
	}
	if setAside(v) {
		s.answers("A rule refused it "+s.when(ended)+" %v", ended)
		s.says(", %v, before it ran: %v. Replay it to run it all the same.", format.Relative(ended, s.now), clip.Text(v.Job.Error.Message, 300))
		return
	}
	s.answers("It was dead-lettered "+s.when(ended)+" %v", ended)
	s.says(", %v: %v.", format.Relative(ended, s.now), whyOver(v))
	if l := letterOf(v); l != nil && l.ForwardedTo != "" {
		s.says(" A copy was sent to %v "+s.when(l.ForwardedAt)+" %v.", l.ForwardedTo, l.ForwardedAt)
	}
}

// refused is the near loss for which the product has its one alarm.
func (s *answer) refused(v JobPage) {
	ended, problem := latest(v.Job.FinishedAt, v.Job.ChangedAt), "its queue took none"
	if l := letterOf(v); l != nil && l.Problem != "" {
		problem = strings.TrimRight(l.Problem, ".")
	}
	s.answers("Its dead letter was refused: %v", problem)
	s.says(". The job is kept; nothing is lost. It failed for good "+s.when(ended)+" %v, %v: %v.", ended, format.Relative(ended, s.now), whyOver(v))
	switch {
	case v.ForwardedTo != "":
		s.says(" Forward it again once %v takes it.", v.ForwardedTo)
	case v.DeadLetters:
		s.says(" The queue %v has a dead-letter queue now: forward it again.", v.Job.Queue)
	}
}

// letterOf is the dead letter of the current run.
func letterOf(v JobPage) *job.DeadLetter {
	if i := slices.IndexFunc(v.Letters, func(l job.DeadLetter) bool { return l.Run == v.Job.Run }); i >= 0 {
		return &v.Letters[i]
	}
	return nil
}

func (s *answer) byHand(v JobPage) {
	at, by := latest(v.Job.FinishedAt, v.Job.ChangedAt), ""
	if v.Job.Restorable() {
		defer s.says(" It lies in the trash: Restore brings it back to where it was, until it is purged.")
	}
	i := slices.IndexFunc(v.Letters, func(l job.DeadLetter) bool { return l.Run == v.Job.Run && !l.DiscardedAt.IsZero() })
	if i < 0 {
		s.answers("It was discarded by hand "+s.when(at)+" %v", at)
		s.says(", %v.", format.Relative(at, s.now))
		return
	}
	at, by = v.Letters[i].DiscardedAt, v.Letters[i].DiscardedBy
	s.answers("%v discarded its dead letter "+s.when(at)+" %v", format.Someone(by), at)
	s.says(", %v. It had failed for good "+s.when(v.Letters[i].FailedAt)+" %v.", format.Relative(at, s.now), v.Letters[i].FailedAt)
}

// whyOver is the reason in words, as far as the last attempt tells.
func whyOver(v JobPage) string {
	switch v.Job.Reason {
	case retry.AttemptsExhausted:
		return allFailed(v.Job.Attempts) + lastly(v)
	case retry.NonRetryable:
		return "errors of the type " + format.Visible(v.Job.Error.Type) + " are never retried"
	case retry.HandlerDeadLetter:
		if a := lastAttempt(v); a != nil && a.DecidedBy == "handler:not_retryable" {
			return "its handler said that retrying is futile"
		}
		return "its handler asked for it"
	case retry.RuleDecided:
		if name := ruleOf(lastAttempt(v)); name != "" {
			return "the rule " + format.Visible(name) + " decided so" + lastly(v)
		}
	case retry.UnknownType:
		return "no handler is configured for its type"
	case retry.Expired:
		return "its time to live ended before it ran"
	case retry.Manual:
		return "somebody decided so"
	case "":
		return "no reason was given"
	}
	return becauseOf(v.Job.Reason).short
}

func allFailed(attempts int) string {
	switch attempts {
	case 1:
		return "its only attempt failed"
	case 2:
		return "both attempts failed"
	}
	return "all " + format.Number(attempts) + " attempts failed"
}

// lastly adds how the last attempt ended, where that says more than that it
// failed.
func lastly(v JobPage) string {
	l := letterOf(v)
	switch {
	case l == nil || l.Cause == "":
		return ""
	case v.Job.Attempts == 1 && l.Cause == job.Lost:
		return " (it was lost)"
	case v.Job.Attempts == 1:
		return " (it timed out)"
	case l.Cause == job.Lost:
		return ", the last one was lost"
	}
	return ", the last one timed out"
}
