package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/job"
	"redrive/internal/store/databasetest"
	"redrive/internal/wire"
)

// orphan claims one job for a worker that will never settle it.
func (r *rig) orphan(worker string, lease time.Duration) job.Job {
	r.Helper()
	claimed, _, err := r.store.Exchange(r.Context(), nil, job.Claim{
		Worker: worker, Now: time.Now(), Lease: lease, Free: map[string]int{"default": 1},
	})
	if err != nil || len(claimed) != 1 {
		r.Fatalf("claimed %d jobs, %v", len(claimed), err)
	}
	return claimed[0]
}

// seize takes the lease of a running job away, as a process does that takes it
// for dead. The job is retried an hour later.
func (r *rig) seize(id string) {
	r.Helper()
	lost := r.detail(id).Job.Settle(job.Ending{Outcome: job.Lost, FinishedAt: time.Now()}, nil)
	lost.RunAt = time.Now().Add(time.Hour)
	if _, stale, err := r.store.Exchange(r.Context(), []job.Settlement{lost}, job.Claim{}); err != nil || len(stale) > 0 {
		r.Fatal(stale, err)
	}
}

// The process died in the middle of a job. The next one takes it back at once,
// and counts the delay from the last sign of life.
func TestEngine_ReclaimsTheLeasesOfADeadProcessAtStart(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("ok", succeed)
		j := ofType("ok")
		j.Policy.InitialInterval = time.Minute
		id := r.enqueue(j)[0]
		seen := time.Now()
		r.orphan("dead", time.Hour)
		time.Sleep(20 * time.Second)
		r.start()
		a := r.want(id, "retryable", 1)[0]
		if a.Outcome != job.Lost || a.Error.Type != "lost" || a.Worker != "dead" {
			t.Errorf("attempt = %+v", a)
		}
		for _, part := range []string{"worker dead", wire.FormatTime(seen), wire.FormatTime(seen.Add(time.Hour))} {
			if !strings.Contains(a.Error.Message, part) {
				t.Errorf("message %q lacks %q", a.Error.Message, part)
			}
		}
		if got := r.detail(id).Job.RunAt; !got.Equal(seen.Add(time.Minute)) {
			t.Errorf("runs again at %v, want a minute after the last sign of life", got)
		}
		time.Sleep(40 * time.Second)
		synctest.Wait()
		r.want(id, "completed", 2)
	})
}

func TestEngine_StartSettlesManyOrphansInBatches(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("ok", succeed)
		r.enqueue(repeat(ofType("ok"), 1203)...)
		claim := job.Claim{Worker: "dead", Now: time.Now(), Lease: time.Hour, Free: map[string]int{"default": 1203}}
		if _, _, err := r.store.Exchange(r.Context(), nil, claim); err != nil {
			t.Fatal(err)
		}
		r.start()
		if got := r.store.Snapshot(); got.Totals.Failed != 1203 || got.Depths["active"] != 0 {
			t.Errorf("after the start %+v", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := r.store.Snapshot().Totals; got.Succeeded != 1203 {
			t.Errorf("in the end %+v", got)
		}
	})
}

func TestEngine_HeartbeatsKeepALongJob(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("long", func(context.Context, job.Job) error { time.Sleep(10 * time.Minute); return nil })
		r.start(func(o *options) { o.Lease = 30 * time.Second })
		j := ofType("long")
		j.Timeout = time.Hour
		id := r.enqueue(j)[0]
		time.Sleep(9*time.Minute + 55*time.Second)
		got := r.detail(id).Job
		if got.State != job.Active || got.LeaseUntil.Before(time.Now()) || time.Since(got.LastSeen) > 10*time.Second {
			t.Errorf("after ten minutes: %s, lease until %v, last seen %v", got.State, got.LeaseUntil, got.LastSeen)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if attempts := r.want(id, "completed", 1); len(attempts) != 1 {
			t.Errorf("attempts: %+v", attempts)
		}
	})
}

func TestEngine_ReapsALeaseThatRunsOut(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("ok", succeed)
		r.start()
		r.engine.Pause() // the other worker is quicker
		id := r.enqueue(ofType("ok"))[0]
		r.orphan("w2", 20*time.Second)
		r.engine.Resume()
		time.Sleep(19 * time.Second)
		r.want(id, "active", 0)
		time.Sleep(12 * time.Second) // the next look, and the retry's second
		synctest.Wait()
		attempts := r.want(id, "completed", 2)
		if attempts[0].Outcome != job.Lost || !strings.Contains(attempts[0].Error.Message, "ran out at") {
			t.Errorf("first attempt = %+v", attempts[0])
		}
	})
}

// When a lease was taken away, its handler is stopped at the next heartbeat, and
// what the handler returns changes nothing.
func TestEngine_StopsAJobWhoseLeaseWasLost(t *testing.T) {
	bubble(t, func(r *rig) {
		stopped := false
		r.on("long", func(ctx context.Context, _ job.Job) error { <-ctx.Done(); stopped = true; return nil })
		r.start()
		id := r.enqueue(ofType("long"))[0]
		synctest.Wait()
		r.seize(id)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if attempts := r.want(id, "retryable", 1); !stopped || len(attempts) != 1 {
			t.Errorf("stopped: %v, attempts %+v", stopped, attempts)
		}
	})
}

// The machine slept: all leases ran out at once. Those of the living come
// first, so that only the dead are reaped.
func TestEngine_SparesItsOwnJobsAfterASleep(t *testing.T) {
	bubble(t, func(r *rig) {
		db := lockDatabase(r)
		r.on("long", func(context.Context, job.Job) error { time.Sleep(5 * time.Minute); return nil })
		j := ofType("long")
		j.Timeout = time.Hour
		r.start()
		id := r.enqueue(j)[0]
		synctest.Wait()
		db.lock()
		time.Sleep(2 * time.Minute) // no heartbeat gets through: the lease has long run out
		db.unlock()
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if attempts := r.want(id, "completed", 1); len(attempts) != 1 {
			t.Errorf("attempts: %+v", attempts)
		}
	})
}

func TestEngine_TwoProcessesInTurnLoseNothing(t *testing.T) {
	path := databasetest.New(t)
	var id string
	synctest.Test(t, func(t *testing.T) {
		r := newRigAt(t, path)
		id = r.enqueue(ofType("ok"))[0]
		r.orphan("first", time.Hour)
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRigAt(t, path)
		r.on("ok", succeed)
		r.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want(id, "completed", 2)
	})
}

func repeat(j job.Job, n int) []job.Job {
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = j
	}
	return jobs
}
