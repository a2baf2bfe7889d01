package bulk_test

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"redrive/internal/bulk"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/seed"
	"redrive/internal/store"
	"redrive/internal/store/rawtest"
	"redrive/internal/store/sqlite"
)

const crowded = 20_000 // dead letters of one measurement

// BenchmarkRaw_Replay replays dead letters as fast as it goes while somebody else
// enqueues one job after the other. "s/million" is how long a million would take,
// from the filter to the end; it must be 60 or less. "xraw" is the rate divided by
// that of the least that SQLite could do: 0.05, where that is 330,000 a second. The
// other one's p99 must be below 50 ms; "xcommit" is that divided by the p99 of a
// raw commit which nobody disturbs.
func BenchmarkRaw_Replay(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		raw := rawtest.Open(b)
		commits := waits(300, func() { raw.Insert(1) })
		raw.FillDead(crowded)
		begin := time.Now()
		raw.Replay()
		bare := crowded / time.Since(begin).Seconds()
		s, told := crowdedStore(b)
		b.StartTimer()
		took, others := replayCrowd(b, s, told)
		own := crowded / took.Seconds()
		b.ReportMetric(own/bare, "xraw")
		b.ReportMetric(own, "replays/s")
		b.ReportMetric(bare, "raw/s")
		b.ReportMetric(1e6/own, "s/million")
		b.ReportMetric(ms(quantile(others, 0.5)), "others-p50-ms")
		b.ReportMetric(ms(quantile(others, 0.99)), "others-p99-ms")
		b.ReportMetric(float64(quantile(others, 0.99))/float64(quantile(commits, 0.99)), "xcommit")
	}
}

// crowdedStore has nothing but dead letters, of many types and causes. told says
// that something was committed since it was read last.
func crowdedStore(b *testing.B) (s *store.Store, told <-chan struct{}) {
	b.Helper()
	commits := make(chan struct{}, 1)
	s, err := store.Open(b.Context(), store.Options{Database: sqlite.File{Path: filepath.Join(b.TempDir(), "q.db")}, OnCommit: func([]job.Change) {
		select {
		case commits <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	all := seed.Plan{Jobs: crowded, Dead: crowded, Seed: 1, Now: time.Now()}
	if err := all.Write(b.Context(), s, s.Search, func(int, int) {}); err != nil {
		b.Fatal(err)
	}
	return s, commits
}

// replayCrowd replays all, and returns how long that took and how long each
// enqueueing by somebody else did meanwhile.
func replayCrowd(b *testing.B, s *store.Store, told <-chan struct{}) (took time.Duration, others []time.Duration) {
	b.Helper()
	f, err := operation.Replay.Scope(filter.Filter{})
	if err != nil {
		b.Fatal(err)
	}
	r := bulk.Start(s.Operations, nil)
	defer r.Close()
	begin := time.Now()
	o, err := s.Operations.New(b.Context(), begin, operation.Request{Kind: operation.Replay, Filter: f, Start: true}, ana)
	if err != nil {
		b.Fatal(err)
	}
	r.Notify()
	done := make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			at := time.Now()
			if _, err := s.Enqueue(b.Context(), at, []job.Job{{Queue: "other", Type: "other", Timeout: time.Minute, Policy: retry.Default(), Payload: rawtest.Payload()}}); err != nil {
				b.Error(err)
				return
			}
			others = append(others, time.Since(at))
		}
	})
	for s.Snapshot().Operations > 0 {
		<-told
	}
	took = time.Since(begin)
	close(done)
	other.Wait()
	if o, err = s.Operations.Get(b.Context(), o.ID); err != nil || o.Done != crowded {
		b.Fatalf("%d of %d jobs were replayed, %v", o.Done, crowded, err)
	}
	return took, others
}

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
