package templates

import (
	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates/format"
)

// look is how a state, an outcome or a reason is drawn: the class that sets
// its colour, its icon and its word.
type look struct{ class, icon, word string }

// lookOf draws a status; pages and scripts use the same words.
func lookOf(s job.Status) look {
	switch s {
	case job.StatusDeadLetter:
		return look{"is-dead", "dead", "dead letter"}
	case job.StatusDLQFailed:
		return look{"is-dlq-failed", "dlq-failed", "dlq failed"}
	case job.StatusTrashed:
		return look{"is-discarded", "discarded", "trashed"}
	case job.StatusHeld:
		return look{"is-warn", "unknown", "no handler"}
	}
	for _, known := range job.States() {
		if s == job.Status(known) {
			return look{"is-" + string(s), string(s), string(s)}
		}
	}
	return look{"is-pending", "unknown", format.Visible(string(s))}
}

// lookOfOutcome draws how an attempt ended. The form of its bar says the same
// as its colour.
func lookOfOutcome(o job.Outcome) look {
	switch o {
	case job.TimedOut:
		return look{"is-timed-out", "timed-out", "timed out"}
	case job.Succeeded, job.Failed, job.Panicked, job.Lost, job.Interrupted, job.CancelledBy:
		return look{"is-" + string(o), string(o), string(o)}
	}
	return look{"is-pending", "unknown", format.Visible(string(o))}
}

// actionWord says what became of a job after an attempt.
func actionWord(a retry.Action) string {
	if a == retry.DeadLetter {
		return "dead letter"
	}
	return format.Visible(string(a))
}

// likeThis says how many failures the newest one of a job is like.
func likeThis(g failures.Group) string {
	if g.Failures <= 1 {
		return "the first of its kind"
	}
	return "one of " + format.Number(g.Failures) + " failures like this"
}
