package store

import (
	"context"
	"slices"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/retry"
)

// What a sweep of 200,000 completed jobs costs others: how long one job at a time
// takes to be enqueued, without the sweep and beside it.
//
//	go test ./internal/store -run '^$' -bench Prune_Beside -benchtime 1x
func BenchmarkPrune_BesideEnqueueing(b *testing.B) {
	const n = 200_000
	s := open(b, Options{})
	succeedMany(b, s, n)
	limits := retention.Limits{Ages: retention.Ages{retention.Completed: time.Hour}}
	for b.Loop() {
		alone := enqueueFor(b, s, func() bool { return false }, 2000)
		var took time.Duration
		done := make(chan error, 1)
		go func() {
			begin := time.Now()
			pruned, err := s.Sweep.Prune(context.Background(), testTime.Add(2*time.Hour), limits)
			took = time.Since(begin)
			if pruned.Of(retention.Completed) != n && err == nil {
				b.Errorf("%d jobs were removed", pruned.Total())
			}
			done <- err
		}()
		beside := enqueueFor(b, s, func() bool { return len(done) > 0 }, 1_000_000)
		check(b, <-done)
		b.ReportMetric(float64(n)/took.Seconds(), "removed/s")
		for _, of := range []struct {
			name string
			took []time.Duration
		}{{"alone", alone}, {"beside", beside}} {
			slices.Sort(of.took)
			b.ReportMetric(float64(of.took[len(of.took)/2].Microseconds()), "p50-µs-"+of.name)
			b.ReportMetric(float64(of.took[len(of.took)*99/100].Microseconds()), "p99-µs-"+of.name)
		}
		b.ReportMetric(float64(len(beside)), "enqueued-beside")
	}
}

// enqueueFor enqueues one job every five milliseconds, at most so many, and says how
// long each took.
func enqueueFor(b *testing.B, s *Store, over func() bool, most int) (took []time.Duration) {
	j := testJob(`{"n":1}`)
	j.RunAt = testTime.Add(1000 * time.Hour)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for len(took) < most && !over() {
		<-tick.C
		begin := time.Now()
		_, err := s.Enqueue(b.Context(), testTime, []job.Job{j})
		check(b, err)
		took = append(took, time.Since(begin))
	}
	return took
}

// succeedMany makes jobs that have completed.
func succeedMany(b *testing.B, s *Store, n int) {
	jobs := make([]job.Job, 5000)
	for i := range jobs {
		jobs[i] = testJob(`{"order":1234567,"customer":"someone@example.org"}`)
		jobs[i].Policy = retry.Default()
	}
	for done := 0; done < n; done += len(jobs) {
		_, err := s.Enqueue(b.Context(), testTime, jobs)
		check(b, err)
		claimed, _, err := s.Exchange(b.Context(), nil, job.Claim{
			Worker: "w", Now: testTime, Lease: time.Minute, Free: map[string]int{jobs[0].Queue: len(jobs)},
		})
		check(b, err)
		settle := make([]job.Settlement, len(claimed))
		for i, j := range claimed {
			settle[i] = j.Settle(job.Ending{Outcome: job.Succeeded, FinishedAt: testTime}, nil)
		}
		_, _, err = s.Exchange(b.Context(), settle, job.Claim{})
		check(b, err)
	}
}
