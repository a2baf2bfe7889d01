package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/job"
)

func TestReloaded_FreesJobsThatWaitedForTheirHandler(t *testing.T) {
	bubble(t, func(r *rig) {
		e := r.start()
		ids := r.enqueue(repeat(ofType("mystery"), 20)...)
		synctest.Wait()
		r.want(ids[19], job.StatusHeld, 0)
		r.on("mystery", succeed)
		if err := e.Reloaded(r.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, id := range ids {
			r.want(id, "completed", 1)
		}
	})
}

// More workers start at once what waits; fewer let what runs end, and then no more
// run than there are, however much is waiting.
func TestReloaded_ChangesHowManyJobsRun(t *testing.T) {
	bubble(t, func(r *rig) {
		var workers, running atomic.Int64
		workers.Store(2)
		r.on("slow", func(context.Context, job.Job) error {
			running.Add(1)
			defer running.Add(-1)
			time.Sleep(time.Second)
			return nil
		})
		e := r.start(func(o *options) { o.Workers = func(string) int { return int(workers.Load()) } })
		r.enqueue(repeat(ofType("slow"), 100)...)
		runs := func(want int64) {
			t.Helper()
			synctest.Wait()
			if n := running.Load(); n != want {
				t.Errorf("%d jobs run, want %d", n, want)
			}
		}
		reload := func(n int64) {
			workers.Store(n)
			if err := e.Reloaded(r.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5500 * time.Millisecond)
		runs(2)
		reload(6)
		runs(6)
		time.Sleep(5 * time.Second)
		runs(6)
		reload(3)
		runs(6) // nothing is interrupted
		for range 10 {
			time.Sleep(time.Second)
			runs(3)
		}
	})
}
