package store

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store/rawtest"
	"redrive/internal/store/sqlite"
)

// The benchmarks compare the store with the least that SQLite could do (see
// rawtest). Both sides run in turns, so that a slow minute of the machine meets
// both. "xraw" is the store's rate divided by the raw one.

// Both sides of every comparison have the same settings.
func TestRaw_HasTheSettingsOfTheStore(t *testing.T) {
	s, r := open(t, Options{}), rawtest.Open(t)
	for name := range rawtest.Pragmas() {
		ours := setting(t, s, name)
		if theirs := r.Setting(name); ours != theirs {
			t.Errorf("%s is %s in the store, %s in the raw queue", name, ours, theirs)
		}
	}
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

var benchTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func benchJob() job.Job {
	return job.Job{Queue: "orders", Type: "email.send", Policy: retry.Default(), Timeout: time.Minute, Payload: rawtest.Payload()}
}

func openBench(b *testing.B) *Store {
	s, err := Open(context.Background(), Options{Database: sqlite.File{Path: filepath.Join(b.TempDir(), "bench.db")}})
	check(b, err)
	b.Cleanup(func() { check(b, s.Close()) })
	return s
}

// stopwatch adds up the time and the work of one side.
type stopwatch struct {
	spent time.Duration
	jobs  int
}

func (w *stopwatch) measure(jobs int, do func()) {
	start := time.Now()
	do()
	w.spent += time.Since(start)
	w.jobs += jobs
}

func (w *stopwatch) rate() float64 { return float64(w.jobs) / w.spent.Seconds() }

func report(b *testing.B, ours, raw stopwatch) {
	b.ReportMetric(ours.rate()/raw.rate(), "xraw")
	b.ReportMetric(ours.rate(), "jobs/s")
	b.ReportMetric(raw.rate(), "raw/s")
}

// BenchmarkRaw_EnqueueOneCaller: one job, one commit, one caller that waits for it.
func BenchmarkRaw_EnqueueOneCaller(b *testing.B) {
	s, r := openBench(b), rawtest.Open(b)
	var ours, plain stopwatch
	for b.Loop() {
		plain.measure(20, func() { r.Insert(20) })
		ours.measure(20, func() {
			for range 20 {
				_, err := s.Enqueue(context.Background(), benchTime, []job.Job{benchJob()})
				check(b, err)
			}
		})
	}
	report(b, ours, plain)
}

// BenchmarkRaw_EnqueueFiftyCallers: fifty callers share commits.
func BenchmarkRaw_EnqueueFiftyCallers(b *testing.B) {
	s, r := openBench(b), rawtest.Open(b)
	var ours, plain stopwatch
	for b.Loop() {
		plain.measure(100, func() { r.Insert(100) })
		ours.measure(50*20, func() {
			var callers sync.WaitGroup
			for range 50 {
				callers.Go(func() {
					for range 20 {
						if _, err := s.Enqueue(context.Background(), benchTime, []job.Job{benchJob()}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			callers.Wait()
		})
	}
	report(b, ours, plain)
}

// BenchmarkRaw_EnqueueThousand: a batch against one statement with a thousand rows.
func BenchmarkRaw_EnqueueThousand(b *testing.B) {
	s, r := openBench(b), rawtest.Open(b)
	jobs := make([]job.Job, 1000)
	for i := range jobs {
		jobs[i] = benchJob()
	}
	var ours, plain stopwatch
	for b.Loop() {
		plain.measure(1000, r.InsertThousand)
		ours.measure(1000, func() {
			_, err := s.Enqueue(context.Background(), benchTime, jobs)
			check(b, err)
		})
	}
	report(b, ours, plain)
}

// BenchmarkRaw_Exchange works off ready jobs, fifty ended and fifty begun in each
// transaction, against "one commit: complete 100, claim 100".
func BenchmarkRaw_Exchange(b *testing.B) {
	s, r := openBench(b), rawtest.Open(b)
	var ours, plain stopwatch
	for b.Loop() {
		b.StopTimer()
		fill(b, s, r, 1000)
		b.StartTimer()
		plain.measure(1000, r.WorkOff)
		ours.measure(1000, func() { workOff(b, s) })
	}
	report(b, ours, plain)
}

// fill makes n jobs ready on both sides.
func fill(b *testing.B, s *Store, r *rawtest.Queue, n int) {
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = benchJob()
	}
	_, err := s.Enqueue(context.Background(), benchTime, jobs)
	check(b, err)
	r.Fill(n)
}

func workOff(b *testing.B, s *Store) {
	ctx := context.Background()
	claim := job.Claim{Worker: "bench", Now: benchTime, Lease: time.Minute, Free: map[string]int{"orders": 50}}
	var done []job.Settlement
	for first := true; first || len(done) > 0; first = false {
		claimed, stale, err := s.Exchange(ctx, done, claim)
		check(b, err)
		if len(stale) > 0 {
			b.Fatalf("%d stale settlements", len(stale))
		}
		done = done[:0]
		for _, j := range claimed {
			done = append(done, j.Settle(job.Ending{Outcome: job.Succeeded, FinishedAt: benchTime}, nil))
		}
	}
}
