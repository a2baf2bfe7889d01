package store

import (
	"testing"
	"time"

	"redrive/internal/job"
)

// A job that succeeds costs little garbage: nearly all of it is what the driver makes
// of the columns that it reads and writes.
func TestExchange_AllocatesLittleForEachJob(t *testing.T) {
	const batch, runs, most = 100, 10, 15
	s := open(t, Options{})
	enqueue(t, s, batch*(runs+2))
	claim := job.Claim{Worker: "w", Now: testTime.Add(time.Second), Lease: time.Minute, Free: map[string]int{"orders": batch}}
	end := job.Ending{Outcome: job.Succeeded, FinishedAt: claim.Now}
	var settle []job.Settlement
	each := testing.AllocsPerRun(runs, func() {
		claimed, stale, err := s.Exchange(t.Context(), settle, claim)
		if check(t, err); len(claimed) != batch || len(stale) > 0 {
			t.Fatalf("%d jobs claimed, %d settlements were stale", len(claimed), len(stale))
		}
		settle = settle[:0]
		for _, j := range claimed {
			settle = append(settle, j.Settle(end, nil))
		}
	}) / batch
	if each > most {
		t.Errorf("%.1f allocations for each job, want %d at most", each, most)
	}
}
