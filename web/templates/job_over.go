package templates

import (
	"slices"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// discarded says how a job ended that failed for good.
func (s *sentence) discarded(v JobPage) {
	ended := latest(v.Job.FinishedAt, v.Job.ChangedAt)
	switch {
	case v.Job.Letter == job.LetterRefused:
		s.refused(v)
	case v.Job.Letter == job.LetterStored:
		s.answers("It was dead-lettered "+s.when(ended)+" %v", ended)
		s.says(", %v: %v.", relative(ended, s.now), whyOver(v))
	case v.Job.Reason == retry.Manual:
		s.byHand(v)
	case v.Job.Reason == retry.UnknownType:
		s.answers("It was discarded "+s.when(ended)+" %v: %v", ended, whyOver(v))
		s.says(". The configuration says so for unknown types.")
	case v.Job.Reason == retry.HandlerDiscard:
		s.answers("Its handler discarded it "+s.when(ended)+" %v", ended)
		s.says(", %v, after attempt %v: it asked for no dead letter.", relative(ended, s.now), number(v.Job.Attempts))
	default:
		s.answers("Its policy discarded it "+s.when(ended)+" %v", ended)
		s.says(", %v: %v. The policy asks for no dead letter.", relative(ended, s.now), whyOver(v))
	}
	s.replayStarts(v)
}

// refused is the near loss for which the product has its one alarm.
func (s *sentence) refused(v JobPage) {
	ended := latest(v.Job.FinishedAt, v.Job.ChangedAt)
	s.answers("Its dead letter was refused: the queue %v has no dead-letter queue", v.Job.Queue)
	if v.DeadLetters {
		s.lead = nil
		s.answers("Its dead letter was refused: the queue %v had no dead-letter queue then", v.Job.Queue)
	}
	s.says(". The job is kept; nothing is lost. It failed for good "+s.when(ended)+" %v, %v: %v.", ended, relative(ended, s.now), whyOver(v))
}

func (s *sentence) byHand(v JobPage) {
	at, by := latest(v.Job.FinishedAt, v.Job.ChangedAt), ""
	i := slices.IndexFunc(v.Letters, func(l job.DeadLetter) bool { return l.Run == v.Job.Run && !l.DiscardedAt.IsZero() })
	if i < 0 {
		s.answers("It was discarded by hand "+s.when(at)+" %v", at)
		s.says(", %v.", relative(at, s.now))
		return
	}
	at, by = v.Letters[i].DiscardedAt, v.Letters[i].DiscardedBy
	s.answers("%v discarded its dead letter "+s.when(at)+" %v", someone(by), at)
	s.says(", %v. It had failed for good "+s.when(v.Letters[i].FailedAt)+" %v.", relative(at, s.now), v.Letters[i].FailedAt)
}

// whyOver is the reason in words, as far as the last attempt tells.
func whyOver(v JobPage) string {
	switch v.Job.Reason {
	case retry.AttemptsExhausted:
		switch v.Job.Attempts {
		case 1:
			return "its only attempt failed"
		case 2:
			return "both attempts failed"
		}
		return "all " + number(v.Job.Attempts) + " attempts failed"
	case retry.NonRetryable:
		return "errors of the type " + visible(v.Job.Error.Type) + " are never retried"
	case retry.HandlerDeadLetter:
		if a := lastAttempt(v); a != nil && a.DecidedBy == "handler:not_retryable" {
			return "its handler said that retrying is futile"
		}
		return "its handler asked for it"
	case retry.HandlerDiscard:
		return "its handler asked for it"
	case retry.UnknownType:
		return "no handler is configured for its type"
	case retry.Manual:
		return "somebody decided so"
	case "":
		return "no reason was given"
	}
	return visible(string(v.Job.Reason))
}
