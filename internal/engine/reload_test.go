package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
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
		e.Reloaded(r.Context())
		synctest.Wait()
		for _, id := range ids {
			r.want(id, "completed", 1)
		}
	})
}

// While another program keeps the database busy, no job can be freed: the engine does so
// afterwards, without another reload.
func TestReloaded_FreesJobsLaterWhenTheDatabaseIsBusy(t *testing.T) {
	bubble(t, func(r *rig) {
		var log bytes.Buffer
		other := lockDatabase(r)
		e := r.start(func(o *options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		id := r.enqueue(ofType("mystery"))[0]
		synctest.Wait()
		other.lock()
		r.on("mystery", succeed)
		e.Reloaded(r.Context())
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want(id, job.StatusHeld, 0)
		if n := strings.Count(log.String(), "The jobs that waited for a handler could not be freed. Redrive will try again."); n != 1 {
			t.Errorf("%d warnings, want 1:\n%s", n, log.String())
		}
		other.unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want(id, "completed", 1)
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
			e.Reloaded(r.Context())
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
