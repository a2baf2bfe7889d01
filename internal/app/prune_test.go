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
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/sqlite/sqlitetest"
	"redrive/internal/store/sweep"
	"redrive/test/rig"
)

// flaky is a store whose first sweeps fail, or its first counts of dead letters.
type flaky struct {
	*sweep.Sweeper
	failures    int
	uncounted   int
	untimed     int           // looks at the clock
	takesSoLong time.Duration // a sweep

	ahead  *atomic.Int64           // by which the clock of the machine is, in nanoseconds; nil: it is right
	limits func() retention.Limits // at the moment; nil: they stay
}

func (f *flaky) Prune(ctx context.Context, now time.Time, l retention.Limits) (retention.Pruned, error) {
	time.Sleep(f.takesSoLong)
	if f.failures--; f.failures >= 0 {
		return retention.Pruned{}, errors.New("the disk is full")
	}
	return f.Sweeper.Prune(ctx, now, l)
}

func (f *flaky) DeadLetterUsage(ctx context.Context, now time.Time) (retention.Usage, error) {
	if f.uncounted--; f.uncounted >= 0 {
		return retention.Usage{}, errors.New("the disk is gone")
	}
	return f.Sweeper.DeadLetterUsage(ctx, now)
}

func (f *flaky) Clock(ctx context.Context) (retention.Clock, error) {
	if f.untimed--; f.untimed >= 0 {
		return retention.Clock{}, errors.New("the disk is away")
	}
	return f.Sweeper.Clock(ctx)
}

// storeOptions are those of an empty database that days pass by. Nothing happens to its
// files, and to check them in each of those seconds would be most of the work of a test.
func storeOptions(t *testing.T) store.Options {
	return store.Options{Database: sqlite.File{Path: sqlitetest.New(t), Relaxed: true}, CheckEvery: time.Hour}
}

// slowly has a sweep take so long that the pause after it is ten minutes, for tests of days.
const slowly = 10 * time.Minute / restShare

// pruning prunes a real database of five dead letters until the test ends, as flaky as
// faults say. open tells how many are left.
func pruning(t *testing.T, r retention.Limits, faults flaky, log *rig.Transcript) (s *store.Store, open func() int64) {
	t.Helper()
	s, err := store.Open(t.Context(), storeOptions(t))
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
	for range 5 {
		bury(t, s, 1)
		time.Sleep(time.Second)
	}
	faults.Sweeper = s.Sweep
	if faults.ahead == nil {
		faults.ahead = new(atomic.Int64)
	}
	if faults.limits == nil {
		faults.limits = func() retention.Limits { return r }
	}
	go func() {
		defer close(done)
		p := newPruner(&faults, faults.limits, slog.New(slog.NewTextHandler(log, nil)))
		p.wall = func() time.Time { return time.Now().Add(time.Duration(faults.ahead.Load())) }
		p.run(ctx)
	}()
	synctest.Wait()
	return s, func() int64 {
		synctest.Wait()
		fill, err := s.Sweep.DeadLetterUsage(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return fill.Open
	}
}

// bury adds dead letters.
func bury(t *testing.T, s *store.Store, n int) {
	t.Helper()
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = job.Job{
			Type: "a", Queue: "q", Payload: []byte(`{}`), Policy: retry.Default(),
			State: job.Discarded, DeadLetter: job.DeadLetterStored, Reason: retry.MissingURN, Error: job.ErrorInfo{Type: "x", Message: "y"},
		}
	}
	if _, err := s.Enqueue(t.Context(), time.Now(), jobs); err != nil {
		t.Fatal(err)
	}
}

func TestPruner_PrunesEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		s, open := pruning(t, retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Hour}, Count: 3}, flaky{}, &log)
		if n := open(); n != 5 {
			t.Errorf("at the start %d are left, want all", n)
		}
		time.Sleep(time.Minute)
		if n := open(); n != 3 {
			t.Errorf("after a minute %d are left, want 3", n)
		}
		bury(t, s, 1)
		time.Sleep(time.Minute)
		if n := open(); n != 4 {
			t.Errorf("%d are left before the fourth was forecast, want 4", n)
		}
		time.Sleep(time.Minute)
		if n := open(); n != 3 {
			t.Errorf("a minute later %d are left, want 3", n)
		}
		time.Sleep(2 * time.Hour)
		if n := open(); n != 1 {
			t.Errorf("after two hours %d are left, want the newest", n)
		}
		for _, part := range []string{
			`level=WARN msg="Retention removed the oldest dead letters, because there were more than retention.max_dead_letters." jobs=2 queues="q 2"`,
			`level=INFO msg="Retention removed jobs." kind=dead_letters jobs=2 queues="q 2"`,
		} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log lacks %q:\n%s", part, log.String())
			}
		}
	})
}

// What is removed for its number was forecast a minute before, in the log and in the
// forecast that page, API and metric show; in the log both are warnings.
func TestPruner_ForecastsAFloodBeforeItRemovesAnyOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		s, open := pruning(t, retention.Limits{Count: 5}, flaky{}, &log)
		said := func(message string) int { return strings.Count(log.String(), "level=WARN msg=\""+message) }
		const full, warned, removed = "The dead-letter queue is full", "The next sweep will remove", "Retention removed the oldest dead letters"
		if n := open(); n != 5 || said(full) != 1 || said(warned) != 0 {
			t.Errorf("with %d of 5 letters, the log says\n%s", n, log.String())
		}
		bury(t, s, 300)
		time.Sleep(time.Minute)
		if n := open(); n != 305 || said(warned) != 1 || said(removed) != 0 || !strings.Contains(log.String(), "jobs=300 dead_letters=305") {
			t.Errorf("a minute after the flood %d letters are left, and the log says\n%s", n, log.String())
		}
		if soon := s.Sweep.Retention().Of(retention.OverCount).Soon; soon != 300 {
			t.Errorf("the forecast announces %d, want 300", soon)
		}
		bury(t, s, 50)
		time.Sleep(time.Minute)
		if n := open(); n != 55 || said(warned) != 2 || said(removed) != 1 || !strings.Contains(log.String(), `jobs=300 queues="q 300"`) {
			t.Errorf("two minutes after the flood %d letters are left, and the log says\n%s", n, log.String())
		}
		time.Sleep(time.Minute)
		if n := open(); n != 5 || said(warned) != 2 || said(removed) != 2 || s.Sweep.Retention().Of(retention.OverCount).Soon != 0 {
			t.Errorf("at last %d letters are left, and the log says\n%s", n, log.String())
		}
	})
}

func TestPruner_WarnsOnceADayBeforeDeadLettersAreRemovedForTheirAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		_, open := pruning(t, retention.Limits{Ages: retention.Ages{retention.DeadLetters: 48 * time.Hour}}, flaky{takesSoLong: slowly}, &log)
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
	for count, want := range map[int64]string{
		5: "The dead-letter queue is full", 7: "The dead-letter queue will be full within 24 hours", 6: "The dead-letter queue will be full within 24 hours", 1000: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			var log rig.Transcript
			_, open := pruning(t, retention.Limits{Count: count}, flaky{}, &log)
			time.Sleep(time.Hour)
			if n, warnings := open(), strings.Count(log.String(), "level=WARN"); n != 5 || !strings.Contains(log.String(), want) || warnings != min(len(want), 1) {
				t.Errorf("%d of %d letters are left, and the log says\n%s", n, count, log.String())
			}
		})
	}
}

// A queue that fills up slowly is told of from 80 percent on, once a day.
func TestPruner_WarnsFromEightyPercent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		s, open := pruning(t, retention.Limits{Count: 1000}, flaky{takesSoLong: slowly}, &log)
		bury(t, s, 794)
		const filling = `level=WARN msg="The dead-letter queue is at least 80 percent full`
		time.Sleep(26 * time.Hour) // longer than the pace is measured
		if n := open(); n != 799 || strings.Contains(log.String(), filling) {
			t.Errorf("with %d letters, the log says\n%s", n, log.String())
		}
		bury(t, s, 1)
		time.Sleep(23 * time.Hour)
		if n := open(); n != 800 || strings.Count(log.String(), filling) != 1 || !strings.Contains(log.String(), "dead_letters=800 max_dead_letters=1000") {
			t.Errorf("with %d letters, the log says\n%s", n, log.String())
		}
		time.Sleep(2 * time.Hour)
		if open(); strings.Count(log.String(), filling) != 2 {
			t.Errorf("a day later, the log says\n%s", log.String())
		}
	})
}

func TestPruner_TriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		_, open := pruning(t, retention.Limits{Count: 3}, flaky{failures: 1, uncounted: 1, takesSoLong: 10 * time.Second}, &log)
		time.Sleep(70 * time.Second)
		if n := open(); n != 5 {
			t.Errorf("%d are left, want all", n)
		}
		time.Sleep(210 * time.Second)
		if n := open(); n != 3 {
			t.Errorf("after the pause %d are left, want 3", n)
		}
		for _, part := range []string{
			`"Retention could not count the jobs that it will remove. Redrive will try again." error="the disk is gone" again_in=1m0s`,
			`"Retention could not remove jobs. Redrive will try again." error="the disk is full" again_in=3m20s`,
		} {
			if strings.Count(log.String(), part) != 1 || strings.Count(log.String(), "could not") != 2 {
				t.Errorf("the log lacks %q:\n%s", part, log.String())
			}
		}
	})
}

// Nothing is removed for its number before the log has warned of it, whatever of the
// forecast failed.
func TestPruner_RemovesNothingWithoutAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		_, open := pruning(t, retention.Limits{Count: 3}, flaky{uncounted: 1}, &log)
		const warned = "The next sweep will remove the oldest dead letters"
		time.Sleep(time.Minute)
		if n := open(); n != 5 || strings.Count(log.String(), warned) != 1 {
			t.Errorf("after a minute %d are left, want all; the log:\n%s", n, log.String())
		}
		time.Sleep(time.Minute)
		if n := open(); n != 3 {
			t.Errorf("a minute later %d are left, want 3; the log:\n%s", n, log.String())
		}
	})
}

// Nothing is removed, for its number neither, before the time is known that retention goes by.
func TestPruner_RemovesNothingBeforeItKnowsTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		_, open := pruning(t, retention.Limits{Count: 3}, flaky{untimed: 2}, &log)
		const untimed = `"Retention could not read or write the time that it goes by. Redrive will try again." error="the disk is away"`
		time.Sleep(time.Minute)
		if n := open(); n != 5 || strings.Count(log.String(), untimed) != 2 {
			t.Errorf("after a minute %d are left, want all; the log:\n%s", n, log.String())
		}
		time.Sleep(time.Minute)
		if n := open(); n != 3 {
			t.Errorf("a minute later %d are left, want 3; the log:\n%s", n, log.String())
		}
	})
}

// While the clock is ahead, nothing is removed for its number either.
func TestPruner_AClockThatMovesForwardRemovesNothingForItsNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		ahead := new(atomic.Int64)
		_, open := pruning(t, retention.Limits{Count: 3}, flaky{ahead: ahead, takesSoLong: slowly}, &log)
		ahead.Store(int64(366 * 24 * time.Hour))
		time.Sleep(time.Hour)
		if n := open(); n != 5 {
			t.Errorf("%d are left, want all", n)
		}
		ahead.Store(0)
		time.Sleep(time.Hour)
		if n := open(); n != 3 {
			t.Errorf("with the right clock %d are left, want 3; the log says\n%s", n, log.String())
		}
	})
}

// A clock that is a year ahead makes everything old at once.
func TestPruner_AClockThatMovesForwardRemovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		ahead := new(atomic.Int64)
		limits := retention.Limits{Ages: retention.Ages{retention.DeadLetters: 180 * 24 * time.Hour}, Trash: time.Hour}
		s, open := pruning(t, limits, flaky{ahead: ahead, takesSoLong: slowly}, &log)
		ahead.Store(int64(366 * 24 * time.Hour))
		time.Sleep(23 * time.Hour)
		if n := open(); n != 5 {
			t.Errorf("%d are left, want all", n)
		}
		if clock := s.Sweep.Retention().Clock; !clock.Held() || clock.Ahead != 366*24*time.Hour {
			t.Errorf("the page says %+v", clock)
		}
		const warning = `level=WARN msg="The clock of this machine moved forward, so retention removes nothing for now.`
		if strings.Count(log.String(), warning) != 1 {
			t.Errorf("the log says\n%s", log.String())
		}
		ahead.Store(0)
		time.Sleep(2 * 24 * time.Hour)
		if n := open(); n != 5 || s.Sweep.Retention().Clock.Held() || strings.Count(log.String(), "Retention goes on by the clock of this machine.") != 1 {
			t.Errorf("with the right clock %d are left; the log says\n%s", n, log.String())
		}
	})
}

// After a weekend without the dashboard, nothing is wrong with the clock.
func TestPruner_AStartAfterAWeekendDoesNotBlameTheClock(t *testing.T) {
	var log rig.Transcript
	friday := time.Date(2026, 3, 13, 17, 0, 0, 0, time.UTC)
	monday := friday.Add(64 * time.Hour)
	p := &pruner{log: slog.New(slog.NewTextHandler(&log, nil)), wall: func() time.Time { return monday }}
	before := retention.Clock{Trusted: friday}
	p.tellClock(before, before.Begin(monday))
	for _, want := range []string{
		"The dashboard was last open more than a day ago", "If the clock is right, nothing needs to be done.",
		"last_open=2026-03-13T17:00:00", "until=2026-03-17T09:00:00",
	} {
		if got := log.String(); !strings.Contains(got, want) || strings.Contains(got, "moved forward") {
			t.Errorf("the log does not say %q: %s", want, got)
		}
	}
}

// A clock that stays where it is for a day is believed. Until then the log warned of what
// is removed.
func TestPruner_AClockThatStaysIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		ahead := new(atomic.Int64)
		limits := retention.Limits{Ages: retention.Ages{retention.DeadLetters: 180 * 24 * time.Hour}}
		_, open := pruning(t, limits, flaky{ahead: ahead, takesSoLong: slowly}, &log)
		ahead.Store(int64(366 * 24 * time.Hour))
		time.Sleep(24*time.Hour + 30*time.Minute)
		if n := open(); n != 1 || !strings.Contains(log.String(), "Dead letters will be removed within 24 hours") {
			t.Errorf("%d are left, want the newest; the log says\n%s", n, log.String())
		}
	})
}

func TestPruner_AClockThatMovesBackRemovesNothingTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		ahead := new(atomic.Int64)
		limits := retention.Limits{Ages: retention.Ages{retention.DeadLetters: 48 * time.Hour}}
		_, open := pruning(t, limits, flaky{ahead: ahead, takesSoLong: slowly}, &log)
		ahead.Store(int64(-24 * time.Hour))
		time.Sleep(49 * time.Hour)
		if n := open(); n != 5 || strings.Contains(log.String(), "moved forward") {
			t.Errorf("%d are left, want all; the log says\n%s", n, log.String())
		}
		time.Sleep(24 * time.Hour)
		if n := open(); n != 1 {
			t.Errorf("%d are left, want the newest", n)
		}
	})
}

// At a start, the newest time in the database tells that the clock is ahead. Another start
// does not begin the wait again, and one with the right clock ends it.
func TestPruner_AStartWithAWrongClockRemovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		ahead := new(atomic.Int64)
		limits := func() retention.Limits {
			return retention.Limits{Ages: retention.Ages{retention.DeadLetters: 180 * 24 * time.Hour}}
		}
		s, err := store.Open(t.Context(), storeOptions(t))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		bury(t, s, 5)
		left := func() int64 { return s.Snapshot().Depths[job.StatusDeadLetter] }
		restart := func(lasts time.Duration) retention.Clock {
			ctx, cancel := context.WithCancel(t.Context())
			p := newPruner(s.Sweep, limits, slog.New(slog.NewTextHandler(&log, nil)))
			p.wall = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			done := make(chan struct{})
			go func() {
				defer close(done)
				p.run(ctx)
			}()
			time.Sleep(lasts)
			synctest.Wait()
			cancel()
			<-done
			return p.clock
		}

		if clock := restart(time.Hour); clock.Held() {
			t.Errorf("with the right clock at first it is %+v", clock)
		}
		ahead.Store(int64(366 * 24 * time.Hour))
		if clock := restart(10*time.Hour + time.Second); clock.Left.Round(time.Minute) != 14*time.Hour {
			t.Errorf("after ten hours the clock is %+v", clock)
		}
		if clock := restart(10*time.Hour + time.Second); clock.Left.Round(time.Minute) != 4*time.Hour || left() != 5 {
			t.Errorf("after ten hours more the clock is %+v, and %d are left", clock, left())
		}
		ahead.Store(0)
		if clock := restart(time.Hour); clock.Held() || left() != 5 {
			t.Errorf("with the right clock it is %+v, and %d are left", clock, left())
		}
	})
}

// Ages that are shorter by another configuration are forecast before they remove anything.
func TestPruner_AnnouncesShorterAgesBeforeItRemovesByThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Transcript
		var short atomic.Bool
		limits := func() retention.Limits {
			age := 1000 * 24 * time.Hour
			if short.Load() {
				age = time.Minute
			}
			return retention.Limits{Ages: retention.Ages{retention.DeadLetters: age}}
		}
		_, open := pruning(t, retention.Limits{}, flaky{limits: limits}, &log)
		time.Sleep(10*time.Minute + time.Second)
		short.Store(true)
		time.Sleep(time.Minute)
		if n := open(); n != 5 || strings.Count(log.String(), "Dead letters will be removed within 24 hours") != 1 {
			t.Errorf("%d are left when it was announced; the log says\n%s", n, log.String())
		}
		time.Sleep(time.Minute)
		if n := open(); n != 1 {
			t.Errorf("%d are left a minute later, want the newest", n)
		}
	})
}
