package outcome

import (
	"context"
	"errors"
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

// errStop is why a test interrupts deliveries.
var errStop = errors.New("the test ends")

// testOutbox is an outbox whose outcomes are collected.
type testOutbox struct {
	*Outbox
	idle atomic.Int64 // how often it was so
	mu   sync.Mutex
	out  []Outcome
}

// withOutbox runs a test in a synctest bubble.
func withOutbox(t *testing.T, send Send, test func(t *testing.T, r *testOutbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &testOutbox{}
		r.Outbox = NewOutbox(send, time.Minute, Events{
			Done: func(o Outcome) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.out = append(r.out, o)
			},
			Idle: func() { r.idle.Add(1) },
		})
		test(t, r)
		r.Interrupt(errStop)
		r.Wait()
	})
}

// deadLetter is an outcome whose dead letter is to be sent.
func deadLetter(id string) Outcome {
	p := retry.Default()
	p.MaxAttempts = 1
	j := job.Job{Token: job.Token{ID: id, Run: 1, Execution: 1}, Queue: "mail", Type: "mail.send", Policy: p, Attempts: 1}
	end := job.Ending{Outcome: job.Failed, FinishedAt: time.Now(), Error: job.ErrorInfo{Type: "x", Message: "no luck"}}
	return Outcome{Job: &j, Settlement: j.Settle(end, func() float64 { return 0 }), Sends: true}
}

// want checks how many outcomes have come out, and how the last one was delivered.
func (r *testOutbox) want(t *testing.T, n int, deadLetter job.DeadLetterState, problem string) {
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
	if got := r.out[n-1]; got.Sends || got.Settlement.DeadLetter != deadLetter || got.Settlement.Problem != problem {
		t.Errorf("the last one has the letter %v, problem %q, sends %t; want %v, %q",
			got.Settlement.DeadLetter, got.Settlement.Problem, got.Sends, deadLetter, problem)
	}
}

// slowly accepts dead letters after a time, whatever becomes of the context.
func slowly(d time.Duration) Send {
	return func(context.Context, job.Job, job.DeadLetter) job.Delivery {
		time.Sleep(d)
		return job.Delivery{}
	}
}

// untilCancelled refuses dead letters when the context ends, and says why.
func untilCancelled(ctx context.Context, _ job.Job, _ job.DeadLetter) job.Delivery {
	<-ctx.Done()
	return job.Delivery{Problem: context.Cause(ctx).Error()}
}

func TestOutbox_PassesOnWhatSendsNothing(t *testing.T) {
	withOutbox(t, nil, func(t *testing.T, r *testOutbox) {
		plain := deadLetter("a").Delivered(job.Delivery{Problem: "off"})
		r.Post(plain)
		r.want(t, 1, job.DeadLetterRefused, "off")
		r.Deliver(plain)
		r.want(t, 2, job.DeadLetterRefused, "off")
		r.PostLater(func() Outcome { return plain })
		r.want(t, 3, job.DeadLetterRefused, "off")
	})
}

func TestOutbox_DeliversWhileTheCallerWaits(t *testing.T) {
	withOutbox(t, slowly(time.Second), func(t *testing.T, r *testOutbox) {
		begin := time.Now()
		r.Deliver(deadLetter("a"))
		if took := time.Since(begin); took != time.Second || !r.Empty() {
			t.Errorf("took %v, empty %t", took, r.Empty())
		}
		r.want(t, 1, job.DeadLetterStored, "")
	})
}

func TestOutbox_PostsWithoutKeepingTheCaller(t *testing.T) {
	withOutbox(t, slowly(time.Second), func(t *testing.T, r *testOutbox) {
		begin := time.Now()
		r.Post(deadLetter("a"))
		r.PostLater(func() Outcome { time.Sleep(time.Second); return deadLetter("b") })
		if took := time.Since(begin); took != 0 || r.Empty() {
			t.Errorf("took %v, empty %t", took, r.Empty())
		}
		r.want(t, 0, job.NoDeadLetter, "")
		time.Sleep(time.Second)
		r.want(t, 1, job.DeadLetterStored, "")
		if r.Empty() || r.idle.Load() != 0 {
			t.Errorf("one is still to be decided: empty %t, idle %d times", r.Empty(), r.idle.Load())
		}
		time.Sleep(time.Second)
		r.want(t, 2, job.DeadLetterStored, "")
		if !r.Empty() || r.idle.Load() != 1 {
			t.Errorf("in the end: empty %t, idle %d times", r.Empty(), r.idle.Load())
		}
	})
}

func TestOutbox_BoundsTheTimeOfADelivery(t *testing.T) {
	withOutbox(t, untilCancelled, func(t *testing.T, r *testOutbox) {
		begin := time.Now()
		r.Deliver(deadLetter("a"))
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("took %v", took)
		}
		r.want(t, 1, job.DeadLetterRefused, errBudget.Error())
	})
}

func TestOutbox_SendsABoundedNumberAtOnce(t *testing.T) {
	withOutbox(t, slowly(time.Second), func(t *testing.T, r *testOutbox) {
		for i := range 2*senders + 1 {
			r.Post(deadLetter(fmt.Sprint(i)))
		}
		time.Sleep(time.Second)
		r.want(t, senders, job.DeadLetterStored, "")
		time.Sleep(time.Second)
		r.want(t, 2*senders, job.DeadLetterStored, "")
		time.Sleep(time.Second)
		r.want(t, 2*senders+1, job.DeadLetterStored, "")
	})
}

// An interruption reaches also the dead letters that wait for their turn.
func TestOutbox_AnInterruptionEndsAllDeliveries(t *testing.T) {
	withOutbox(t, untilCancelled, func(t *testing.T, r *testOutbox) {
		for i := range 2 * senders {
			r.Post(deadLetter(fmt.Sprint(i)))
		}
		r.want(t, 0, job.NoDeadLetter, "")
		r.Interrupt(errStop)
		r.want(t, 2*senders, job.DeadLetterRefused, errStop.Error())
	})
}

// What is closed refuses what it has, those that wait for their turn included;
// an answer that comes later changes nothing.
func TestOutbox_CloseRefusesTheRestOnce(t *testing.T) {
	withOutbox(t, slowly(time.Hour), func(t *testing.T, r *testOutbox) {
		for i := range senders + 1 {
			r.Post(deadLetter(fmt.Sprint(i)))
		}
		synctest.Wait()
		r.Close()
		r.want(t, senders+1, job.DeadLetterRefused, undelivered().Problem)
		time.Sleep(3 * time.Hour)
		r.want(t, senders+1, job.DeadLetterRefused, undelivered().Problem)
		var ids []string
		for _, o := range r.out {
			ids = append(ids, o.Job.ID)
		}
		if slices.Sort(ids); len(slices.Compact(ids)) != senders+1 {
			t.Errorf("not each of them once: %v", ids)
		}
	})
}

// A closed outbox refuses before the call returns: there is nothing that would wait for it later.
func TestOutbox_AfterCloseNothingIsSent(t *testing.T) {
	never := func(context.Context, job.Job, job.DeadLetter) job.Delivery { panic("sent") }
	withOutbox(t, never, func(t *testing.T, r *testOutbox) {
		r.Close()
		r.Post(deadLetter("a"))
		r.Deliver(deadLetter("b"))
		if len(r.out) != 2 {
			t.Errorf("%d outcomes came out at once", len(r.out))
		}
		r.want(t, 2, job.DeadLetterRefused, undelivered().Problem)
		r.PostLater(func() Outcome { return deadLetter("c") })
		r.want(t, 3, job.DeadLetterRefused, undelivered().Problem)
	})
}
