package templates

import (
	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates/format"
)

// Look is how a state, an outcome or a reason is drawn: the class that sets
// its colour, its icon and its word.
type Look struct{ Class, Icon, Word string }

// LookOf draws a status; pages and scripts use the same words.
func LookOf(s job.Status) Look {
	switch s {
	case job.StatusDeadLetter:
		return Look{"is-dead", "dead", "dead letter"}
	case job.StatusDLQFailed:
		return Look{"is-dlq-failed", "dlq-failed", "dlq failed"}
	case job.StatusTrashed:
		return Look{"is-discarded", "discarded", "trashed"}
	case job.StatusHeld:
		return Look{"is-warn", "unknown", "no handler"}
	}
	for _, known := range job.States() {
		if s == job.Status(known) {
			return Look{"is-" + string(s), string(s), string(s)}
		}
	}
	return Look{"is-pending", "unknown", format.Visible(string(s))}
}

// LookOfOutcome draws how an attempt ended. The form of its bar says the same
// as its colour.
func LookOfOutcome(o job.Outcome) Look {
	switch o {
	case job.TimedOut:
		return Look{"is-timed-out", "timed-out", "timed out"}
	case job.Succeeded, job.Failed, job.Panicked, job.Lost, job.Interrupted, job.CancelledBy:
		return Look{"is-" + string(o), string(o), string(o)}
	}
	return Look{"is-pending", "unknown", format.Visible(string(o))}
}

// ActionWord says what became of a job after an attempt.
func ActionWord(a retry.Action) string {
	if a == retry.DeadLetter {
		return "dead letter"
	}
	return format.Visible(string(a))
}

// LikeThis says how many failures the newest one of a job is like.
func LikeThis(g failures.Group) string {
	if g.Failures <= 1 {
		return "the first of its kind"
	}
	return "one of " + format.Number(g.Failures) + " failures like this"
}
