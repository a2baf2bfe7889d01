package templates

import (
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
// before it arrived: another user was first, or the job is in another state.
type Conflict struct {
	Frame
	Action string // "replay", "discard", "cancel", "forward"
	Err    *job.Conflict
}

// problemClass is red where the fault is the product's own.
func problemClass(status int) string {
	if status >= 500 {
		return "is-dead"
	}
	return ""
}
