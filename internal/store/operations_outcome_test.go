package store

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
)

// replayed is an operation that replayed a dead job, and the job in the execution
// that followed.
func replayed(t *testing.T, s *Store) (id int64, running job.Job) {
	t.Helper()
	j := dead(t, s, 1)[0]
	by := audit.Actor{Name: "ana"}
	o, err := s.Operations.New(t.Context(), testTime, operation.Request{Kind: operation.Replay, Named: []operation.Named{{ID: j.ID, Run: 1}}, Start: true}, by)
	check(t, err)
	_, err = s.Operations.Work(t.Context(), func() time.Time { return testTime }, o.ID, 1)
	check(t, err)
	claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{Worker: "w", Now: testTime, Lease: time.Minute, Free: map[string]int{j.Queue: 1}})
	check(t, err)
	return o.ID, claimed[0]
}

// together queues calls behind one another, so that one transaction does them all.
func together(t *testing.T, s *Store, calls ...func(context.Context) error) {
	t.Helper()
	release := block(t, s)
	var callers sync.WaitGroup
	for _, call := range calls {
		callers.Go(func() {
			if err := call(context.Background()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait() // it stands in the queue
	}
	release()
	callers.Wait()
}

// TestOutcome_OfARunThatIsReplayedInTheSameCommit: what counts is how the run ended,
// and whether in the same group as before, not that a person replayed it.
func TestOutcome_OfARunThatIsReplayedInTheSameCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		id, running := replayed(t, s)
		end := job.Ending{Outcome: job.Failed, FinishedAt: testTime.Add(time.Second), Answer: retry.Answer{Code: retry.CodeDeadLetter}}
		together(t, s,
			func(ctx context.Context) error {
				_, _, err := s.Exchange(ctx, []job.Settlement{running.Settle(end, nil)}, job.Claim{})
				return err
			},
			func(ctx context.Context) error {
				_, err := s.Replay(ctx, testTime.Add(time.Second), running.ID, 2, audit.Actor{Name: "eve"})
				return err
			})
		o, err := s.Operations.Get(t.Context(), id)
		check(t, err)
		items, err := s.Operations.Items(t.Context(), id, operation.ItemFilter{}, 0, 9)
		check(t, err)
		if o.Relapsed != 1 || o.Dropped != 0 || !items.Items[0].Same {
			t.Errorf("relapsed %d, dropped %d, the item is %+v", o.Relapsed, o.Dropped, items.Items[0])
		}
	})
}

// TestOutcome_OfARunThatIsDiscardedAndRestoredInOneCommit: it goes on.
func TestOutcome_OfARunThatIsDiscardedAndRestoredInOneCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		id, running := replayed(t, s)
		end := job.Ending{Outcome: job.Interrupted, FinishedAt: testTime.Add(time.Second)}
		_, _, err := s.Exchange(t.Context(), []job.Settlement{running.Settle(end, nil)}, job.Claim{})
		check(t, err)
		by := audit.Actor{Name: "eve"}
		together(t, s,
			func(ctx context.Context) error {
				_, err := s.Discard(ctx, testTime.Add(time.Second), running.ID, 2, by)
				return err
			},
			func(ctx context.Context) error {
				_, err := s.Restore(ctx, testTime.Add(time.Second), running.ID, 2, by)
				return err
			})
		if o, err := s.Operations.Get(t.Context(), id); err != nil || o.Dropped != 0 || o.Unsettled() != 1 {
			t.Errorf("%+v, %v", o, err)
		}
	})
}

// A step does not end while no other caller waits, and goes on for a moment when one
// does: where many write, each step is worth its commit.
func TestWork_EndsSoonOnceACallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		dead(t, s, 800)
		f, err := operation.Replay.Scope(filter.Filter{})
		check(t, err)
		n := operation.Request{Kind: operation.Replay, Filter: f, Start: true}
		o, err := s.Operations.New(t.Context(), testTime.Add(time.Hour), n, audit.Actor{Name: "ana"})
		check(t, err)
		_, err = s.Operations.Collect(t.Context(), testTime.Add(time.Hour), o.ID)
		check(t, err)
		var other sync.WaitGroup
		var turn time.Time
		slow := func() time.Time { // another caller comes as the step begins, and each look at the clock is 2.5 ms later
			if turn.IsZero() {
				turn = testTime.Add(time.Hour)
				other.Go(func() { enqueue(t, s, 1) })
				synctest.Wait()
				return turn
			}
			turn = turn.Add(2500 * time.Microsecond)
			return turn
		}
		step := func(clock func() time.Time, want int) {
			done, err := s.Operations.Work(t.Context(), clock, o.ID, operation.MaxStep)
			check(t, err)
			other.Wait()
			if done.Items != want {
				t.Errorf("the step has %d items, want %d; then the operation is %s", done.Items, want, done.Operation.State)
			}
		}
		step(slow, 200)
		step(func() time.Time { return turn }, 600)
	})
}
