package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/internal/store"
)

// slowCommit is a store in whose transactions the test claims jobs for the engine, which takes
// as long as the test wants.
type slowCommit struct {
	*store.Store
	reserve func(queues []string) job.Claim
	start   func(job.Claim, []job.Job)
}

func (s *slowCommit) DispatchOnCommit(reserve func([]string) job.Claim, start func(job.Claim, []job.Job)) (end func()) {
	s.reserve, s.start = reserve, start
	return func() {}
}

// A stop waits for a transaction that claims jobs for the engine, and gives these back.
func TestOnCommit_AStopWaitsForTheAnswer(t *testing.T) {
	bubble(t, func(r *rig) {
		s := &slowCommit{Store: r.store}
		r.on("ok", succeed)
		e := r.start(func(o *options) { o.Store = s })
		synctest.Wait()

		claim := s.reserve([]string{"default"})
		if claim.Free["default"] != 10 {
			t.Fatalf("reserved %v, want all workers", claim.Free)
		}

		r.all.Store(&[]*engine.Engine{}) // the engine does not get to know the job, and does not claim it
		id := r.enqueue(ofType("ok"))[0]
		claimed, _, err := r.store.Exchange(r.Context(), nil, claim)
		if err != nil {
			t.Fatal(err)
		}

		stopped := make(chan error, 1)
		go func() { stopped <- e.Stop(r.Context()) }()
		time.Sleep(time.Hour)
		select {
		case err := <-stopped:
			t.Fatalf("Stop = %v while a transaction is under way", err)
		default:
		}

		s.start(claim, claimed)
		err = <-stopped
		if err != nil {
			t.Errorf("Stop = %v", err)
		}
		r.want(id, "available", 0)
		again := s.reserve([]string{"default"})
		if len(again.Free) > 0 {
			t.Errorf("reserved %v after the stop", again.Free)
		}
	})
}

// While a transaction is under way its workers are not given to another claim. When it has
// failed they are free again, and a job that waited for them starts at once.
func TestOnCommit_ReservesWorkersUntilTheAnswer(t *testing.T) {
	bubble(t, func(r *rig) {
		s := &slowCommit{Store: r.store}
		r.on("ok", succeed)
		r.start(func(o *options) { o.Store = s })
		synctest.Wait()

		claim := s.reserve([]string{"default"})
		id := r.enqueue(ofType("ok"))[0]
		synctest.Wait()
		r.want(id, "available", 0)

		s.start(claim, nil)
		synctest.Wait()
		r.want(id, "completed", 1)
	})
}
