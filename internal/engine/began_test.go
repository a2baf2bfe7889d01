package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/engine"
	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// slowFaulty is a store whose commits take long, and which can refuse them.
type slowFaulty struct {
	*faulty
	commit time.Duration
}

func (s slowFaulty) Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) ([]job.Job, []job.Token, error) {
	time.Sleep(s.commit)
	return s.faulty.Exchange(ctx, settle, claim)
}

// startPrefetching starts an engine with so many workers, one of which has been quick, so that
// the next claim prefetches jobs. It is paused.
func (r *rig) startPrefetching(workers int) *faulty {
	r.Helper()
	f := &faulty{Store: r.store}
	r.startPrefetchingOn(slowFaulty{f, 10 * time.Millisecond}, workers)
	return f
}

// startPrefetchingOn does so on a store whose commits take long.
func (r *rig) startPrefetchingOn(s engine.Store, workers int) {
	r.Helper()
	e := r.start(func(o *options) {
		o.Store, o.Workers = s, func(string) int { return workers }
	})
	synctest.Wait()
	r.beQuick(1)
	e.Pause()
	synctest.Wait()
}

// beQuick runs so many jobs that take a millisecond, one after the other.
func (r *rig) beQuick(n int) {
	r.Helper()
	r.on("quick", func(context.Context, job.Job) error { time.Sleep(time.Millisecond); return nil })
	for range n {
		r.enqueue(ofType("quick"))
		time.Sleep(100 * time.Millisecond)
	}
	synctest.Wait()
}

// claimAndPrefetch lets the engine claim two jobs for one free worker, and wants the second to
// be prefetched.
func (r *rig) claimAndPrefetch(second string) {
	r.Helper()
	synctest.Wait() // the dispatcher sleeps, and only the end of the pause wakes it
	r.engine.Resume()
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
	if got := r.prefetched(); len(got) != 1 || got[0] != second {
		r.Fatalf("prefetched %q, want %q", got, second)
	}
}

// wantBegun checks that the database knows that a job has begun.
func (r *rig) wantBegun(id string) {
	r.Helper()
	for _, j := range r.leases() {
		if j.ID == id {
			if _, begun := r.engine.Began(j.Token); !begun || j.Unbegun {
				r.Errorf("job %s began: %t, and the database has it as not begun: %t", id, begun, j.Unbegun)
			}
			return
		}
	}
	r.Errorf("job %s has no lease", id)
}

// A prefetched job is given back in time, also when nothing happens after its claim.
func TestPrefetch_IsGivenBackAlthoughNothingElseHappens(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("long", untilTold)
		r.startPrefetching(1)
		ids := r.enqueue(ofType("long"), ofType("long"))
		r.claimAndPrefetch(ids[1])
		time.Sleep(2 * time.Second)
		r.want(ids[0], "active", 0)
		r.want(ids[1], "available", 0)
	})
}

// That a job has begun is written although the exchange that was to say so failed.
func TestBegan_SurvivesAnExchangeThatFails(t *testing.T) {
	bubble(t, func(r *rig) {
		gate := make(chan struct{})
		r.on("gated", func(context.Context, job.Job) error { <-gate; return nil })
		r.on("long", untilTold)
		f := r.startPrefetching(1)
		ids := r.enqueue(once("gated"), ofType("long"))
		r.claimAndPrefetch(ids[1])
		f.refuse(fault.ErrBusy)
		close(gate) // the second job begins, and the first is to be settled
		time.Sleep(5 * time.Second)
		f.err.Store(nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.want(ids[0], "completed", 1)
		r.wantBegun(ids[1])
	})
}

// That a job has begun is written also when the job had to wait for the handler of an earlier
// execution.
func TestBegan_IsWrittenOfAJobThatWaited(t *testing.T) {
	bubble(t, func(r *rig) {
		gate, stuck := make(chan struct{}), make(chan struct{})
		r.on("gated", func(context.Context, job.Job) error { <-gate; return nil })
		r.on("long", func(ctx context.Context, j job.Job) error {
			if j.Execution == 1 {
				<-stuck // whatever becomes of the context
				return nil
			}
			return untilTold(ctx, j)
		})

		// The first execution is given up, and its handler goes on.
		r.startPrefetching(2)
		r.engine.Resume()
		long := ofType("long")
		long.Timeout = time.Second
		long.Policy = steady(func(p *retry.Policy) { p.InitialInterval = time.Minute })
		id := r.enqueue(long)[0]
		time.Sleep(10 * time.Second)
		r.want(id, "retryable", 1)
		r.beQuick(50)

		// The second is prefetched, and finds that it has to wait.
		r.engine.Pause()
		time.Sleep(time.Minute)
		gated := ofType("gated")
		gated.Priority = 5
		r.enqueue(gated)
		r.claimAndPrefetch(id)
		close(gate)
		time.Sleep(100 * time.Millisecond)
		if _, _, waits := r.engine.Waiting(id); !waits {
			t.Fatal("the job does not wait")
		}

		close(stuck)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		r.wantBegun(id)
	})
}

// finicky is a store that refuses to write that jobs have begun, while refuses is set.
type finicky struct {
	slowFaulty
	refuses atomic.Bool
	refused atomic.Int64
}

func (s *finicky) Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) ([]job.Job, []job.Token, error) {
	if s.refuses.Load() && len(claim.Began) > 0 {
		time.Sleep(s.commit) // a refusal takes time as well, or an engine that does not pause would never end
		s.refused.Add(1)
		return nil, nil, errors.New("injected: this cannot be written")
	}
	return s.slowFaulty.Exchange(ctx, settle, claim)
}

// A database that refuses to write that a job has begun is asked again, after pauses.
func TestBegan_IsTriedAgainAfterARefusal(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("long", untilTold)
		s := &finicky{slowFaulty: slowFaulty{&faulty{Store: r.store}, 10 * time.Millisecond}}
		r.startPrefetchingOn(s, 1)
		ids := r.enqueue(ofType("long"), ofType("long"))
		r.claimAndPrefetch(ids[1])
		s.refuses.Store(true)
		r.cancel(ids[0]) // its worker takes the second
		time.Sleep(30 * time.Second)
		if n := s.refused.Load(); n < 3 || n > 6 {
			t.Errorf("it was tried %d times in half a minute", n)
		}
		s.refuses.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		r.wantBegun(ids[1])
	})
}

// Other jobs run meanwhile: what the database refuses holds up no claim and no outcome.
func TestBegan_ThatIsRefusedHoldsUpNoOtherJob(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("long", untilTold)
		s := &finicky{slowFaulty: slowFaulty{&faulty{Store: r.store}, 10 * time.Millisecond}}
		r.startPrefetchingOn(s, 1)
		ids := r.enqueue(ofType("long"), ofType("long"))
		r.claimAndPrefetch(ids[1])
		s.refuses.Store(true)
		r.cancel(ids[0]) // its worker takes the second

		var others []string
		for range 60 {
			beside := ofType("quick")
			beside.Queue = "beside"
			others = append(others, r.enqueue(beside, beside)...)
			time.Sleep(500 * time.Millisecond)
		}
		synctest.Wait()
		if n := s.refused.Load(); n < 3 || n > 8 {
			t.Errorf("it was tried %d times in half a minute", n)
		}
		for _, id := range others {
			r.want(id, "completed", 1)
		}

		s.refuses.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		r.wantBegun(ids[1])
	})
}

// An outage ends when the database is well again, also when nothing was to be written but that
// a job has begun.
func TestOutage_EndsAlthoughOnlyABeginningWasToBeWritten(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("long", untilTold)
		f := r.startPrefetching(1)
		ids := r.enqueue(ofType("long"), ofType("long"))
		r.claimAndPrefetch(ids[1])
		f.refuse(fault.ErrBusy)
		r.cancel(ids[0]) // its worker takes the second, and there is nothing to settle
		time.Sleep(5 * time.Second)
		if _, ok := r.engine.OpenBreaker(); !ok {
			t.Fatal("the database refuses, and there is no outage")
		}
		f.err.Store(nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if why, ok := r.engine.OpenBreaker(); ok {
			t.Errorf("there is an outage still: %+v", why)
		}
		r.wantBegun(ids[1])
	})
}

// An outage ends when the database is well again, also when there is nothing left to ask for.
func TestOutage_EndsAlthoughNothingIsToBeDone(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("long", untilTold)
		f := r.startPrefetching(1)
		r.enqueue(ofType("long"))
		f.refuse(fault.ErrBusy)
		r.engine.Resume()
		time.Sleep(5 * time.Second)
		if _, ok := r.engine.OpenBreaker(); !ok {
			t.Fatal("the database refuses, and there is no outage")
		}
		r.engine.Pause()
		f.err.Store(nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if why, ok := r.engine.OpenBreaker(); ok {
			t.Errorf("there is an outage still: %+v", why)
		}
	})
}
