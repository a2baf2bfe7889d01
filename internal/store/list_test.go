package store

import (
	"strings"
	"testing"

	"redrive/internal/filter"
	"redrive/internal/job"
)

// A page of large jobs ends where it has enough, reads no further, and the next
// one goes on there.
func TestWholeJobs_ReadsNoMoreThanItReturns(t *testing.T) {
	const n, size = 40, wholeSize / 4
	s := open(t, Options{})
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = testJob(strings.Repeat("x", size))
	}
	_, err := s.Enqueue(t.Context(), testTime, jobs)
	check(t, err)
	seen := 0
	var after filter.Cursor
	for pages := 0; ; pages++ {
		var page filter.List
		used := allocated(func() { page, err = s.WholeJobs(t.Context(), filter.Filter{}, after, n) })
		check(t, err)
		seen += len(page.Jobs)
		if len(page.Jobs) > 4 || used > 4*wholeSize {
			t.Errorf("page %d has %d jobs and took %d bytes", pages, len(page.Jobs), used)
		}
		if after = page.Next; after == (filter.Cursor{}) || pages > n {
			break
		}
	}
	if seen != n {
		t.Errorf("%d jobs came, want %d", seen, n)
	}
}
