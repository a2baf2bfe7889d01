package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store/sqlite"
)

// BenchmarkSearch looks for the newest 50 of a hundred thousand failures by a
// text that a hundredth of them has, and by one that a single one has.
func BenchmarkSearch(b *testing.B) {
	const failures = 100_000
	ctx := context.Background()
	s, err := Open(ctx, Options{Database: sqlite.File{Path: b.TempDir() + "/jobs.db", Relaxed: true}})
	check(b, err)
	defer func() { check(b, s.Close()) }()
	for n := 0; n < failures; n += 1000 {
		jobs := make([]job.Job, 1000)
		for i := range jobs {
			jobs[i] = testJob("order.ship")
			jobs[i].State, jobs[i].Reason = job.Discarded, retry.MissingURN
			jobs[i].Payload = fmt.Appendf(nil, `{"order_id":%d,"customer":"customer %d","amount":%d}`, n+i, (n+i)%977, i*7)
			jobs[i].Error = job.ErrorInfo{Type: "upstream.unavailable", Message: fmt.Sprintf("POST https://api.example/v2/%d: 50%d", n+i, i%100)}
		}
		_, err := s.Enqueue(ctx, testTime, jobs)
		check(b, err)
	}
	begin := time.Now()
	_, err = s.Search.Update(ctx)
	check(b, err)
	b.Logf("filled %d in %v", failures, time.Since(begin))
	for name, f := range map[string]filter.Filter{
		"common": {Error: "unavailable"}, "hundredth": {Error: ": 5042"}, "single": {Payload: `"order_id":77123,`}, "none": {Text: "no such text"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := s.Jobs(ctx, f, filter.Cursor{}, 50)
				check(b, err)
			}
		})
	}
}
