package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/engine"
	"redrive/internal/job"
)

func TestEngine_ClaimsNothingWhileItIsPaused(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("ok", succeed)
		r.on("slow", func(context.Context, job.Job) error { time.Sleep(time.Minute); return nil })
		r.on("bad", fails(failure("x")))
		e := r.start()
		slow, bad := r.enqueue(ofType("slow"))[0], r.enqueue(ofType("bad"))[0]
		synctest.Wait()
		e.Pause()
		waits := r.enqueue(ofType("ok"))[0]
		later := ofType("ok")
		later.RunAt = time.Now().Add(time.Second)
		due := r.enqueue(later)[0]
		time.Sleep(time.Hour)
		synctest.Wait()
		r.want(slow, "completed", 1) // what ran went on
		r.want(bad, "retryable", 1)
		r.want(waits, "available", 0)
		r.want(due, "scheduled", 0)
		e.Resume()
		synctest.Wait()
		r.want(waits, "completed", 1)
		r.want(due, "completed", 1)
		r.want(bad, "retryable", 2)
	})
}

func TestEngine_StopsWhileItIsPaused(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("ok", succeed)
		e := r.start()
		e.Pause()
		id := r.enqueue(ofType("ok"))[0]
		synctest.Wait()
		if err := e.Stop(r.Context()); err != nil {
			t.Error(err)
		}
		r.want(id, "available", 0)
	})
}

func TestEngine_ListsHandlersThatDoNotReturn(t *testing.T) {
	bubble(t, func(r *rig) {
		release := make(chan struct{})
		r.on("deaf", func(context.Context, job.Job) error { <-release; return nil })
		r.on("ok", untilTold)
		e := r.start(func(o *engine.Options) { o.Timeout = time.Minute })
		deaf := r.enqueue(ofType("deaf"), ofType("ok"))[0]
		if n := len(e.Stuck()); n != 0 {
			t.Errorf("%d handlers are stuck at the beginning", n)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		stuck := e.Stuck()
		if len(stuck) != 1 || stuck[0].Job.ID != deaf || stuck[0].Since.IsZero() || stuck[0].Since.After(time.Now()) {
			t.Errorf("stuck are %+v, want %s only", stuck, deaf)
		}
		close(release)
		synctest.Wait()
		if n := len(e.Stuck()); n != 0 {
			t.Errorf("%d handlers are stuck after it returned", n)
		}
	})
}
