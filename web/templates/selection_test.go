package templates_test

import (
	"slices"
	"testing"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/web/templates/listpage"
)

// "Select all" stands only where an operation can be about all of them.
func TestSelection_OffersAllOfOneStateOnly(t *testing.T) {
	for state, want := range map[job.Status][]string{
		"":                         nil,
		job.StatusDeadLetter:       {"discard", "replay"},
		job.Status(job.Retryable):  {"discard", "replay"},
		job.Status(job.Scheduled):  {"discard"},
		job.Status(job.Completed):  nil,
		job.Status(job.Cancelled):  {"replay"},
		job.Status(job.Available):  {"discard"},
		job.Status(job.Active):     nil,
		job.Status(job.StatusHeld): {"discard"},
	} {
		v := listpage.Jobs{Frame: frame("jobs", "Jobs"), Filter: filter.Filter{Status: state}}
		j := job.Job{Type: "t", Queue: "q", State: job.Retryable}
		j.ID, j.Run = "019ce22a-0000-7000-8000-000000000001", 1
		v.List.Jobs = []job.Job{j}
		page := parse(t, v)
		var got []string
		for _, form := range page.with("aria-label", "Everything that matches") {
			for _, button := range (tree{t, form}).with("name", "kind") {
				got = append(got, value(button, "value"))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("of jobs that are %q all that match can be %q, want %q", state, got, want)
		}
		if n := len(page.with("data-bulk-all", "*")); n != min(1, len(want)) {
			t.Errorf("jobs that are %q: %d buttons select all", state, n)
		}
	}
}

// One job is told in the singular.
func TestDeadLetters_OneIsNoPlural(t *testing.T) {
	v := deadLetters(frame("dead-letters", "Dead letters"))
	v.Snapshot.Depths = map[job.Status]int64{job.StatusDeadLetter: 1}
	v.Query.Tally = filter.Tally{Total: 1}
	page := parse(t, v)
	page.says("class", "head", "1 dead job ")
}
