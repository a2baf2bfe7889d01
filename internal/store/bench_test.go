package store

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
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
	for relaxed, open := range map[bool]func(testing.TB) *rawtest.Queue{false: rawtest.Open, true: rawtest.OpenRelaxed} {
		s, r := openFile(t, relaxed), open(t)
		for name := range rawtest.Pragmas() {
			ours := setting(t, s, name)
			if theirs := r.Setting(name); ours != theirs {
				t.Errorf("%s is %s in the store, %s in the raw queue", name, ours, theirs)
			}
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

func openFile(tb testing.TB, relaxed bool) *Store {
	return open(tb, Options{Database: sqlite.File{Path: filepath.Join(tb.TempDir(), "bench.db"), Relaxed: relaxed}})
}

func openBench(b *testing.B) *Store { return openFile(b, false) }

// stopwatch adds up the work of one side, and the time that it takes, on the
// clock and of the processors (which others on the machine disturb less), and what
// it allocates.
type stopwatch struct {
	spent, cpu    time.Duration
	jobs          int
	allocs, bytes uint64
}

func (w *stopwatch) measure(jobs int, do func()) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, used := time.Now(), processors()
	do()
	w.spent += time.Since(start)
	w.cpu += processors() - used
	w.jobs += jobs
	runtime.ReadMemStats(&after)
	w.allocs += after.Mallocs - before.Mallocs
	w.bytes += after.TotalAlloc - before.TotalAlloc
}

// processors is the time of the processors that this process used.
func processors() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// cost is how much time of the processors a job took, in microseconds.
func (w *stopwatch) cost() float64 { return float64(w.cpu.Microseconds()) / float64(w.jobs) }

func (w *stopwatch) rate() float64 { return float64(w.jobs) / w.spent.Seconds() }

func report(b *testing.B, ours, raw stopwatch) {
	b.ReportMetric(ours.rate()/raw.rate(), "xraw")
	b.ReportMetric(ours.rate(), "jobs/s")
	b.ReportMetric(raw.rate(), "raw/s")
	b.ReportMetric(ours.cost(), "cpu-µs/job")
	b.ReportMetric(raw.cost(), "raw-cpu-µs/job")
	b.ReportMetric(float64(ours.allocs)/float64(ours.jobs), "allocs/job")
	b.ReportMetric(float64(ours.bytes)/float64(ours.jobs), "bytes/job")
}

// BenchmarkRaw_EnqueueOneCaller: one job, one commit, one caller that waits for it.
func BenchmarkRaw_EnqueueOneCaller(b *testing.B) {
	s, r := openBench(b), rawtest.Open(b)
	var ours, plain stopwatch
	for b.Loop() {
		plain.measure(20, func() { r.Insert(20) })
		ours.measure(20, func() {
			for range 20 {
				_, err := s.Enqueue(context.Background(), time.Now(), []job.Job{benchJob()})
				check(b, err)
			}
		})
	}
	report(b, ours, plain)
}

// BenchmarkRaw_EnqueueFiftyCallers: fifty callers share commits.
func BenchmarkRaw_EnqueueFiftyCallers(b *testing.B) { enqueueFifty(b, openBench(b), rawtest.Open(b)) }

// BenchmarkRaw_EnqueueFiftyRelaxed: the same without waiting for the disk.
func BenchmarkRaw_EnqueueFiftyRelaxed(b *testing.B) {
	enqueueFifty(b, openFile(b, true), rawtest.OpenRelaxed(b))
}

func enqueueFifty(b *testing.B, s *Store, r *rawtest.Queue) {
	var ours, plain stopwatch
	for b.Loop() {
		plain.measure(100, func() { r.Insert(100) })
		ours.measure(50*20, func() {
			var callers sync.WaitGroup
			for range 50 {
				callers.Go(func() {
					for range 20 {
						if _, err := s.Enqueue(context.Background(), time.Now(), []job.Job{benchJob()}); err != nil {
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
	var ours, plain stopwatch
	for b.Loop() {
		plain.measure(1000, r.InsertThousand)
		enqueueThousand(b, &ours, s, func(*job.Job) {})
	}
	report(b, ours, plain)
}

// BenchmarkEnqueue_ThousandKeyed: each job has an idempotency key, against jobs
// without one.
func BenchmarkEnqueue_ThousandKeyed(b *testing.B) {
	enqueueWith(b, func(j *job.Job) { j.Caller, j.Key, j.Content = "shop", job.NewID(), strings.Repeat("c", 64) })
}

// BenchmarkEnqueue_ThousandMessages: each job comes with a message id, against
// jobs without one.
func BenchmarkEnqueue_ThousandMessages(b *testing.B) {
	enqueueWith(b, func(j *job.Job) { j.MessageID = job.NewID() })
}

func enqueueWith(b *testing.B, change func(*job.Job)) {
	s, other := openBench(b), openBench(b)
	var with, without stopwatch
	for b.Loop() {
		enqueueThousand(b, &without, other, func(*job.Job) {})
		enqueueThousand(b, &with, s, change)
	}
	b.ReportMetric(without.rate()/with.rate(), "xtime")
	b.ReportMetric(with.rate(), "jobs/s")
	b.ReportMetric(with.cost(), "cpu-µs/job")
	b.ReportMetric(float64(with.allocs)/float64(with.jobs), "allocs/job")
}

func enqueueThousand(b *testing.B, w *stopwatch, s *Store, change func(*job.Job)) {
	jobs := make([]job.Job, 1000)
	for i := range jobs {
		jobs[i] = benchJob()
		change(&jobs[i])
	}
	w.measure(len(jobs), func() {
		_, err := s.Enqueue(context.Background(), time.Now(), jobs)
		check(b, err)
	})
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
