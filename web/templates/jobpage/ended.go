package jobpage

import (
	"slices"
	"strings"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// discarded says how a job ended that failed for good.
func (s *answer) discarded(v View) {
	ended := latest(v.Job.FinishedAt, v.Job.ChangedAt)
	switch {
	case v.Job.Letter == job.LetterRefused:
		s.refused(v)
	case v.Job.Letter == job.LetterStored:
		s.stored(v)
	case v.Job.Reason == retry.Manual:
		s.byHand(v)
	case v.Job.Reason == retry.UnknownType:
		s.Answers("It was discarded "+s.When(ended)+" %v: %v", ended, whyOver(v))
		s.Says(". The configuration says so for unknown types.")
	case v.Job.Reason == retry.HandlerDiscard:
		s.Answers("Its handler discarded it "+s.When(ended)+" %v", ended)
		s.Says(", %v, after attempt %v: it asked for no dead letter.", format.Relative(ended, s.Now), format.Number(v.Job.Attempts))
	case v.Job.Reason == retry.RuleDecided:
		s.Answers("A rule discarded it "+s.When(ended)+" %v", ended)
		s.Says(", %v: %v. It asks for no dead letter.", format.Relative(ended, s.Now), whyOver(v))
	case v.Job.Reason == retry.Expired:
		s.Answers("It was discarded "+s.When(ended)+" %v: %v", ended, whyOver(v))
		s.Says(". The configuration says so for expired jobs.")
	default:
		s.Answers("Its policy discarded it "+s.When(ended)+" %v", ended)
		s.Says(", %v: %v. The policy asks for no dead letter.", format.Relative(ended, s.Now), whyOver(v))
	}
	s.replayStarts(v)
}

// stored says why a job lies in the dead-letter queue. An envelope that could
// not be read, or that a rule refused, never was a job that ran.
func (s *answer) stored(v View) {
	ended := latest(v.Job.FinishedAt, v.Job.ChangedAt)
	if poisoned(v.Job) {
		s.Answers("It was set aside "+s.When(ended)+" %v: %v", ended, templates.Explain(v.Job.Reason).Short)
		s.Says(", %v", format.Relative(ended, s.Now))
		if m := v.Job.Error.Message; m != "" {
			s.Says(": %v", clip.Text(m, 300))
		}
		s.Says(". %v %v", templates.Explain(v.Job.Reason).Means, templates.Explain(v.Job.Reason).Todo)
		return
	}
	if setAside(v) {
		s.Answers("A rule refused it "+s.When(ended)+" %v", ended)
		s.Says(", %v, before it ran: %v. Replay it to run it all the same.", format.Relative(ended, s.Now), clip.Text(v.Job.Error.Message, 300))
		return
	}
	s.Answers("It was dead-lettered "+s.When(ended)+" %v", ended)
	s.Says(", %v: %v.", format.Relative(ended, s.Now), whyOver(v))
	if l := letterOf(v); l != nil && l.ForwardedTo != "" {
		s.Says(" A copy was sent to %v "+s.When(l.ForwardedAt)+" %v.", l.ForwardedTo, l.ForwardedAt)
	}
}

// refused is the near loss for which the product has its one alarm.
func (s *answer) refused(v View) {
	ended, problem := latest(v.Job.FinishedAt, v.Job.ChangedAt), "its queue took none"
	if l := letterOf(v); l != nil && l.Problem != "" {
		problem = strings.TrimRight(l.Problem, ".")
	}
	s.Answers("Its dead letter was refused: %v", problem)
	s.Says(". The job is kept; nothing is lost. It failed for good "+s.When(ended)+" %v, %v: %v.",
		ended, format.Relative(ended, s.Now), whyOver(v))
	switch {
	case v.ForwardedTo != "":
		s.Says(" Forward it again once %v takes it.", v.ForwardedTo)
	case v.DeadLetters:
		s.Says(" The queue %v has a dead-letter queue now: forward it again.", v.Job.Queue)
	}
}

// letterOf is the dead letter of the current run.
func letterOf(v View) *job.DeadLetter {
	if i := slices.IndexFunc(v.Letters, func(l job.DeadLetter) bool { return l.Run == v.Job.Run }); i >= 0 {
		return &v.Letters[i]
	}
	return nil
}

func (s *answer) byHand(v View) {
	at, by := latest(v.Job.FinishedAt, v.Job.ChangedAt), ""
	if v.Job.Restorable() {
		defer s.Says(" It lies in the trash: Restore brings it back to where it was, until it is purged.")
	}
	i := slices.IndexFunc(v.Letters, func(l job.DeadLetter) bool { return l.Run == v.Job.Run && !l.DiscardedAt.IsZero() })
	if i < 0 {
		s.Answers("It was discarded by hand "+s.When(at)+" %v", at)
		s.Says(", %v.", format.Relative(at, s.Now))
		return
	}
	at, by = v.Letters[i].DiscardedAt, v.Letters[i].DiscardedBy
	s.Answers("%v discarded its dead letter "+s.When(at)+" %v", format.Someone(by), at)
	s.Says(", %v. It had failed for good "+s.When(v.Letters[i].FailedAt)+" %v.", format.Relative(at, s.Now), v.Letters[i].FailedAt)
}

// whyOver is the reason in words, as far as the last attempt tells.
func whyOver(v View) string {
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
	return templates.Explain(v.Job.Reason).Short
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
func lastly(v View) string {
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
