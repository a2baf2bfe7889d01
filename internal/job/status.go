package job

import (
	"time"

	"redrive/internal/retry"
)

// Statuses lists every status that a filter can name.
func Statuses() []Status {
	var all []Status
	for _, s := range States() {
		all = append(all, Status(s))
	}
	return append(all, StatusDeadLetter, StatusDLQFailed, StatusHeld, StatusTrashed)
}

// ByEnqueueing reports whether jobs of this status are listed by the order of
// their enqueueing; the others go by the time of their last change. Every job
// becomes available and most are completed, so these two keep no order of their
// own. All jobs together (no status) are listed so as well.
func (s Status) ByEnqueueing() bool {
	return s == "" || s == Status(Available) || s == Status(Completed)
}

// Trashed is where a job was that a person discarded.
type Trashed struct {
	At     time.Time // when it was discarded
	By     string
	Bulk   int64 // the operation that did so, 0: a person did so alone
	State  State
	Letter Letter
	Reason retry.Reason
}
