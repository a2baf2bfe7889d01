package demo_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/config"
	"redrive/internal/demo"
	"redrive/internal/engine"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/sqlite"
)

var now = time.Date(2026, 3, 12, 14, 2, 11, 0, time.UTC)

// shop is the demo's world on a real store, with the demo's own configuration.
type shop struct {
	*demo.World
	*store.Store
	config *config.Config
}

func open(t *testing.T, seed uint64, changed func([]job.Change)) shop {
	t.Helper()
	c, err := config.Parse("demo", demo.Config)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), store.Options{Database: sqlite.File{Path: filepath.Join(t.TempDir(), "demo.db"), Relaxed: true}, OnCommit: changed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return shop{demo.New(seed, c), s, c}
}

func history(t *testing.T, seed uint64) shop {
	t.Helper()
	s := open(t, seed, nil)
	if err := s.History(t.Context(), s.Store, demo.Desk{Operations: s.Operations, Groups: s.Groups}, now, func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWorldHistory(t *testing.T) {
	a, b, c := history(t, 7), history(t, 7), history(t, 8)
	t.Run("counts about 20,000 jobs, and every counter", func(t *testing.T) { countsSomething(t, a) })
	t.Run("has failed in different ways", func(t *testing.T) { failedDifferently(t, a) })
	t.Run("is the same for the same seed", func(t *testing.T) {
		if x, y := a.Snapshot().Totals, b.Snapshot().Totals; x != y {
			t.Errorf("the same seed told two stories: %+v and %+v", x, y)
		}
		if x, y := newest(t, a, "payments.capture"), newest(t, b, "payments.capture"); x.ID != y.ID || string(x.Payload) != string(y.Payload) {
			t.Errorf("the newest dead letters differ: %s and %s", x.ID, y.ID)
		}
		if x, y := a.Snapshot().Totals, c.Snapshot().Totals; x == y {
			t.Errorf("two seeds told one story: %+v", x)
		}
	})
}

func countsSomething(t *testing.T, s shop) {
	got := s.Snapshot()
	if n := got.Depths.Jobs(); n < 18_000 || n > 22_000 {
		t.Errorf("%d jobs, want about 20,000", n)
	}
	for _, c := range got.Totals.Counters() {
		if c.Value == 0 {
			t.Errorf("%s is 0", c.Name)
		}
	}
	if f := got.Totals; f.Failed != f.Requeued+f.FailedPermanently {
		t.Errorf("the counters do not add up: %+v", f)
	}
}

func failedDifferently(t *testing.T, s shop) {
	reasons, err := s.Counters.Reasons(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[retry.Reason]bool{}
	for _, r := range reasons {
		seen[r.Reason] = true
	}
	if !seen[retry.AttemptsExhausted] || !seen[retry.NonRetryable] {
		t.Errorf("reasons %v, want exhausted and not retryable ones", reasons)
	}
	outcomes := map[job.Outcome]bool{}
	for _, kind := range []string{"report.render", "image.thumbnail", "payments.capture"} {
		detail, err := s.Job(t.Context(), newest(t, s, kind).ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range detail.Attempts {
			outcomes[a.Outcome] = true
		}
	}
	if !outcomes[job.Failed] || !outcomes[job.Panicked] || !outcomes[job.TimedOut] {
		t.Errorf("outcomes %v, want failed, panicked and timed out", outcomes)
	}
}

// newest is the newest dead letter of a type.
func newest(t *testing.T, s shop, typ string) job.Job {
	t.Helper()
	list, err := s.Jobs(t.Context(), filter.Filter{Status: job.StatusDeadLetter, Type: typ}, filter.Cursor{}, 1)
	if err != nil || len(list.Jobs) != 1 {
		t.Fatalf("no dead letter of %s: %v", typ, err)
	}
	return list.Jobs[0]
}

// Every fault makes its jobs fail while it is broken, and none when it is
// fixed: twenty minutes of the shop, worked off by the real engine.
func TestWorld_BreakAndFix(t *testing.T) {
	for _, broken := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var e *engine.Engine
			s := open(t, 3, func(c []job.Change) { e.Changed(c) })
			for _, f := range s.Faults() {
				if err := s.SetFault(f.Name, broken); err != nil {
					t.Fatal(err)
				}
			}
			e = start(t, s)
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Minute)
			defer stop()
			if err := s.Feed(ctx, s.Store); err != nil {
				t.Fatal(err)
			}
			if err := e.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			check(t, s, broken)
		})
	}
}

func start(t *testing.T, s shop) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Options{
		Store: s.Store, Handlers: s.Handler, Workers: s.config.Workers,
		UnknownType: retry.UnknownHold, Name: "test", Lease: time.Minute, Grace: 10 * time.Second,
		Random: func() float64 { return 0.5 },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

func check(t *testing.T, s shop, broken bool) {
	t.Helper()
	tallies, err := s.Counters.Tallies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, tally := range tallies {
		if tally.Type == "search.index" || tally.Type == "loyalty.expire" {
			continue
		}
		seen++
		if failed := tally.Totals.Failed > 0; failed != broken {
			t.Errorf("broken %v: %s has %+v", broken, tally.Type, tally.Totals)
		}
	}
	if seen != 8 {
		t.Errorf("%d of 8 kinds of jobs ran", seen)
	}
	if held := s.Snapshot().Depths[job.StatusHeld]; held != 3 {
		t.Errorf("%d jobs wait for a handler, want 3", held)
	}
}

func TestWorldSetFault_NamesWhatIsUnknown(t *testing.T) {
	if err := demo.New(1, config.Default()).SetFault("nobody", true); err == nil {
		t.Error("an unknown fault was accepted")
	}
}

func TestWorldDeliver_RefusesTheLedgersLettersUntilItIsFixed(t *testing.T) {
	w := open(t, 1, nil)
	ledger := job.Job{Queue: "ledger"}
	if d := w.Deliver(t.Context(), ledger, job.DeadLetter{}); d.Problem != "https://archive.example answered 507 Insufficient Storage" {
		t.Errorf("broken: %+v", d)
	}
	if err := w.SetFault("ledger", false); err != nil {
		t.Fatal(err)
	}
	if d := w.Deliver(t.Context(), ledger, job.DeadLetter{}); d.Problem != "" || d.ForwardedTo != "https://archive.example" || d.ForwardedAt.IsZero() {
		t.Errorf("fixed: %+v", d)
	}
	if d := w.Deliver(t.Context(), job.Job{Queue: "payments"}, job.DeadLetter{}); d != (job.Delivery{}) {
		t.Errorf("another queue: %+v, want the built-in dead-letter queue", d)
	}
}
