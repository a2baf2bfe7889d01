package jobpage

import (
	"testing"
	"time"

	"redrive/internal/job"
)

// Each job is counted once, as what it is: a cancelled one has finished, and neither
// succeeded nor failed.
func TestRecent_CountsEachJobAsWhatItIs(t *testing.T) {
	now := time.Date(2026, 3, 12, 14, 2, 11, 0, time.UTC)
	for _, test := range []struct {
		states []job.State
		words  string
		open   int
	}{
		{[]job.State{job.Completed, job.Discarded, job.Retryable, job.Active}, "1 succeeded, 2 failed, 1 not finished", 1},
		{[]job.State{job.Cancelled, job.Completed, job.Cancelled}, "1 succeeded, 0 failed, 2 cancelled, 0 not finished", 0},
		{[]job.State{job.Scheduled, job.Available, job.Returning, job.Returned}, "0 succeeded, 0 failed, 4 not finished", 4},
	} {
		var jobs []job.Job
		for _, state := range test.states {
			jobs = append(jobs, job.Job{State: state})
		}

		r := recentOf(jobs, now)

		open := 0
		for _, b := range r.bars {
			if b.open {
				open++
			}
		}

		if r.words != test.words || open != test.open {
			t.Errorf("%v: %s, %d outlined; want %s, %d", test.states, r.words, open, test.words, test.open)
		}
	}
}
