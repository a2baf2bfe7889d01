package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/audit"
	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// resume ends a pause; the store tells the engine.
func (r *rig) resume(queue string) {
	r.Helper()
	if err := r.store.Resume(r.Context(), time.Now(), queue, audit.Actor{Name: "ana"}); err != nil {
		r.Fatal(err)
	}
}

func TestEngine_RunsAScheduledJobAtItsTime(t *testing.T) {
	bubble(t, func(r *rig) {
		var started time.Time
		r.on("ok", func(context.Context, job.Job) error { started = time.Now(); return nil })
		r.start()
		j := ofType("ok")
		j.RunAt = time.Now().Add(3*time.Hour + time.Microsecond)
		r.enqueue(j)
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		if !started.Equal(j.RunAt) {
			t.Errorf("started at %v, want %v", started, j.RunAt)
		}
	})
}

func TestEngine_FindsScheduledJobsOfTheProcessBefore(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("ok", succeed)
		j := ofType("ok")
		j.RunAt = time.Now().Add(time.Hour)
		id := r.enqueue(j)[0]
		r.start()
		time.Sleep(time.Hour)
		synctest.Wait()
		r.want(id, "completed", 1)
	})
}

func TestEngine_KeepsThePriorityOrder(t *testing.T) {
	bubble(t, func(r *rig) {
		var order []int
		r.on("ok", func(_ context.Context, j job.Job) error { order = append(order, j.Priority); return nil })
		var jobs []job.Job
		for _, priority := range []int{0, 5, -3, 9, 5} {
			j := ofType("ok")
			j.Priority = priority
			jobs = append(jobs, j)
		}
		r.enqueue(jobs...)
		r.start(func(o *options) { o.Workers = func(string) int { return 1 } })
		synctest.Wait()
		if want := []int{9, 5, 5, 0, -3}; !slices.Equal(order, want) {
			t.Errorf("order = %v, want %v", order, want)
		}
	})
}

func TestEngine_NeverClaimsMoreThanCanStart(t *testing.T) {
	bubble(t, func(r *rig) {
		var now, most atomic.Int64
		r.on("ok", func(context.Context, job.Job) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			if active := r.store.Snapshot().Depths["active"]; active > 3 {
				t.Errorf("%d jobs are active with three workers", active)
			}
			return nil
		})
		r.start(func(o *options) { o.Workers = func(string) int { return 3 } })
		r.enqueue(repeat(ofType("ok"), 30)...)
		time.Sleep(time.Minute)
		if most.Load() != 3 || r.store.Snapshot().Totals.Succeeded != 30 {
			t.Errorf("%d at once, totals %+v", most.Load(), r.store.Snapshot().Totals)
		}
	})
}

func TestEngine_LeavesAPausedQueueAlone(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("ok", succeed)
		r.start()
		if err := r.store.Pause(r.Context(), time.Now(), "default", audit.Actor{Name: "anna"}); err != nil {
			t.Fatal(err)
		}
		later := ofType("ok")
		later.RunAt = time.Now().Add(time.Minute)
		ids := r.enqueue(ofType("ok"), later)
		time.Sleep(time.Hour)
		r.want(ids[0], "available", 0)
		r.want(ids[1], "scheduled", 0)
		r.resume("default")
		synctest.Wait()
		r.want(ids[0], "completed", 1)
		r.want(ids[1], "completed", 1)
	})
}

// asking counts how often the engine asks when the next job is due.
type asking struct {
	engine.Store
	times atomic.Int64
}

func (a *asking) NextDue(ctx context.Context, after time.Time) (time.Time, error) {
	a.times.Add(1)
	return a.Store.NextDue(ctx, after)
}

// A queue whose workers are all taken does not delay the due jobs of other queues.
func TestEngine_AFullQueueDelaysNoOther(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("slow", untilTold)
		var started time.Time
		r.on("ok", func(context.Context, job.Job) error { started = time.Now(); return nil })
		slow, due, other := ofType("slow"), ofType("slow"), ofType("ok")
		slow.Timeout = 2 * time.Hour
		due.RunAt = time.Now().Add(time.Second)
		other.Queue, other.RunAt = "other", time.Now().Add(10*time.Minute)
		r.enqueue(slow, due, other)
		asked := &asking{Store: r.store}
		r.start(func(o *options) { o.Workers, o.Store = func(string) int { return 1 }, asked })
		time.Sleep(time.Hour)
		synctest.Wait()
		if !started.Equal(other.RunAt) {
			t.Errorf("the job of the other queue started %v late", started.Sub(other.RunAt))
		}
		if n := asked.times.Load(); n > 10 {
			t.Errorf("the store was asked %d times for the next job in an hour with two jobs", n)
		}
	})
}

func TestEngine_UnknownTypes(t *testing.T) {
	tests := []struct {
		strategy retry.Unknown
		status   job.Status
		attempts int
		reason   retry.Reason
		by       string
	}{
		{retry.UnknownHold, job.StatusHeld, 0, "", ""},
		{retry.UnknownFail, job.StatusDeadLetter, 3, retry.UnknownType, "policy:exhausted:3/3"},
		{retry.UnknownDeadLetter, job.StatusDeadLetter, 1, retry.UnknownType, "unknown_type:dead_letter"},
		{retry.UnknownDelete, "discarded", 1, retry.UnknownType, "unknown_type:delete"},
	}
	for _, test := range tests {
		t.Run(string(test.strategy), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.on("ok", succeed)
				r.start(func(o *options) { o.UnknownType = test.strategy })
				ids := r.enqueue(ofType("mystery"), ofType("ok"))
				time.Sleep(time.Minute)
				attempts := r.want(ids[0], test.status, test.attempts)
				r.want(ids[1], "completed", 1)
				if got := r.detail(ids[0]).Job.Reason; got != test.reason {
					t.Errorf("reason %q, want %q", got, test.reason)
				}
				if test.by == "" {
					return
				}
				last := attempts[len(attempts)-1]
				if last.DecidedBy != test.by || last.Error.Type != "unknown_type" || !strings.Contains(last.Error.Message, "mystery") {
					t.Errorf("last attempt = %+v", last)
				}
			})
		})
	}
}

func TestEngine_StartFreesHeldJobsThatHaveAHandlerNow(t *testing.T) {
	bubble(t, func(r *rig) {
		first := r.start()
		ids := r.enqueue(repeat(ofType("mystery"), 20)...)
		synctest.Wait()
		r.want(ids[19], job.StatusHeld, 0)
		if err := first.Stop(r.Context()); err != nil {
			t.Fatal(err)
		}
		r.on("mystery", succeed)
		r.start()
		synctest.Wait()
		for _, id := range ids {
			r.want(id, "completed", 1)
		}
	})
}

// 100 people click replay at the same moment: one more run.
func TestEngine_ManyReplaysRunOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		var runs atomic.Int64
		r.on("flaky", func(context.Context, job.Job) error { runs.Add(1); return failure("x") })
		r.start()
		j := ofType("flaky")
		j.Policy.MaxAttempts = 1
		id := r.enqueue(j)[0]
		synctest.Wait()
		r.want(id, job.StatusDeadLetter, 1)
		var won, lost atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				_, err := r.store.Replay(r.Context(), time.Now(), id, 1, audit.Actor{Name: "anna"})
				var conflict *job.Conflict
				switch {
				case err == nil:
					won.Add(1)
				case errors.As(err, &conflict):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if won.Load() != 1 || lost.Load() != 99 || runs.Load() != 2 {
			t.Errorf("%d replays won, %d lost, the job ran %d times", won.Load(), lost.Load(), runs.Load())
		}
		if d := r.detail(id); d.Job.Run != 2 || len(d.Attempts) != 2 {
			t.Errorf("run %d with %d attempts", d.Job.Run, len(d.Attempts))
		}
	})
}
