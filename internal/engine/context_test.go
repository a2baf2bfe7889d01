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
