package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/fault"
	"redrive/internal/job"
)

func TestEngine_StopWaitsForDeliveries(t *testing.T) {
	bubble(t, func(r *rig) { // the grace is ten seconds
		r.on("bad", fails(failure("x")))
		ids := r.enqueue(once("bad"), once("bad"))
		r.orphan("dead", time.Hour)
		e := r.start(func(o *options) { o.Deliver = after(5 * time.Second) })
		synctest.Wait()
		begin := time.Now()
		if err := e.Stop(r.Context()); err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("Stop = %v after %v", err, time.Since(begin))
		}
		for _, id := range ids {
			r.want(id, "dead_letter", 1)
		}
	})
}

// What a stop cuts short is settled as what it was, and kept for a person.
func TestEngine_StopRefusesWhatCouldNotBeDelivered(t *testing.T) {
	listens := func(ctx context.Context, _ job.Job, _ job.DeadLetter) job.Delivery {
		<-ctx.Done()
		return job.Delivery{Problem: context.Cause(ctx).Error()}
	}
	tests := []struct {
		name    string
		deliver func(context.Context, job.Job, job.DeadLetter) job.Delivery
		took    time.Duration
		problem string
	}{
		{"a delivery that listens", listens, 10 * time.Second, "the engine is stopping"},
		{"a delivery that does not", after(time.Hour), 12 * time.Second, "the engine stopped before"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.on("bad", fails(failure("x")))
				ids := r.enqueue(once("bad"), once("bad"))
				r.orphan("dead", time.Hour)
				e := r.start(func(o *options) { o.Deliver, o.DeliverWithin = test.deliver, time.Hour })
				synctest.Wait()
				begin := time.Now()
				if err := e.Stop(r.Context()); err != nil || time.Since(begin) != test.took {
					t.Errorf("Stop = %v after %v, want after %v", err, time.Since(begin), test.took)
				}
				lost, failed := r.want(ids[0], "dlq_failed", 1), r.want(ids[1], "dlq_failed", 1)
				if lost[0].Outcome != job.Lost || failed[0].Error.Type != "x" {
					t.Errorf("attempts: %+v, %+v", lost, failed)
				}
				for _, s := range r.settled {
					if !strings.Contains(s.Problem, test.problem) {
						t.Errorf("problem = %q", s.Problem)
					}
				}
				time.Sleep(time.Hour) // let the deaf one go
			})
		})
	}
}

// slowUnhold holds back the last step of the taking over.
type slowUnhold struct {
	*faulty
	answer chan struct{}
}

func (s *slowUnhold) Unhold(ctx context.Context, knows func(string) bool) (int, error) {
	<-s.answer
	return s.Store.Unhold(ctx, knows)
}

// An execution that is found lost when a stop has ended all deliveries is
// settled as well: its dead letter is refused where it would have to be sent, and
// only there.
func TestEngine_SendsNothingAfterTheEndOfDeliveries(t *testing.T) {
	tests := []struct {
		name   string
		keeps  bool
		status job.Status
	}{
		{"a queue that sends its letters", false, "dlq_failed"},
		{"a queue that keeps its letters", true, "dead_letter"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(r *rig) { // the grace is ten seconds
				id := r.enqueue(once("ok"))[0]
				r.orphan("dead", time.Hour)
				s := &slowUnhold{&faulty{Store: r.store}, make(chan struct{})}
				s.refuse(fault.ErrStorageFull)
				var sent atomic.Int64
				e := r.start(func(o *options) {
					o.Store, o.Deliver = s, counts(&sent, 0)
					o.Kept = func(string) (job.Delivery, bool) { return job.Delivery{}, test.keeps }
				})
				s.err.Store(nil)
				time.Sleep(time.Second) // the dispatcher takes over by now
				time.AfterFunc(20*time.Second, func() { close(s.answer) })
				if err := e.Stop(r.Context()); err != nil {
					t.Errorf("Stop: %v", err)
				}
				if a := r.want(id, test.status, 1); len(a) != 1 || a[0].Outcome != job.Lost || sent.Load() != 0 {
					t.Errorf("sent %d letters, attempts: %+v", sent.Load(), a)
				}
			})
		})
	}
}

// The dead letters of a queue that keeps them are not delivered, and not refused when a
// stop is in a hurry.
func TestEngine_DeliversNothingWhereDeadLettersAreKept(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("bad", fails(failure("x")))
		var sent atomic.Int64
		e := r.start(func(o *options) {
			o.Deliver = counts(&sent, time.Hour)
			o.Kept = func(queue string) (job.Delivery, bool) {
				return job.InDeadLetters(queue, queue == "default"), true
			}
		})
		off := once("bad")
		off.Queue = "off"
		ids := r.enqueue(once("bad"), off)
		synctest.Wait()
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		if err := e.Stop(ctx); err != nil || sent.Load() != 0 {
			t.Errorf("Stop = %v, sent %d letters", err, sent.Load())
		}
		r.want(ids[0], "dead_letter", 1)
		r.want(ids[1], "dlq_failed", 1)
	})
}

func TestEngine_AHurriedStopLeavesNoDeliveryBehind(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("bad", fails(failure("x")))
		r.enqueue(once("bad"))
		r.orphan("dead", time.Hour)
		var under atomic.Int64
		e := r.start(func(o *options) {
			o.Deliver = func(ctx context.Context, j job.Job, l job.DeadLetter) job.Delivery {
				under.Add(1)
				defer under.Add(-1)
				return hangs(ctx, j, l)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		if err := e.Stop(ctx); err != nil || under.Load() != 0 {
			t.Errorf("Stop = %v, %d deliveries under way", err, under.Load())
		}
	})
}
