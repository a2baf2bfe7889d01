package bulk_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"redrive/internal/audit"
	"redrive/internal/bulk"
	"redrive/internal/fault"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
	"redrive/internal/store/location"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ana = audit.Actor{Name: "ana"}

// rig is a runner on a real database. Inside a synctest bubble its hours take
// milliseconds.
type rig struct {
	*testing.T
	path   string // of the database, or its address
	store  *store.Store
	runner *bulk.Runner
}

// bubble runs a test in a synctest bubble. The database is made outside: those of a server are
// handed from test to test.
func bubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	database := databasetest.New(t)
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, path: database}
		r.open()
		t.Cleanup(func() { r.close() })
		test(r)
	})
}

func (r *rig) open() {
	r.Helper()
	s, err := store.Open(r.Context(), store.Options{
		Database:   location.Of(r.path).Database(true),
		CheckEvery: time.Hour, // hours pass in a moment here
	})
	if err != nil {
		r.Fatal(err)
	}
	r.store, r.runner = s, bulk.Start(s.Operations, nil)
}

func (r *rig) close() {
	r.Helper()
	r.runner.Close()
	if err := r.store.Close(); err != nil {
		r.Error(err)
	}
}

// dead enqueues n jobs as dead letters.
func (r *rig) dead(queue string, n int) []job.Job {
	r.Helper()
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = job.Job{
			Queue: queue, Type: "t", Payload: []byte("1"), Timeout: time.Minute, Policy: retry.Policy{MaxAttempts: 1},
			State: job.Discarded, DeadLetter: job.DeadLetterStored, Reason: retry.AttemptsExhausted, Error: job.ErrorInfo{Type: "bad", Message: "bad"},
		}
	}
	done, err := r.store.Enqueue(r.Context(), time.Now(), jobs)
	if err != nil {
		r.Fatal(err)
	}
	for i := range done {
		jobs[i] = done[i].Job
	}
	time.Sleep(time.Microsecond) // what is made at one moment may or may not be in a scope of that moment
	return jobs
}

// operate makes an operation over a queue, which starts automatically.
func (r *rig) operate(queue string, p operation.Pace) int64 {
	r.Helper()
	f, err := operation.Replay.Scope(filter.Filter{Queue: queue})
	if err != nil {
		r.Fatal(err)
	}
	o, err := r.store.Operations.New(r.Context(), time.Now(), operation.Request{Kind: operation.Replay, Filter: f, Pace: p, Start: true}, ana)
	if err != nil {
		r.Fatal(err)
	}
	r.runner.Notify()
	return o.ID
}

func (r *rig) operation(id int64) operation.Operation {
	r.Helper()
	o, err := r.store.Operations.Get(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return o
}

// after says how many jobs an operation has done when so much time has passed.
func (r *rig) after(d time.Duration, id, want int64) {
	r.Helper()
	time.Sleep(d)
	synctest.Wait()
	if o := r.operation(id); o.Done != want {
		r.Errorf("after %v: %d jobs are done, want %d; %s %s", d, o.Done, want, o.State, o.Why)
	}
}

func TestRunner_KeepsTheRate(t *testing.T) {
	bubble(t, func(r *rig) {
		r.dead("a", 100)
		id := r.operate("a", operation.Pace{Rate: 10})
		r.after(20*time.Millisecond, id, 1) // the first at once
		r.after(100*time.Millisecond, id, 2)
		r.after(time.Second, id, 12)
		r.after(time.Hour, id, 100)
		if o := r.operation(id); o.State != operation.Finished || o.FinishedAt.Sub(o.StartedAt).Round(time.Second) != 10*time.Second {
			t.Errorf("it is %s after %v", o.State, o.FinishedAt.Sub(o.StartedAt))
		}
	})
}

func TestRunner_SlowAndFastRates(t *testing.T) {
	bubble(t, func(r *rig) {
		r.dead("slow", 5)
		r.dead("fast", 3000)
		slow, fast := r.operate("slow", operation.Pace{Rate: 1.0 / 60}), r.operate("fast", operation.Pace{Rate: 1000})
		r.after(30*time.Second, slow, 1)
		r.after(time.Minute, slow, 2)
		o := r.operation(fast)
		if took := o.FinishedAt.Sub(o.StartedAt); o.Done != 3000 || took < 2900*time.Millisecond || took > 3200*time.Millisecond {
			t.Errorf("%d jobs took %v at 1,000 a second", o.Done, took)
		}
	})
}

func TestRunner_SpreadTakesItsTime(t *testing.T) {
	bubble(t, func(r *rig) {
		r.dead("a", 60)
		id := r.operate("a", operation.Pace{Spread: time.Hour})
		r.after(30*time.Minute+time.Second, id, 31)
		r.after(time.Hour, id, 60)
	})
}

func TestRunner_PauseRateAndAbortActAtOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		r.dead("a", 1000)
		id := r.operate("a", operation.Pace{Rate: 1})
		r.after(10*time.Second+time.Millisecond, id, 11)
		act := func(_ operation.Operation, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			r.runner.Notify()
		}
		act(r.store.Operations.Pause(r.Context(), time.Now(), id, ana))
		r.after(time.Hour, id, 11)
		act(r.store.Operations.Resume(r.Context(), time.Now(), id, ana))
		r.after(time.Second+time.Millisecond, id, 13)
		act(r.store.Operations.SetRate(r.Context(), time.Now(), id, operation.Pace{Rate: 5}, ana))
		r.after(10*time.Second+time.Millisecond, id, 13+51)
		act(r.store.Operations.Abort(r.Context(), time.Now(), id, ana))
		r.after(time.Hour, id, 13+51)
		if n := r.store.Snapshot().Depths[job.StatusDeadLetter]; n != 1000-13-51 {
			t.Errorf("%d dead letters are left", n)
		}
	})
}

func TestRunner_LargeOnesDoNotHoldUpSmallOnes(t *testing.T) {
	bubble(t, func(r *rig) {
		r.dead("large", 4000)
		r.dead("small", 600)
		large := r.operate("large", operation.Pace{})
		small := r.operate("small", operation.Pace{})
		r.after(time.Second, large, 4000)
		r.after(0, small, 600)
		if a, b := r.operation(large).FinishedAt, r.operation(small).FinishedAt; b.After(a) {
			t.Errorf("the small one finished at %v, the large one at %v", b, a)
		}
	})
}

func TestRunner_GoesOnAfterARestart(t *testing.T) {
	bubble(t, func(r *rig) {
		r.dead("a", 100)
		r.dead("b", 100)
		id := r.operate("a", operation.Pace{Rate: 10})
		paused := r.operate("b", operation.Pace{Rate: 10})
		r.after(time.Second+time.Millisecond, id, 11)
		if _, err := r.store.Operations.Pause(r.Context(), time.Now(), paused, ana); err != nil {
			t.Fatal(err)
		}
		r.close()
		time.Sleep(time.Hour)
		r.open()
		r.after(time.Second+time.Millisecond, id, 22) // a new rhythm, and nothing made up for
		r.after(time.Hour, id, 100)
		r.after(time.Hour, paused, 11)
		for _, l := range []int64{id, paused} {
			if o := r.operation(l); o.Total != o.Pending+o.Done+o.Skipped+o.Failed {
				t.Errorf("the meters of %+v do not add up", o)
			}
		}
	})
}

func TestRunner_EndsPreviewsThatAreNotStarted(t *testing.T) {
	bubble(t, func(r *rig) {
		r.dead("a", 3)
		f := filter.Filter{Queue: "a", Status: job.StatusDeadLetter}
		o, err := r.store.Operations.New(r.Context(), time.Now(), operation.Request{Kind: operation.Replay, Filter: f}, ana)
		if err != nil {
			t.Fatal(err)
		}
		r.runner.Notify()
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if got := r.operation(o.ID); got.State != operation.Preview || got.Pending != 3 {
			t.Errorf("before the hour it is %s with %d jobs", got.State, got.Pending)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := r.operation(o.ID); got.State != operation.Aborted {
			t.Errorf("after the hour it is %s", got.State)
		}
	})
}

func TestRunner_OneBadItemDoesNotStopTheOthers(t *testing.T) {
	bubble(t, func(r *rig) {
		bad := r.dead("a", 20)[7]
		defer databasetest.Spoil(r, r.path, "replays", "job_seq", bad.Seq)()
		id := r.operate("a", operation.Pace{})
		r.after(time.Second, id, 19)
		o := r.operation(id)
		if o.State != operation.Finished || o.Failed != 1 {
			t.Errorf("it is %s with %d failed", o.State, o.Failed)
		}
		list, err := r.store.Operations.Items(r.Context(), id, operation.ItemFilter{State: operation.ItemFailed}, 0, 10)
		if err != nil || len(list.Items) != 1 || list.Items[0].Job.ID != bad.ID || list.Items[0].Why == "" {
			t.Errorf("failed items: %+v, %v", list.Items, err)
		}
	})
}

// flaky is a store that cannot be written for a while.
type flaky struct {
	bulk.Store
	err    error
	mended atomic.Bool
	tries  atomic.Int64
}

func (f *flaky) Work(ctx context.Context, clock func() time.Time, id int64, n int) (operation.Step, error) {
	if !f.mended.Load() {
		f.tries.Add(1)
		return operation.Step{}, f.err
	}
	return f.Store.Work(ctx, clock, id, n)
}

func TestRunner_WaitsForADatabaseThatCannotBeWritten(t *testing.T) {
	for _, unable := range []error{fault.ErrBusy, fault.ErrStorageFull, fault.ErrReadOnly} {
		bubble(t, func(r *rig) {
			r.dead("a", 20)
			r.runner.Close()
			f := &flaky{Store: r.store.Operations, err: fmt.Errorf("work: %w", unable)}
			r.runner = bulk.Start(f, nil)
			id := r.operate("a", operation.Pace{})
			r.after(time.Minute, id, 0)
			if n := f.tries.Load(); n < 20 || n > 40 {
				t.Errorf("it was tried %d times in a minute", n)
			}
			f.mended.Store(true)
			r.after(time.Minute, id, 20)
			if o := r.operation(id); o.Failed != 0 || o.State != operation.Finished {
				t.Errorf("%v: %d items failed, it is %s", unable, o.Failed, o.State)
			}
		})
	}
}
