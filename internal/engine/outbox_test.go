package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// testOutbox is an outbox whose outcomes are collected.
type testOutbox struct {
	*outbox
	idle atomic.Int64 // how often it was so
	mu   sync.Mutex
	out  []outcome
}

// withOutbox runs a test in a synctest bubble.
func withOutbox(t *testing.T, send sendFunc, test func(t *testing.T, r *testOutbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &testOutbox{}
		r.outbox = newOutbox(send, time.Minute, func(o outcome) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.out = append(r.out, o)
		}, func() { r.idle.Add(1) })
		test(t, r)
		r.interrupt(errStopping)
		r.senders.Wait()
	})
}

// deadLetter is an outcome whose dead letter is to be sent.
func deadLetter(id string) outcome {
	p := retry.Default()
	p.MaxAttempts = 1
	j := job.Job{Token: job.Token{ID: id, Run: 1, Execution: 1}, Queue: "mail", Type: "mail.send", Policy: p, Attempts: 1}
	end := job.Ending{Outcome: job.Failed, FinishedAt: time.Now(), Error: job.ErrorInfo{Type: "x", Message: "no luck"}}
	return outcome{job: &j, settlement: j.Settle(end, func() float64 { return 0 }), sends: true}
}

// want checks how many outcomes have come out, and what is said of the last.
func (r *testOutbox) want(t *testing.T, n int, letter job.DeadLetterState, problem string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.out) != n {
		t.Fatalf("%d outcomes came out, want %d", len(r.out), n)
	}
	if n == 0 {
		return
	}
	if got := r.out[n-1]; got.sends || got.settlement.DeadLetter != letter || got.settlement.Problem != problem {
		t.Errorf("the last one has the letter %v, problem %q, sends %t; want %v, %q",
			got.settlement.DeadLetter, got.settlement.Problem, got.sends, letter, problem)
	}
}

// slowly accepts letters after a time, whatever becomes of the context.
func slowly(d time.Duration) sendFunc {
	return func(context.Context, job.Job, job.DeadLetter) job.Delivery {
		time.Sleep(d)
		return job.Delivery{}
	}
}

// hears refuses letters when the context ends, and says why.
func hears(ctx context.Context, _ job.Job, _ job.DeadLetter) job.Delivery {
	<-ctx.Done()
	return job.Delivery{Problem: context.Cause(ctx).Error()}
}

func TestOutbox_PassesOnWhatSendsNothing(t *testing.T) {
	withOutbox(t, nil, func(t *testing.T, r *testOutbox) {
		plain := deadLetter("a").delivered(job.Delivery{Problem: "off"})
		r.post(plain)
		r.want(t, 1, job.DeadLetterRefused, "off")
		r.deliver(plain)
		r.want(t, 2, job.DeadLetterRefused, "off")
		r.postLater(func() outcome { return plain })
		r.want(t, 3, job.DeadLetterRefused, "off")
	})
}

func TestOutbox_DeliversWhileTheCallerWaits(t *testing.T) {
	withOutbox(t, slowly(time.Second), func(t *testing.T, r *testOutbox) {
		begin := time.Now()
		r.deliver(deadLetter("a"))
		if took := time.Since(begin); took != time.Second || !r.empty() {
			t.Errorf("took %v, empty %t", took, r.empty())
		}
		r.want(t, 1, job.DeadLetterStored, "")
	})
}

func TestOutbox_PostsWithoutKeepingTheCaller(t *testing.T) {
	withOutbox(t, slowly(time.Second), func(t *testing.T, r *testOutbox) {
		begin := time.Now()
		r.post(deadLetter("a"))
		r.postLater(func() outcome { time.Sleep(time.Second); return deadLetter("b") })
		if took := time.Since(begin); took != 0 || r.empty() {
			t.Errorf("took %v, empty %t", took, r.empty())
		}
		r.want(t, 0, job.NoDeadLetter, "")
		time.Sleep(time.Second)
		r.want(t, 1, job.DeadLetterStored, "")
		if r.empty() || r.idle.Load() != 0 {
			t.Errorf("one is still to be decided: empty %t, idle %d times", r.empty(), r.idle.Load())
		}
		time.Sleep(time.Second)
		r.want(t, 2, job.DeadLetterStored, "")
		if !r.empty() || r.idle.Load() != 1 {
			t.Errorf("in the end: empty %t, idle %d times", r.empty(), r.idle.Load())
		}
	})
}

func TestOutbox_BoundsTheTimeOfADelivery(t *testing.T) {
	withOutbox(t, hears, func(t *testing.T, r *testOutbox) {
		begin := time.Now()
		r.deliver(deadLetter("a"))
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("took %v", took)
		}
		r.want(t, 1, job.DeadLetterRefused, errBudget.Error())
	})
}

func TestOutbox_SendsABoundedNumberAtOnce(t *testing.T) {
	withOutbox(t, slowly(time.Second), func(t *testing.T, r *testOutbox) {
		for i := range 2*senders + 1 {
			r.post(deadLetter(fmt.Sprint(i)))
		}
		time.Sleep(time.Second)
		r.want(t, senders, job.DeadLetterStored, "")
		time.Sleep(time.Second)
		r.want(t, 2*senders, job.DeadLetterStored, "")
		time.Sleep(time.Second)
		r.want(t, 2*senders+1, job.DeadLetterStored, "")
	})
}

// An interruption reaches also the letters that wait for their turn.
func TestOutbox_AnInterruptionEndsAllDeliveries(t *testing.T) {
	withOutbox(t, hears, func(t *testing.T, r *testOutbox) {
		for i := range 2 * senders {
			r.post(deadLetter(fmt.Sprint(i)))
		}
		r.want(t, 0, job.NoDeadLetter, "")
		r.interrupt(errStopping)
		r.want(t, 2*senders, job.DeadLetterRefused, errStopping.Error())
	})
}

// What is closed refuses what it has, those that wait for their turn included;
// an answer that comes later changes nothing.
func TestOutbox_CloseRefusesTheRestOnce(t *testing.T) {
	withOutbox(t, slowly(time.Hour), func(t *testing.T, r *testOutbox) {
		for i := range senders + 1 {
			r.post(deadLetter(fmt.Sprint(i)))
		}
		synctest.Wait()
		r.close()
		r.want(t, senders+1, job.DeadLetterRefused, undelivered().Problem)
		time.Sleep(3 * time.Hour)
		r.want(t, senders+1, job.DeadLetterRefused, undelivered().Problem)
		var ids []string
		for _, o := range r.out {
			ids = append(ids, o.job.ID)
		}
		if slices.Sort(ids); len(slices.Compact(ids)) != senders+1 {
			t.Errorf("not each of them once: %v", ids)
		}
	})
}

// A closed outbox refuses before the call returns: no one would wait for it later.
func TestOutbox_AfterCloseNothingIsSent(t *testing.T) {
	never := func(context.Context, job.Job, job.DeadLetter) job.Delivery { panic("sent") }
	withOutbox(t, never, func(t *testing.T, r *testOutbox) {
		r.close()
		r.post(deadLetter("a"))
		r.deliver(deadLetter("b"))
		if len(r.out) != 2 {
			t.Errorf("%d outcomes came out at once", len(r.out))
		}
		r.want(t, 2, job.DeadLetterRefused, undelivered().Problem)
		r.postLater(func() outcome { return deadLetter("c") })
		r.want(t, 3, job.DeadLetterRefused, undelivered().Problem)
	})
}
