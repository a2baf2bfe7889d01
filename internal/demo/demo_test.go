package demo_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/config"
	"redrive/internal/demo"
	"redrive/internal/engine"
	"redrive/internal/filter"
	"redrive/internal/fingerprint"
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
	file   sqlite.File
}

func open(t *testing.T, seed uint64, changed func([]job.Change)) shop {
	t.Helper()
	c, err := config.Parse("demo", demo.Config("/srv/outlet.db"))
	if err != nil {
		t.Fatal(err)
	}
	file := sqlite.File{Path: filepath.Join(t.TempDir(), "demo.db"), Relaxed: true}
	s, err := store.Open(t.Context(), store.Options{Database: file, OnCommit: changed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return shop{demo.New(seed, c), s, c, file}
}

func history(t *testing.T, seed uint64, jobs int) shop {
	t.Helper()
	s := open(t, seed, nil)
	if err := s.past(t.Context(), jobs, func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	return s
}

// past writes the shop's history.
func (s shop) past(ctx context.Context, jobs int, progress func(done, all int)) error {
	return s.History(ctx, s.Store, demo.Desk{Operations: s.Operations, Groups: s.Groups, Hide: s.config.Redactor().Text}, demo.Day{End: now, Jobs: jobs}, progress)
}

// few is a day that takes little time to write.
const few = 4000

func TestWorldHistory(t *testing.T) { worldHistory(t, few) }

func TestLong_WorldHistoryOfAUsualDay(t *testing.T) { worldHistory(t, demo.Usual) }

func worldHistory(t *testing.T, jobs int) {
	s := history(t, 7, jobs)
	t.Run("has about its number of jobs, and counts everything", func(t *testing.T) { countsSomething(t, s, jobs) })
	t.Run("has failed in different ways", func(t *testing.T) { failedDifferently(t, s) })
	t.Run("has operations that ended", func(t *testing.T) { theyOperated(t, s) })
	t.Run("has groups that people dealt with", func(t *testing.T) { theyJudged(t, s) })
	t.Run("has a trash", func(t *testing.T) {
		if n := s.Snapshot().Depths[job.StatusTrashed]; n == 0 {
			t.Error("the trash is empty")
		}
	})
	t.Run("keeps no secret in an error", func(t *testing.T) {
		if e := newest(t, s, "crm.push").Error; strings.Contains(e.Message, "sk_demo") || !strings.Contains(e.Message, "api_key=") {
			t.Errorf("the newest error says %s", e.Message) // and would be another group than that of the engine
		}
	})
	t.Run("panics as the shop does later", func(t *testing.T) { panicsAlike(t, s) })
	t.Run("is sound", func(t *testing.T) { isSound(t, s) })
}

func TestWorldHistory_FollowsFromTheSeed(t *testing.T) {
	const fewer = few / 4 // jobs: three histories are written
	a, b := history(t, 7, fewer), history(t, 8, fewer)
	toldTwice(t, a, history(t, 7, fewer))
	if x, y := a.Snapshot().Totals, b.Snapshot().Totals; x == y {
		t.Errorf("two seeds told one story: %+v", x)
	}
}

func TestLong_WorldHistoryIsTheSameForTheSameSeed(t *testing.T) {
	a, b := history(t, 7, demo.Usual), history(t, 7, demo.Usual)
	toldTwice(t, a, b)
	if x, y := newest(t, a, "payments.capture"), newest(t, b, "payments.capture"); x.ID != y.ID || string(x.Payload) != string(y.Payload) {
		t.Errorf("the newest dead letters differ: %s and %s", x.ID, y.ID)
	}
}

func toldTwice(t *testing.T, a, b shop) {
	t.Helper()
	if x, y := a.Snapshot().Totals, b.Snapshot().Totals; x != y {
		t.Errorf("the same seed told two stories: %+v and %+v", x, y)
	}
	var told [2][]job.Job
	for i, s := range []shop{a, b} {
		list, err := s.Jobs(t.Context(), filter.Filter{}, filter.Cursor{}, 100)
		if err != nil || len(list.Jobs) != 100 {
			t.Fatalf("%d jobs, %v", len(list.Jobs), err)
		}
		told[i] = list.Jobs
	}
	for i, x := range told[0] {
		if y := told[1][i]; x.ID != y.ID || string(x.Payload) != string(y.Payload) {
			t.Errorf("the jobs %s and %s differ", x.ID, y.ID)
		}
	}
}

// panicsAlike compares a panic of the history with one of a handler: a person who
// reads both finds one cause, and so do the groups.
func panicsAlike(t *testing.T, s shop) {
	then, err := s.Job(t.Context(), newest(t, s, "image.thumbnail").ID)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		message, trace := panicOf(t, s)
		now := fingerprint.Of("image.thumbnail", "panic", message, trace)
		if now.Fingerprint != then.Group.Fingerprint {
			t.Errorf("the history has the group %+v, its handler %+v", then.Group.Cause, now)
		}
	})
}

// panicOf runs thumbnails until one panics.
func panicOf(t *testing.T, s shop) (message, trace string) {
	handle, _ := s.Handler("image.thumbnail")
	for run := range 1000 {
		func() {
			defer func() {
				if value := recover(); value != nil {
					message, trace = fmt.Sprint(value), string(debug.Stack())
				}
			}()
			if err := handle(t.Context(), job.Job{Token: job.Token{Run: run}, Type: "image.thumbnail", Payload: []byte("{}")}); err != nil {
				t.Error(err)
			}
		}()
		if trace != "" {
			return message, trace
		}
	}
	t.Fatal("nothing panicked")
	return "", ""
}

// isSound asks what dashboard doctor asks.
func isSound(t *testing.T, s shop) {
	found, err := store.Examine(t.Context(), s.file)
	if err != nil || len(found) == 0 {
		t.Fatalf("%d checks: %v", len(found), err)
	}
	for _, f := range found {
		if f.Problem != "" {
			t.Errorf("%s: %s", f.What, f.Problem)
		}
	}
}

func countsSomething(t *testing.T, s shop, jobs int) {
	got := s.Snapshot()
	if n := int(got.Depths.Jobs()); n < jobs*9/10 || n > jobs*11/10 {
		t.Errorf("%d jobs, want about %d", n, jobs)
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
// fixed: six minutes of the shop each, worked off by the real engine.
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
			ctx, stop := context.WithTimeout(t.Context(), 6*time.Minute)
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
		Store: s.Store, Queues: s.Store, Handlers: s.Handler, Workers: s.config.Workers,
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

// A receipt has one recipient, whom each of its failures names.
func TestWorldHandler_FailuresNameTheRecipientOfTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handle, ok := open(t, 1, nil).Handler("email.receipt")
		if !ok {
			t.Fatal("there is no handler")
		}
		failed := 0
		for run := range 30 {
			j := job.Job{Token: job.Token{Run: run}, Type: "email.receipt", Payload: []byte(`{"to":"vera@brightmail.example"}`)}
			err := handle(t.Context(), j)
			if err == nil {
				continue
			}
			failed++
			if !strings.Contains(err.Error(), "<vera@brightmail.example>") {
				t.Errorf("run %d: %v", run, err)
			}
		}
		if failed == 0 {
			t.Error("nothing failed")
		}
	})
}

func TestWorldSetFault_IsRemembered(t *testing.T) {
	w := open(t, 1, nil)
	if w.Used() {
		t.Error("a new world was used")
	}
	if err := w.SetFault("sms", false); err != nil {
		t.Fatal(err)
	}
	if !w.Used() {
		t.Error("the fix was forgotten")
	}
}

func TestWorldSetFault_NamesWhatIsUnknown(t *testing.T) {
	if err := demo.New(1, config.Default()).SetFault("nobody", true); err == nil {
		t.Error("an unknown fault was accepted")
	}
}

func TestWorldDeliver_RefusesTheLedgersDeadLettersUntilItIsFixed(t *testing.T) {
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
