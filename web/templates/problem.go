package templates

import (
	"cmp"

	"redrive/internal/job"
)

// Problem is any page that could not be shown.
type Problem struct {
	Frame
	Status    int
	Title     string // what happened
	Text      string // to what, and what to do
	RequestID string
}

// Conflict is what a form without scripts gets when the job had moved on
// before it arrived: somebody else was first, or the job is in another state.
type Conflict struct {
	Frame
	Action string // "replay", "discard", "cancel", "forward"
	Err    *job.Conflict
}

func problemClass(status int) string {
	if status >= 500 {
		return "is-dead"
	}
	return ""
}

func problemIcon(status int) string {
	switch {
	case status == 404:
		return "search"
	case status == 410:
		return "discarded"
	case status >= 500:
		return "failed"
	}
	return "non-retryable"
}

// conflictTitle says what was not done.
func conflictTitle(v Conflict) string {
	return cmp.Or(map[string]string{
		"replay":  "Not replayed",
		"discard": "Not discarded",
		"cancel":  "Not cancelled",
		"forward": "Not forwarded",
	}[v.Action], "Nothing was changed")
}
