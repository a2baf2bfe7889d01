package engine_test

import (
	"cmp"
	"context"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/rawtest"
	"redrive/internal/store/sqlite"
)

// The benchmarks compare the engine, end to end, with the least that SQLite
// could do (see rawtest), in turns in one run: absolute figures vary from minute
// to minute. "xraw" is the engine's rate divided by the raw one.

// rawWorkOff returns the raw jobs per second.
func rawWorkOff(b *testing.B, n int) float64 {
	q := rawtest.Open(b)
	q.Fill(n)
	start := time.Now()
	q.WorkOff()
	return float64(n) / time.Since(start).Seconds()
}

func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))]
}

// bench is an engine on a real database, without any fake time.
type bench struct {
	*testing.B
	store  *store.Store
	engine atomic.Pointer[engine.Engine]
	at     atomic.Pointer[time.Time] // of the last commit that made a job available

	allocations, bytes float64 // for each execution of workOff
}

func newBench(b *testing.B) *bench {
	b.Helper()
	r := &bench{B: b}
	s, err := store.Open(b.Context(), store.Options{Database: sqlite.File{Path: filepath.Join(b.TempDir(), "q.db")}, OnCommit: func(c []job.Change) {
		if now := time.Now(); len(c) > 0 && c[0].State == job.Available {
			r.at.Store(&now)
		}
		if e := r.engine.Load(); e != nil {
			e.Changed(c)
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	r.store = s
	b.Cleanup(func() { s.Close() })
	return r
}

func (r *bench) start(h engine.Handler, settled func(job.Job, job.Settlement)) *engine.Engine {
	e, err := engine.New(engine.Options{
		Store: r.store, Queues: r.store, Name: "bench", Settled: settled,
		Handlers: func(string) (engine.Handler, bool) { return h, true },
		Workers:  func(string) int { return 50 },
		Random:   func() float64 { return 0.5 },
	})
	if err != nil {
		r.Fatal(err)
	}
	r.engine.Store(e)
	if err := e.Start(context.Background()); err != nil {
		r.Fatal(err)
	}
	return e
}

func (r *bench) enqueue(n int, j job.Job) {
	for batch := range slices.Chunk(repeat(j, n), 1000) {
		if _, err := r.store.Enqueue(context.Background(), time.Now(), batch); err != nil {
			r.Fatal(err)
		}
	}
}

// workOff runs n jobs that are ready and returns the executions per second;
// each job fails so many times first.
func (r *bench) workOff(n, failures int) float64 {
	j := ofType("ok")
	j.Payload = rawtest.Payload()
	j.Policy = steady(func(p *retry.Policy) { p.Strategy = retry.Immediate })
	r.enqueue(n, j)
	left := atomic.Int64{}
	left.Store(int64(n))
	done := make(chan struct{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	e := r.start(
		func(_ context.Context, j job.Job) error {
			if j.Attempts < failures {
				return failure("x")
			}
			return nil
		},
		func(_ job.Job, s job.Settlement) {
			if s.State == job.Completed && left.Add(-1) == 0 {
				close(done)
			}
		})
	<-done
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	executions := float64(n * (failures + 1))
	r.allocations, r.bytes = float64(after.Mallocs-before.Mallocs)/executions, float64(after.TotalAlloc-before.TotalAlloc)/executions
	if err := e.Stop(context.Background()); err != nil {
		r.Fatal(err)
	}
	return executions / took.Seconds()
}

const backlog = 10_000

// inTurns runs two measurements in turn, so that both meet the same
// disturbances, and returns the pair of rates whose ratio is the median.
func inTurns(one, other func() float64) (a, b float64) {
	const turns = 7
	pairs := make([][2]float64, turns)
	for i := range pairs {
		pairs[i] = [2]float64{one(), other()}
	}
	slices.SortFunc(pairs, func(p, q [2]float64) int { return cmp.Compare(p[1]/p[0], q[1]/q[0]) })
	return pairs[turns/2][0], pairs[turns/2][1]
}

// Work off ready jobs that do nothing, 50 workers, against the raw statements.
// Must be 0.55 or more, with 15 allocations and 4 kB for each job at most.
func BenchmarkRaw_WorkOff(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(200)) // as the program does, on both sides
	for b.Loop() {
		var r *bench
		bare, own := inTurns(
			func() float64 { return rawWorkOff(b, backlog) },
			func() float64 { r = newBench(b); return r.workOff(backlog, 0) })
		b.ReportMetric(r.allocations, "allocs/job")
		b.ReportMetric(r.bytes, "B/job")
		b.ReportMetric(bare, "raw/s")
		b.ReportMetric(own, "jobs/s")
		b.ReportMetric(own/bare, "xraw")
	}
}

// Each job fails twice first, against the engine's own rate. Must be 0.5 or
// more.
func BenchmarkEngine_WorkOffWithFailures(b *testing.B) {
	for b.Loop() {
		smooth, rough := inTurns(
			func() float64 { return newBench(b).workOff(backlog, 0) },
			func() float64 { return newBench(b).workOff(backlog/3, 2) })
		b.ReportMetric(smooth, "jobs/s")
		b.ReportMetric(rough, "executions/s")
		b.ReportMetric(rough/smooth, "ratio")
	}
}

// An idle engine gets one job: from the call of Enqueue, and from its commit, to the
// start of the handler, in turns with a raw commit on the same idle machine. "xraw"
// is the p50 divided by that of the raw commits.
func BenchmarkRaw_IdleLatency(b *testing.B) {
	for b.Loop() {
		raw, r := rawtest.Open(b), newBench(b)
		started := make(chan time.Time, 1)
		e := r.start(func(context.Context, job.Job) error { started <- time.Now(); return nil }, nil)
		var plain, called, committed []time.Duration
		for range 500 {
			time.Sleep(2 * time.Millisecond) // idle again
			call := time.Now()
			raw.Insert(1)
			plain = append(plain, time.Since(call))
			time.Sleep(2 * time.Millisecond)
			call = time.Now()
			r.enqueue(1, ofType("ok"))
			at := *r.at.Load()
			begin := <-started
			called = append(called, begin.Sub(call))
			committed = append(committed, begin.Sub(at))
		}
		if err := e.Stop(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(ms(quantile(called, 0.5)), "p50-ms")
		b.ReportMetric(ms(quantile(called, 0.99)), "p99-ms")
		b.ReportMetric(ms(quantile(plain, 0.5)), "raw-p50-ms")
		b.ReportMetric(ms(quantile(plain, 0.99)), "raw-p99-ms")
		b.ReportMetric(ms(quantile(committed, 0.5)), "commit-to-start-p50-ms")
		b.ReportMetric(float64(quantile(called, 0.5))/float64(quantile(plain, 0.5)), "xraw")
	}
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }
