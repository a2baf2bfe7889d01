package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/audit"
	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/internal/shortage"
	"redrive/internal/store"
)

// slowly is a store on a disk whose commits take long.
type slowly struct {
	*store.Store
	commit time.Duration
}

func (s slowly) Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) ([]job.Job, []job.Token, error) {
	time.Sleep(s.commit)
	return s.Store.Exchange(ctx, settle, claim)
}

// startSlowly starts an engine with so many workers whose commits take 10 ms.
func (r *rig) startSlowly(workers int) *engine.Engine {
	return r.start(func(o *options) {
		o.Store, o.Workers = slowly{r.store, 10 * time.Millisecond}, func(string) int { return workers }
	})
}

// prefetched lists the jobs that are, as the database has them.
func (r *rig) prefetched() (ids []string) {
	r.Helper()
	for _, j := range r.leases() {
		if j.Unbegun {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

func (r *rig) leases() []job.Job {
	r.Helper()
	leases, err := r.store.Leases(r.Context(), time.Time{})
	if err != nil {
		r.Fatal(err)
	}
	return leases
}

// For workers that are quicker than a commit the next jobs are prefetched, not many, so that
// they do not wait for the commit.
func TestPrefetch_WorkersDoNotWaitForCommits(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("quick", func(context.Context, job.Job) error { time.Sleep(time.Millisecond); return nil })
		r.enqueue(repeat(ofType("quick"), 200)...)
		begin := time.Now()
		r.startSlowly(2)
		most := 0
		for r.store.Snapshot().Totals.Succeeded < 200 {
			time.Sleep(time.Millisecond)
			most = max(most, int(r.store.Snapshot().Depths[job.Status(job.Active)]))
		}
		if most > 2+2*4*2 {
			t.Errorf("%d jobs were claimed at once", most)
		}
		// With two for each commit it would take a second.
		if took := time.Since(begin); took > 400*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// blocked has two workers that were quick once, so that jobs are prefetched, but do not end
// the jobs that they have now until they are let go.
func blocked(r *rig) (prefetched []string, release func()) {
	r.Helper()
	gate := make(chan struct{})
	var began atomic.Int64
	r.on("quick", func(context.Context, job.Job) error {
		if began.Add(1) > 40 {
			<-gate
		}
		time.Sleep(time.Millisecond)
		return nil
	})
	r.enqueue(repeat(ofType("quick"), 100)...)
	r.startSlowly(2)
	time.Sleep(500 * time.Millisecond)
	if prefetched = r.prefetched(); len(prefetched) == 0 {
		r.Fatal("nothing is prefetched")
	}
	release = sync.OnceFunc(func() { close(gate) })
	r.Cleanup(release)
	return prefetched, release
}

func TestPrefetch_JobsOfAHigherPriorityOvertake(t *testing.T) {
	bubble(t, func(r *rig) {
		prefetched, release := blocked(r)
		var before atomic.Int64 // what was prefetched
		r.on("urgent", func(context.Context, job.Job) error {
			if len(r.prefetched()) >= len(prefetched)-2 {
				before.Add(1)
			}
			return nil
		})
		urgent := ofType("urgent")
		urgent.Priority = 5
		most := urgent
		most.Priority = 9
		r.enqueue(urgent, most)
		time.Sleep(100 * time.Millisecond)
		release()
		time.Sleep(time.Second)
		if before.Load() != 2 {
			t.Errorf("%d of two jobs overtook what was prefetched", before.Load())
		}
		if n := r.store.Snapshot().Totals.Succeeded; n != 102 {
			t.Errorf("%d jobs succeeded", n)
		}
	})
}

// A job that has not begun within a second is given back, unnoticed.
func TestPrefetch_WhatDoesNotBeginIsGivenBack(t *testing.T) {
	bubble(t, func(r *rig) {
		prefetched, _ := blocked(r)
		time.Sleep(2 * time.Second)
		if left := r.prefetched(); len(left) > 0 {
			t.Errorf("%d jobs are still prefetched", len(left))
		}
		for _, id := range prefetched {
			if attempts := r.want(id, "available", 0); len(attempts) != 0 {
				t.Errorf("attempts %+v", attempts)
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, s := range r.settled {
			if s.Attempt.Outcome != job.Succeeded {
				t.Errorf("settled %+v", s)
			}
		}
	})
}

// Pauses and stops act on prefetched jobs at once.
func TestPrefetch_IsGivenBackWhenNothingMayBegin(t *testing.T) {
	ana := audit.Actor{Name: "ana"}
	for name, stop := range map[string]func(r *rig) error{
		"a pause of the queue":  func(r *rig) error { return r.store.Pause(r.Context(), time.Now(), "default", ana) },
		"a pause of the engine": func(r *rig) error { r.engine.Pause(); return nil },
		"a stop":                func(r *rig) error { go r.engine.Stop(r.Context()); synctest.Wait(); return nil },
		"a shortage": func(r *rig) error {
			r.on("starved", fails(&shortage.Error{Of: shortage.Memory}))
			j := once("starved")
			j.Queue = "other"
			r.enqueue(j)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				prefetched, release := blocked(r)
				if err := stop(r); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				done := r.store.Snapshot().Totals.Succeeded
				release()
				time.Sleep(1500 * time.Millisecond)
				if n := r.store.Snapshot().Totals.Succeeded - done; n != 2 {
					t.Errorf("%d jobs ended, want the two that ran", n)
				}
				for _, id := range prefetched {
					if attempts := r.want(id, "available", 0); len(attempts) != 0 {
						t.Errorf("attempts %+v", attempts)
					}
				}
			})
		})
	}
}

func TestPrefetch_ACancelledJobDoesNotBegin(t *testing.T) {
	bubble(t, func(r *rig) {
		prefetched, release := blocked(r)
		r.cancel(prefetched[0])
		release()
		time.Sleep(time.Second)
		r.want(prefetched[0], "cancelled", 0)
		if n := r.store.Snapshot().Totals.Succeeded; n != 99 {
			t.Errorf("%d jobs succeeded", n)
		}
	})
}

// The time to live and the ttr of a prefetched job are looked at when it begins.
func TestPrefetch_ClocksBeginWithTheJob(t *testing.T) {
	bubble(t, func(r *rig) {
		_, release := blocked(r)
		var deadline time.Duration
		r.on("timed", func(ctx context.Context, j job.Job) error {
			at, _ := ctx.Deadline()
			deadline = time.Until(at)
			if at, ok := r.engine.Began(j.Token); !ok || !at.Equal(time.Now()) {
				t.Errorf("began at %v, %v", at, ok)
			}
			return nil
		})
		expired, timed := ofType("timed"), ofType("timed")
		expired.Priority, timed.Priority, timed.Timeout = 2, 1, time.Minute
		expired.ExpiresAt = time.Now().Add(200 * time.Millisecond)
		ids := r.enqueue(expired, timed)
		time.Sleep(300 * time.Millisecond)
		for _, j := range r.leases() {
			if _, ok := r.engine.Began(j.Token); ok == j.Unbegun {
				t.Errorf("job %s began: %v, and is not known to have: %v", j.ID, ok, j.Unbegun)
			}
		}
		release()
		time.Sleep(time.Second)
		r.want(ids[0], "dead_letter", 1)
		r.want(ids[1], "completed", 1)
		if deadline != time.Minute {
			t.Errorf("the job had %v", deadline)
		}
	})
}

// While all queues together may run no more, none has jobs prefetched: another queue
// would never have a place.
func TestPrefetch_LeavesPlacesToOtherQueues(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("quick", func(context.Context, job.Job) error { time.Sleep(time.Millisecond); return nil })
		other := ofType("quick")
		other.Queue = "other"
		r.enqueue(repeat(ofType("quick"), 300)...)
		r.enqueue(repeat(other, 10)...)
		r.start(func(o *options) {
			o.Store, o.Workers, o.MaxRunning = slowly{r.store, 10 * time.Millisecond}, func(string) int { return 2 }, 2
		})
		for r.store.Snapshot().Totals.Succeeded < 310 {
			time.Sleep(time.Millisecond)
			if prefetched := r.prefetched(); len(prefetched) > 0 {
				t.Fatalf("%d jobs are prefetched", len(prefetched))
			}
		}
	})
}

// A worker that became free while jobs were prefetched starts one of them.
func TestPrefetch_FreeWorkersStartWhatIsPrefetched(t *testing.T) {
	bubble(t, func(r *rig) {
		_, release := blocked(r)
		release()
		time.Sleep(900 * time.Millisecond) // before anything is given back
		if n := r.store.Snapshot().Totals.Succeeded; n != 100 {
			t.Errorf("%d jobs succeeded", n)
		}
		if prefetched := r.prefetched(); len(prefetched) > 0 {
			t.Errorf("%d jobs are prefetched", len(prefetched))
		}
	})
}
