package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/job"
)

// startSearching runs a searcher in a bubble, the first tries of which fail, and
// returns it and how often it has filled the index.
func startSearching(t *testing.T, fail int, log *strings.Builder) (searcher, func() int32) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var filled atomic.Int32 // a turn that many waiters left behind may come between two looks
	done := make(chan struct{})
	s := newSearcher(func(context.Context) (int, error) {
		if fail > 0 {
			fail--
			return 0, errors.New("the disk is full")
		}
		filled.Add(1)
		return 1, nil
	}, func(context.Context) error { return nil }, slog.New(slog.NewTextHandler(log, nil)))
	go func() {
		defer close(done)
		s.run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return s, func() int32 { synctest.Wait(); return filled.Load() }
}

func TestSearcher_FillsAtTheStartAndSoonAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, filled := startSearching(t, 0, new(strings.Builder))
		if n := filled(); n != 1 {
			t.Fatalf("filled %d times at the start, want once", n)
		}
		s.changed([]job.Change{{State: job.Completed}, {State: job.Available}})
		time.Sleep(time.Hour)
		if n := filled(); n != 1 {
			t.Errorf("filled %d times although nothing failed", n)
		}
		for range 100 {
			s.changed([]job.Change{{State: job.Active}, {State: job.Retryable, Failed: true}})
		}
		time.Sleep(searchPause)
		if n := filled(); n != 2 {
			t.Errorf("filled %d times after a crowd of failures, want 2", n)
		}
		s.changed([]job.Change{{State: job.Discarded, DeadLetter: job.DeadLetterStored}})
		time.Sleep(searchPause)
		if n := filled(); n != 3 {
			t.Errorf("filled %d times after an envelope was set aside, want 3", n)
		}
		s.changed(nil)
		time.Sleep(searchPause)
		if n := filled(); n != 4 {
			t.Errorf("filled %d times after jobs were removed, want 4", n)
		}
	})
}

// A flood of failures is swept up every now and then, and the index is put in order
// when it is over.
func TestSearcher_LeavesTheWriterToOthersInAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sweeps, merges atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		s := newSearcher(func(context.Context) (int, error) {
			sweeps.Add(1)
			time.Sleep(searchPeriod / 2)
			return 1, nil
		}, func(context.Context) error { merges.Add(1); return nil }, slog.New(slog.DiscardHandler))
		done := make(chan struct{})
		go func() { defer close(done); s.run(ctx) }()
		const periods = 20
		for range periods * 100 {
			s.changed([]job.Change{{State: job.Retryable, Failed: true}})
			time.Sleep(searchPeriod / 100)
		}
		if n := sweeps.Load(); n < periods*3/4 || n > periods+1 || merges.Load() != 0 {
			t.Errorf("%d sweeps in %d periods, %d merges", n, periods, merges.Load())
		}
		sweeps.Store(0)
		time.Sleep(searchPeriod/2 + 2*searchPause) // one can be under way
		if sweeps.Load() == 0 {
			t.Error("no sweep soon after the flood")
		}
		time.Sleep(time.Hour)
		if n := merges.Load(); n != 1 {
			t.Errorf("%d merges after the flood, want 1", n)
		}
		cancel()
		<-done
	})
}

func TestSearcher_TriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		_, filled := startSearching(t, 2, &log)
		time.Sleep(2 * searchAgain)
		if n := filled(); n != 1 || strings.Count(log.String(), `error="the disk is full"`) != 2 {
			t.Errorf("filled %d times, want once after two failures; the log:\n%s", n, log.String())
		}
	})
}
