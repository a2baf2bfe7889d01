package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/job"
)

// A handler's context has the deadline of the ttr and says, as one of the
// library does, that it passed; contexts made from it end with it.
func TestEngine_AHandlersContextEndsAtItsDeadline(t *testing.T) {
	bubble(t, func(r *rig) {
		var deadline time.Time
		var own, derived, cause error
		r.on("slow", func(ctx context.Context, _ job.Job) error {
			deadline, _ = ctx.Deadline()
			below, cancel := context.WithCancel(ctx)
			defer cancel()
			if ctx.Err() != nil || below.Err() != nil {
				return errors.New("it ended before it began")
			}
			<-below.Done()
			own, derived, cause = ctx.Err(), below.Err(), context.Cause(below)
			return derived
		})
		r.start()
		j := once("slow")
		j.Timeout = 3 * time.Second
		begin := time.Now()
		id := r.enqueue(j)[0]
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if deadline.Sub(begin) != 3*time.Second || !errors.Is(own, context.DeadlineExceeded) || derived == nil || cause == nil || errors.Is(cause, derived) {
			t.Errorf("deadline after %v; it ended by %v, one below it by %v, because %v", deadline.Sub(begin), own, derived, cause)
		}
		if a := r.want(id, "dead_letter", 1)[0]; a.Outcome != job.TimedOut || a.Error.Message != "ran longer than its ttr, 3s" {
			t.Errorf("attempt = %+v", a)
		}
	})
}

// One clock ends the contexts of all handlers, each at its own deadline, in whatever
// order they began, and also while the dispatcher waits for a disk that stands still.
func TestEngine_EachContextEndsAtItsOwnDeadline(t *testing.T) {
	bubble(t, func(r *rig) {
		m := &mute{faulty: &faulty{Store: r.store}}
		late := make(chan time.Duration, 10)
		r.on("quick", succeed)
		r.on("slow", func(ctx context.Context, _ job.Job) error {
			deadline, _ := ctx.Deadline()
			<-ctx.Done()
			late <- time.Since(deadline)
			return ctx.Err()
		})
		r.start(func(o *options) { o.Store = m })
		quick := once("quick")
		quick.Timeout = time.Second
		var ids []string
		for _, ttr := range []int{20, 5, 10, 5, 40} {
			slow := once("slow")
			slow.Timeout = time.Duration(ttr) * time.Second
			ids = append(ids, r.enqueue(slow, quick)[0])
			time.Sleep(2 * time.Second)
		}
		gate := make(chan struct{})
		m.gate.Store(&gate)
		r.enqueue(quick) // its outcome is what the dispatcher cannot write
		time.Sleep(time.Minute)
		for range ids {
			select {
			case d := <-late:
				if d != 0 {
					t.Errorf("a context ended %v after its deadline", d)
				}
			default:
				t.Error("a context has not ended")
			}
		}
		close(gate)
		synctest.Wait()
		for _, id := range ids {
			if a := r.want(id, "dead_letter", 1)[0]; a.Outcome != job.TimedOut {
				t.Errorf("attempt = %+v", a)
			}
		}
	})
}
