// Package stats holds the numbers that every view of the product shows: how often cycles
// ended in which way, and how many jobs there are.
package stats

import "redrive/internal/job"

// Totals are the counters of the product, defined once: pages, websocket, API
// and /metrics show these numbers under these names. They rise in the
// transaction of the change that they count.
//
// Always: Failed = Requeued + FailedPermanently.
type Totals struct {
	Succeeded         int64 `json:"jobs_succeeded"`          // a cycle succeeded
	Failed            int64 `json:"jobs_failed"`             // a cycle failed, retried or not
	Requeued          int64 `json:"jobs_requeued"`           // a failed cycle put the job back
	FailedPermanently int64 `json:"jobs_failed_permanently"` // a failed cycle was the last of its run
	DLQFailed         int64 `json:"jobs_dlq_failed"`         // a dead letter was asked for and not accepted
	Replayed          int64 `json:"jobs_replayed"`           // a person or an operation replayed a job
}

// Add returns the sum of two totals.
func (t Totals) Add(u Totals) Totals {
	return Totals{
		t.Succeeded + u.Succeeded, t.Failed + u.Failed, t.Requeued + u.Requeued,
		t.FailedPermanently + u.FailedPermanently, t.DLQFailed + u.DLQFailed, t.Replayed + u.Replayed,
	}
}

// Of returns the counters by which a settlement raises its queue and type.
func Of(s job.Settlement) Totals {
	var t Totals
	switch {
	case !s.Attempt.Outcome.Counted():
	case s.Attempt.Outcome == job.Succeeded:
		t.Succeeded = 1
	default:
		t.Failed = 1
		if s.State == job.Retryable {
			t.Requeued = 1
		} else {
			t.FailedPermanently = 1
		}

		if s.DeadLetter == job.DeadLetterRefused {
			t.DLQFailed = 1
		}
	}

	return t
}

// Counters lists the six totals by name, in the order in which pages show them.
func (t Totals) Counters() []struct {
	Name  string
	Value int64
} {
	return []struct {
		Name  string
		Value int64
	}{
		{"jobs_failed", t.Failed},
		{"jobs_requeued", t.Requeued},
		{"jobs_failed_permanently", t.FailedPermanently},
		{"jobs_dlq_failed", t.DLQFailed},
		{"jobs_succeeded", t.Succeeded},
		{"jobs_replayed", t.Replayed},
	}
}

// Depths counts jobs by status. The views dead_letter, dlq_failed, held and
// trashed are counted beside the state that contains them, so the states alone add up to
// all jobs.
type Depths map[job.Status]int64

// Jobs is the number of jobs in all states.
func (d Depths) Jobs() int64 {
	var n int64
	for _, s := range job.States() {
		n += d[job.Status(s)]
	}

	return n
}

// Snapshot is what live pages show: absolute totals and depths as of commit
// Seq, which rises by one at least with each commit that changed something.
type Snapshot struct {
	Seq    int64
	Totals Totals
	Depths Depths // over all queues

	Operations int64 // on many jobs that are under way
	OpenGroups int64 // error groups that are neither resolved nor ignored
}
