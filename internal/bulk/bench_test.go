package bulk_test

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redrive/internal/bulk"
	"redrive/internal/engine"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/seed"
	"redrive/internal/store"
	"redrive/internal/store/rawtest"
	"redrive/internal/store/sqlite"
)

// BenchmarkRaw_Replay replays dead letters as fast as possible: alone, and while 50
// workers run the replayed jobs and another caller enqueues one job after the
// other. "s/million" is how long a million would take, from the filter to the end:
// 60 alone, 120 while the jobs run; "cpu-s/million" is how much of the processors'
// time that takes, which says more on a busy machine. "xraw" is the rate divided by
// that of the least that SQLite could do. The p99 of the other caller must be 30 ms
// or less; beside it stands that of raw commits in the same minute.
func BenchmarkRaw_Replay(b *testing.B) {
	n := benchJobs(b)
	dead := deadLetters(b, n)
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			c := newManyJobs(b, dead)
			reportReplay(b, n, func() time.Duration { return c.replay(n) })
		}
	})
	b.Run("running", func(b *testing.B) {
		for b.Loop() {
			c := newManyJobs(b, dead)
			var others []time.Duration
			reportReplay(b, n, func() (took time.Duration) {
				others = c.busy(func() { took = c.replay(n) })
				return took
			})
			b.ReportMetric(ms(quantile(others, 0.5)), "others-p50-ms")
			b.ReportMetric(ms(quantile(others, 0.99)), "others-p99-ms")
			b.ReportMetric(float64(c.ran.Load())/float64(n), "ran")
		}
	})
}

// BenchmarkBulk measures what shares the way of a replay: the preview of one, and
// discarding and restoring as many.
func BenchmarkBulk(b *testing.B) {
	n := benchJobs(b)
	dead := deadLetters(b, n)
	b.Run("preview", func(b *testing.B) {
		for b.Loop() {
			b.ReportMetric(perMillion(newManyJobs(b, dead).preview(), n), "s/million")
		}
	})
	b.Run("discard+restore", func(b *testing.B) {
		for b.Loop() {
			c := newManyJobs(b, dead)
			b.ReportMetric(perMillion(c.operate(operation.Discard, n), n), "discard-s/million")
			b.ReportMetric(perMillion(c.operate(operation.Restore, n), n), "restore-s/million")
		}
	})
}

// reportReplay measures a replay beside raw SQLite.
func reportReplay(b *testing.B, n int, replay func() time.Duration) {
	b.Helper()
	raw := rawtest.Open(b)
	commits := waits(300, func() { raw.Insert(1) })
	raw.FillDead(n)
	bare := waits(1, raw.Replay)[0]
	used := processorTime(b)
	took := replay()
	b.ReportMetric(perMillion(processorTime(b)-used, n), "cpu-s/million")
	b.ReportMetric(float64(bare)/float64(took), "xraw")
	b.ReportMetric(perMillion(bare, n), "raw-s/million")
	b.ReportMetric(perMillion(took, n), "s/million")
	b.ReportMetric(ms(quantile(commits, 0.99)), "commit-p99-ms")
}

// benchJobs is how many dead letters a measurement has.
func benchJobs(b *testing.B) int {
	b.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("REDRIVE_BENCH_JOBS"), "20000"))
	if err != nil {
		b.Fatalf("REDRIVE_BENCH_JOBS: %v", err)
	}
	return n
}

// deadLetters is a database with nothing but dead letters, of many types and
// causes, as a file to copy.
func deadLetters(b *testing.B, n int) (path string) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "dead.db")
	s, err := store.Open(b.Context(), store.Options{Database: sqlite.File{Path: path, Relaxed: true}})
	if err != nil {
		b.Fatal(err)
	}
	all := seed.Plan{Jobs: n, Dead: n, Seed: 1, Now: time.Now()}
	if err := all.Write(b.Context(), s, noIndex{}, func(int, int) {}); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// noIndex makes nothing searchable: no operation here asks for a text.
type noIndex struct{}

func (noIndex) Update(context.Context) (int, error) { return 0, nil }

// manyJobs is a database of dead letters, whose operations a runner works off.
type manyJobs struct {
	*testing.B
	store  *store.Store
	runner *bulk.Runner
	told   chan struct{} // one slot: something was committed since it was read last
	engine atomic.Pointer[engine.Engine]
	ran    atomic.Int64 // replayed jobs that an engine has worked off
}

// newManyJobs copies the database, outside of the measurement.
func newManyJobs(b *testing.B, from string) *manyJobs {
	b.Helper()
	b.StopTimer()
	defer b.StartTimer()
	c := &manyJobs{B: b, told: make(chan struct{}, 1)}
	path := filepath.Join(b.TempDir(), "q.db")
	in, err := os.Open(from)
	c.check(err)
	out, err := os.Create(path)
	c.check(err)
	_, err = io.Copy(out, in)
	c.check(err)
	c.check(out.Sync())
	c.check(out.Close())
	c.check(in.Close())
	c.store, err = store.Open(b.Context(), store.Options{Database: sqlite.File{Path: path}, OnCommit: c.committed})
	c.check(err)
	c.runner = bulk.Start(c.store.Operations, nil)
	b.Cleanup(func() {
		c.runner.Close()
		c.check(c.store.Close())
	})
	return c
}

func (c *manyJobs) check(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *manyJobs) committed(changes []job.Change) {
	if e := c.engine.Load(); e != nil {
		e.Changed(changes)
	}
	select {
	case c.told <- struct{}{}:
	default:
	}
}

func (c *manyJobs) replay(n int) time.Duration { return c.operate(operation.Replay, n) }

// operate does something to all dead letters, or to all in the trash, and returns
// how long that took.
func (c *manyJobs) operate(kind operation.Kind, n int) time.Duration {
	c.Helper()
	took, o := c.start(kind, true)
	if o.State != operation.Finished || o.Done != int64(n) {
		c.Fatalf("%s: %d of %d jobs are done, %s", kind, o.Done, n, o.State)
	}
	return took
}

// preview collects a scope.
func (c *manyJobs) preview() time.Duration {
	c.Helper()
	took, _ := c.start(operation.Replay, false)
	return took
}

// start begins an operation, and waits until it has nothing more to do.
func (c *manyJobs) start(kind operation.Kind, run bool) (time.Duration, operation.Operation) {
	c.Helper()
	f, err := kind.Scope(filter.Filter{})
	c.check(err)
	begin := time.Now()
	o, err := c.store.Operations.New(c.Context(), begin, operation.Request{Kind: kind, Filter: f, Start: run}, ana)
	c.check(err)
	c.runner.Notify()
	for c.store.Snapshot().Operations > 0 {
		<-c.told
	}
	took := time.Since(begin)
	o, err = c.store.Operations.Get(c.Context(), o.ID)
	c.check(err)
	return took, o
}

// busy calls do while 50 workers run whatever is available and another caller
// enqueues one job after the other, and returns how long each of these took.
func (c *manyJobs) busy(do func()) (others []time.Duration) {
	c.Helper()
	e, err := engine.New(engine.Options{
		Store: c.store, Queues: c.store, Name: "bench", Workers: func(string) int { return 50 }, Random: func() float64 { return 0.5 },
		Handlers: func(string) (engine.Handler, bool) {
			return func(context.Context, job.Job) error { c.ran.Add(1); return nil }, true
		},
	})
	c.check(err)
	c.engine.Store(e)
	c.check(e.Start(context.Background()))
	done := make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() { others = c.enqueue(done) })
	do()
	close(done)
	other.Wait()
	c.check(e.Stop(context.Background()))
	return others
}

// enqueue enqueues one job after the other, which no worker runs.
func (c *manyJobs) enqueue(done <-chan struct{}) (took []time.Duration) {
	one := []job.Job{{
		Queue: "other", Type: "other", Timeout: time.Minute, Policy: retry.Default(), Payload: rawtest.Payload(),
		State: job.Scheduled, RunAt: time.Now().Add(time.Hour),
	}}
	for {
		select {
		case <-done:
			return took
		default:
		}
		at := time.Now()
		if _, err := c.store.Enqueue(c.Context(), at, one); err != nil {
			c.Error(err)
			return took
		}
		took = append(took, time.Since(at))
	}
}

// processorTime is what this process has used of the processors.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// perMillion is how many seconds a million would take.
func perMillion(took time.Duration, n int) float64 { return took.Seconds() * 1e6 / float64(n) }

// waits measures something n times.
func waits(n int, do func()) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		begin := time.Now()
		do()
		all[i] = time.Since(begin)
	}
	return all
}

func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))]
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }
