package templates

import "redrive/internal/audit"

// Gone is the page of a job that is not there any more, with what people did
// to it.
type Gone struct {
	Frame
	ID      string
	Entries []audit.Entry
}
