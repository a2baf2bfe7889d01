package demo

import (
	"context"
	"math/rand/v2"
	"time"

	"redrive/internal/job"
)

// feedEvery spaces the live jobs: as many in an hour as the history's last one.
const feedEvery = time.Minute / lastHour // 600 ms

// Feed enqueues a steady trickle of jobs until the context ends, and a few of
// a type that nobody handles. It returns the first error of the store, and nil
// when the context ended.
func (w *World) Feed(ctx context.Context, store Store) error {
	random := rand.New(rand.NewPCG(w.seed, 2))
	if err := w.orphans(ctx, store, random); err != nil {
		return err
	}
	tick := time.NewTicker(feedEvery)
	defer tick.Stop()
	for n := historyJobs; ; n++ {
		now := time.Now()
		j, err := w.next(random, n, now)
		if err == nil {
			_, err = store.Enqueue(ctx, now, []job.Job{j})
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// orphans enqueues three jobs of a type without a handler: they wait.
func (w *World) orphans(ctx context.Context, store Store, random *rand.Rand) error {
	now := time.Now()
	var jobs []job.Job
	for range 3 {
		j, err := w.admit(newID(now, random), "loyalty", "loyalty.expire", `{"tier":"silver","before":"2026-01-01"}`)
		if err != nil {
			return err
		}
		jobs = append(jobs, j)
	}
	_, err := store.Enqueue(ctx, now, jobs)
	return err
}
