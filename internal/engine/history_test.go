package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/stats"
)

// chaos is a handler that does anything, by chance.
func chaos(random func() float64) engine.Handler {
	return func(ctx context.Context, _ job.Job) error {
		select {
		case <-time.After(time.Duration(random() * float64(20*time.Second))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch x := random(); {
		case x < 0.3:
			return nil
		case x < 0.4:
			panic("by chance")
		case x < 0.5:
			return &job.Failure{Answer: retry.Answer{Code: retry.CodeDeadLetter}}
		case x < 0.6:
			return &job.Failure{Answer: retry.Answer{Code: retry.CodeDiscard}}
		}
		return failure("x")
	}
}

// seeded is a source of randomness that many goroutines can share.
func seeded(t *testing.T) func() float64 {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	source := rand.New(rand.NewPCG(seed, 0))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Float64()
	}
}

func TestEngine_CountersAddUpAfterARandomHistory(t *testing.T) {
	bubble(t, func(r *rig) {
		random := seeded(t)
		r.on("chaos", chaos(random))
		configure := func(o *options) {
			o.Random, o.Grace = random, time.Second
			o.Deliver = only(func(queue string) bool { return queue != "q2" })
		}
		e := r.start(configure)
		var ids []string
		for range 10 { // ten lives of the engine
			for range 20 {
				j := ofType("chaos")
				j.Policy, j.Timeout = retry.Default(), 15*time.Second
				j.Queue = fmt.Sprintf("q%d", int(random()*4))
				ids = append(ids, r.enqueue(j)...)
			}
			time.Sleep(time.Duration(random() * float64(time.Minute)))
			for range 5 {
				r.meddle(ids[int(random()*float64(len(ids)))], random)
			}
			if err := e.Stop(r.Context()); err != nil {
				t.Fatal(err)
			}
			e = r.start(configure)
		}
		time.Sleep(time.Hour)
		r.checkTotals(ids)
	})
}

// meddle is a person who clicks on something.
func (r *rig) meddle(id string, random func() float64) {
	j := r.detail(id).Job
	switch x := random(); {
	case x < 0.6 && j.Replayable():
		if _, err := r.store.Replay(r.Context(), time.Now(), id, j.Run, audit.Actor{Name: "anna"}); err != nil {
			r.Error(err)
		}
	case x > 0.6 && j.Cancellable():
		if _, err := r.store.Cancel(r.Context(), time.Now(), id, j.Run, audit.Actor{Name: "anna"}); err != nil {
			r.Error(err)
		}
	}
}

// checkTotals compares the counters with the history that can be read.
func (r *rig) checkTotals(ids []string) {
	r.Helper()
	var want stats.Totals
	for _, id := range ids {
		d := r.detail(id)
		if s := d.Job.State; s != job.Completed && s != job.Discarded && s != job.Cancelled {
			r.Errorf("job %s is still %s", id, s)
		}
		want.Replayed += int64(d.Job.Run - 1)
		for _, a := range d.Attempts {
			want = want.Add(totalsOf(a))
		}
		for _, l := range d.DeadLetters {
			if l.Refused {
				want.DLQFailed++
			}
		}
	}
	got := r.store.Snapshot().Totals
	if got != want || got.Failed != got.Requeued+got.FailedPermanently || got.Failed == 0 {
		r.Errorf("totals =\n%+v, the attempts say\n%+v", got, want)
	}
}

func totalsOf(a job.Attempt) (t stats.Totals) {
	switch {
	case !a.Outcome.Counted():
	case a.Outcome == job.Succeeded:
		t.Succeeded = 1
	case a.Action == retry.Retry:
		t.Failed, t.Requeued = 1, 1
	default:
		t.Failed, t.FailedPermanently = 1, 1
	}
	return t
}

// Two engines share a store: no execution runs twice, and none at the same
// time as another of its job.
func TestEngine_TwoEnginesNeverRunOneExecutionTwice(t *testing.T) {
	bubble(t, func(r *rig) {
		random := seeded(t)
		var mu sync.Mutex
		runs, at := map[job.Token]string{}, map[string]string{}
		by := func(worker string) func(string) (engine.Handler, bool) {
			return func(string) (engine.Handler, bool) {
				return func(_ context.Context, j job.Job) error {
					mu.Lock()
					if other, ok := runs[j.Token]; ok || at[j.ID] != "" {
						t.Errorf("%s runs %v, which %s%s has", worker, j.Token, other, at[j.ID])
					}
					runs[j.Token], at[j.ID] = worker, worker
					mu.Unlock()
					time.Sleep(time.Duration(random() * float64(time.Second)))
					mu.Lock()
					delete(at, j.ID)
					mu.Unlock()
					if random() < 0.5 {
						return failure("x")
					}
					return nil
				}, true
			}
		}
		for _, name := range []string{"w1", "w2"} {
			r.start(func(o *options) { o.Name, o.Handlers = name, by(name) })
		}
		r.enqueue(repeat(ofType("any"), 200)...)
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		share := map[string]int{}
		for _, worker := range runs {
			share[worker]++
		}
		totals := r.store.Snapshot().Totals
		if int(totals.Succeeded+totals.Failed) != len(runs) || share["w1"] == 0 || share["w2"] == 0 {
			t.Errorf("totals %+v, executions by worker %v", totals, share)
		}
	})
}
