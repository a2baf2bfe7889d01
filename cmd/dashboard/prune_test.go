package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/sqlite"
)

// flaky is a store whose first sweeps fail.
type flaky struct {
	*store.Store
	failures int
}

func (f *flaky) Prune(ctx context.Context, now time.Time, l retention.Limits) (retention.Pruned, error) {
	if f.failures--; f.failures >= 0 {
		return retention.Pruned{}, errors.New("the disk is full")
	}
	return f.Store.Prune(ctx, now, l)
}

// startPruning prunes a real database of five dead letters until the test ends;
// the first calls fail. bury adds a dead letter, open tells how many are left.
func startPruning(t *testing.T, r retention.Limits, failures int, log *strings.Builder) (bury func(), open func() int64) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: sqlite.File{Path: filepath.Join(t.TempDir(), "q.db")}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	bury = func() {
		j := job.Job{
			Type: "a", Queue: "q", Payload: []byte(`{}`), Policy: retry.Default(),
			State: job.Discarded, Letter: job.LetterStored, Reason: retry.MissingURN, Error: job.ErrorInfo{Type: "x", Message: "y"},
		}
		if _, err := s.Enqueue(t.Context(), time.Now(), []job.Job{j}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
	for range 5 {
		bury()
	}
	go func() {
		defer close(done)
		(&pruner{store: &flaky{s, failures}, limits: func() retention.Limits { return r }, log: slog.New(slog.NewTextHandler(log, nil))}).run(ctx)
	}()
	synctest.Wait()
	return bury, func() int64 {
		synctest.Wait()
		fill, err := s.LetterUsage(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return fill.Open
	}
}

func TestPruner_PrunesAtTheStartAndThenAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		bury, open := startPruning(t, retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Hour}, Count: 3}, 0, &log)
		if n := open(); n != 3 {
			t.Errorf("after the start %d are left, want 3", n)
		}
		bury()
		if n := open(); n != 4 {
			t.Errorf("before the next time %d are left, want 4", n)
		}
		time.Sleep(time.Minute)
		if n := open(); n != 3 {
			t.Errorf("after a minute %d are left, want 3", n)
		}
		time.Sleep(2 * time.Hour)
		if n := open(); n != 1 {
			t.Errorf("after two hours %d are left, want the newest", n)
		}
		for _, part := range []string{
			`msg="Retention removed jobs." kind=excess_dead_letters jobs=2 queues="q 2"`, `kind=excess_dead_letters jobs=1 queues="q 1"`,
			`kind=dead_letters jobs=2 queues="q 2"`,
		} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log lacks %q:\n%s", part, log.String())
			}
		}
	})
}

func TestPruner_WarnsOnceADayBeforeDeadLettersAreRemovedForTheirAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		_, open := startPruning(t, retention.Limits{Ages: retention.Ages{retention.DeadLetters: 48 * time.Hour}}, 0, &log)
		const warning = `level=WARN msg="Dead letters will be removed within 24 hours`
		open()
		if strings.Contains(log.String(), warning) {
			t.Errorf("it warned two days before:\n%s", log.String())
		}
		time.Sleep(25 * time.Hour)
		if n := open(); n != 5 || strings.Count(log.String(), warning) != 1 || !strings.Contains(log.String(), "jobs=5 oldest=") {
			t.Errorf("a day before, %d letters are left and the log says\n%s", n, log.String())
		}
		time.Sleep(24 * time.Hour)
		if n := open(); n != 1 || !strings.Contains(log.String(), "kind=dead_letters jobs=4") {
			t.Errorf("after two days %d letters are left and the log says\n%s", n, log.String())
		}
	})
}

func TestPruner_WarnsBeforeTheDeadLetterQueueIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		_, open := startPruning(t, retention.Limits{Count: 7}, 0, &log)
		if n := open(); n != 5 || !strings.Contains(log.String(), `level=WARN msg="The dead-letter queue will be full within 24 hours`) {
			t.Errorf("%d letters are left and the log says\n%s", n, log.String())
		}
	})
}

func TestPruner_TriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		_, open := startPruning(t, retention.Limits{Count: 3}, 1, &log)
		if n := open(); n != 5 {
			t.Errorf("%d are left, want all", n)
		}
		time.Sleep(time.Minute)
		if n := open(); n != 3 || strings.Count(log.String(), `error="the disk is full"`) != 1 {
			t.Errorf("after a minute %d are left, want 3; the log:\n%s", n, log.String())
		}
	})
}
