package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/internal/store"
)

// hangs is a receiver of dead letters that never answers, until a test lets it.
func hangs(ctx context.Context, _ job.Job, _ job.DeadLetter) job.Delivery {
	<-ctx.Done()
	return job.Delivery{Problem: "no answer: " + context.Cause(ctx).Error()}
}

// after is a receiver of dead letters that takes its time.
func after(d time.Duration) func(context.Context, job.Job, job.DeadLetter) job.Delivery {
	return func(context.Context, job.Job, job.DeadLetter) job.Delivery {
		time.Sleep(d)
		return job.Delivery{ForwardedTo: "https://ops.example", ForwardedAt: time.Now()}
	}
}

// counts is a receiver that counts what it gets, and takes its time.
func counts(n *atomic.Int64, took time.Duration) func(context.Context, job.Job, job.DeadLetter) job.Delivery {
	return func(context.Context, job.Job, job.DeadLetter) job.Delivery {
		n.Add(1)
		time.Sleep(took)
		return job.Delivery{}
	}
}

// once is a policy that never retries.
func once(typ string) job.Job {
	j := ofType(typ)
	j.Policy.MaxAttempts = 1
	return j
}

// deaf ignores the end of its context.
func deaf(context.Context, job.Job) error { time.Sleep(time.Hour); return nil }

// However a job ends, a receiver that hangs keeps no other job waiting, and the
// job stays leased until it is known that the dead letter was refused.
func TestEngine_DeliversBesideEverythingElse(t *testing.T) {
	tests := []struct {
		name  string
		setUp func(r *rig, o *options) (id string)
	}{
		{"a handler that fails", func(r *rig, _ *options) string {
			r.on("bad", fails(failure("x")))
			return r.enqueue(once("bad"))[0]
		}},
		{"a handler that is given up", func(r *rig, _ *options) string {
			r.on("bad", deaf)
			j := once("bad")
			j.Timeout = time.Second
			return r.enqueue(j)[0]
		}},
		{"a job of a dead process", func(r *rig, _ *options) string {
			id := r.enqueue(once("bad"))[0]
			r.orphan("dead", time.Hour)
			return id
		}},
		{"a job that no handler knows", func(r *rig, o *options) string {
			o.UnknownType = retry.UnknownDeadLetter
			return r.enqueue(once("bad"))[0]
		}},
		{"a job whose time is over", func(r *rig, _ *options) string {
			r.on("bad", succeed)
			j := once("bad")
			j.ExpiresAt = time.Now()
			return r.enqueue(j)[0]
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(r *rig) { r.deliversBeside(test.setUp) })
		})
	}
}

// deliversBeside starts an engine whose receiver hangs for 100 seconds, and
// follows the job that is set up.
func (r *rig) deliversBeside(setUp func(*rig, *options) (id string)) {
	r.Helper()
	var id string
	begin := time.Now()
	r.start(func(o *options) {
		id = setUp(r, o)
		o.Deliver, o.DeliverWithin = hangs, 100*time.Second
	})
	if took := time.Since(begin); took != 0 {
		r.Errorf("the start took %v", took)
	}
	time.Sleep(10 * time.Second)
	r.on("ok", succeed)
	other := r.enqueue(ofType("ok"))[0]
	synctest.Wait()
	r.want(other, "completed", 1)
	time.Sleep(85 * time.Second) // more than one lease
	if j := r.detail(id).Job; j.State != job.Active || j.LeaseUntil.Before(time.Now()) {
		r.Errorf("meanwhile it is %s, leased until %v", j.State, j.LeaseUntil)
	}
	time.Sleep(10 * time.Second)
	synctest.Wait()
	if a := r.want(id, "dlq_failed", 1); len(a) != 1 {
		r.Errorf("attempts: %+v", a)
	}
	if got := r.settled[len(r.settled)-1].Problem; got != "no answer: there was no time left for its delivery" {
		r.Errorf("problem = %q", got)
	}
	time.Sleep(time.Hour) // let the deaf one go
}

// A receiver that is slow slows down the queue that it receives from: failures
// do not pile up in memory.
func TestEngine_AWorkerDeliversBeforeItTakesMore(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("bad", fails(failure("x")))
		r.start(func(o *options) {
			o.Deliver = after(time.Second)
			o.Workers = func(string) int { return 2 }
		})
		r.enqueue(repeat(once("bad"), 6)...)
		time.Sleep(time.Second + time.Millisecond)
		if got := r.store.Snapshot().Depths; got["dead_letter"] != 2 || got["active"] != 2 || got["available"] != 2 {
			t.Errorf("after one second: %v", got)
		}
		r.enqueue(once("bad")) // the dispatcher looks whether a worker is free
		synctest.Wait()
		if got := r.store.Snapshot().Depths; got["active"] != 2 || got["available"] != 3 {
			t.Errorf("while both workers deliver: %v", got)
		}
	})
}

func TestEngine_DeliversABoundedNumberAtOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("ok", succeed)
		r.enqueue(repeat(once("ok"), 100)...)
		claim := job.Claim{Worker: "dead", Now: time.Now(), Lease: time.Hour, Free: map[string]int{"default": 100}}
		if _, _, err := r.store.Exchange(r.Context(), nil, claim); err != nil {
			t.Fatal(err)
		}
		var now, most atomic.Int64
		r.start(func(o *options) {
			o.Deliver = func(context.Context, job.Job, job.DeadLetter) job.Delivery {
				defer now.Add(-1)
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Second)
				return job.Delivery{}
			}
		})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := r.store.Snapshot(); got.Depths["dead_letter"] != 100 || got.Totals.DLQFailed != 0 {
			t.Errorf("in the end %+v", got)
		}
		if most.Load() > 40 {
			t.Errorf("%d letters were on the way at once", most.Load())
		}
	})
}

// A person can take the job back while its dead letter is on the way.
func TestEngine_ACancelWinsOverADelivery(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("bad", fails(failure("x")))
		r.start(func(o *options) { o.Deliver = after(time.Minute) })
		id := r.enqueue(once("bad"))[0]
		synctest.Wait()
		r.cancel(id)
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want(id, "cancelled", 0)
		if got := r.store.Snapshot().Totals; got != (stats.Totals{}) {
			t.Errorf("totals = %+v", got)
		}
	})
}

// A start that could not write anything sends the dead letters when it can.
func TestEngine_DeliversWhatTheStartCouldNotSettle(t *testing.T) {
	bubble(t, func(r *rig) {
		id := r.enqueue(once("ok"))[0]
		r.orphan("dead", time.Hour)
		f := &faulty{Store: r.store}
		f.refuse(fault.ErrStorageFull)
		var sent atomic.Int64
		r.start(func(o *options) { o.Store, o.Deliver = f, counts(&sent, 0) })
		time.Sleep(time.Minute)
		f.err.Store(nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.want(id, "dead_letter", 1)
		if sent.Load() != 1 {
			t.Errorf("sent %d letters", sent.Load())
		}
	})
}

// busyUnhold refuses the last step of the taking over, once.
type busyUnhold struct {
	*store.Store
	refused atomic.Bool
}

func (b *busyUnhold) Unhold(ctx context.Context, knows func(string) bool) (int, error) {
	if !b.refused.Swap(true) {
		return 0, fault.ErrBusy
	}
	return b.Store.Unhold(ctx, knows)
}

// A start that failed at its last step begins again from the first, and sends
// each dead letter once.
func TestEngine_DeliversOnceAfterHalfAStart(t *testing.T) {
	bubble(t, func(r *rig) {
		id := r.enqueue(once("ok"))[0]
		r.orphan("dead", time.Hour)
		var sent atomic.Int64
		r.start(func(o *options) { o.Store, o.Deliver = &busyUnhold{Store: r.store}, counts(&sent, 10*time.Second) })
		time.Sleep(time.Minute)
		r.want(id, "dead_letter", 1)
		if sent.Load() != 1 {
			t.Errorf("sent %d letters", sent.Load())
		}
	})
}

// While the start is not done, nothing else takes the jobs that the dead process
// left, even when their leases have run out by then.
func TestEngine_DeliversOnceWhenLeasesRanOutMeanwhile(t *testing.T) {
	bubble(t, func(r *rig) {
		id := r.enqueue(once("ok"))[0]
		r.orphan("dead", time.Second)
		f := &faulty{Store: r.store}
		f.refuse(fault.ErrStorageFull)
		var sent atomic.Int64
		r.start(func(o *options) { o.Store, o.Deliver = f, counts(&sent, 10*time.Minute) })
		time.Sleep(time.Minute)
		f.err.Store(nil)
		time.Sleep(20 * time.Minute)
		r.want(id, "dead_letter", 1)
		if sent.Load() != 1 {
			t.Errorf("sent %d letters", sent.Load())
		}
	})
}
