package queues

import "fmt"

// Full says that a queue is new and would be one too many. Nothing was changed.
type Full struct {
	Queue string
	Count int // of queues that there would be
	Limit int
}

// Error names the queue, and what to do.
func (f *Full) Error() string {
	return fmt.Sprintf("%q would be a new queue, with which there would be %d, and the limit is %d; nothing was changed: "+
		"use a queue that exists, remove one that is empty, or raise limits.queues in the configuration file", f.Queue, f.Count, f.Limit)
}
