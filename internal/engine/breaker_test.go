package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/shortage"
)

// scarce is something of which there is none until the test says otherwise.
type scarce struct {
	gone   atomic.Bool
	probes atomic.Int64
	met    atomic.Int64
}

func (s *scarce) shortage() *shortage.Error {
	return &shortage.Error{Of: shortage.Descriptors, Err: errors.New("socket: too many open files")}
}

// use is a handler that needs it.
func (s *scarce) use(context.Context, job.Job) error {
	time.Sleep(10 * time.Millisecond)
	if s.gone.Load() {
		s.met.Add(1)
		return fmt.Errorf("call the service: %w", s.shortage())
	}
	return nil
}

func (s *scarce) probe(shortage.Resource) error {
	s.probes.Add(1)
	if s.gone.Load() {
		return s.shortage()
	}
	return nil
}

// A shortage uses up no attempt: what met it is given back, nothing is claimed
// until it is over, and then everything runs.
func TestEngine_AShortageUsesUpNoAttempt(t *testing.T) {
	bubble(t, func(r *rig) {
		var s scarce
		s.gone.Store(true)
		r.on("ok", s.use)
		e := r.start(func(o *options) { o.Probe = s.probe })
		ids := r.enqueue(repeat(once("ok"), 50)...)
		began := time.Now()
		time.Sleep(time.Hour)
		synctest.Wait()
		open, ok := e.OpenBreaker()
		if !ok || open.Of != shortage.Descriptors || open.Since.Sub(began) > time.Second {
			t.Errorf("open %v: %+v", ok, open)
		}
		if met := s.met.Load(); met != 10 { // as many as there are workers, once
			t.Errorf("%d executions met the shortage", met)
		}
		if n := s.probes.Load(); n < 1000 || n > 2000 {
			t.Errorf("%d looks in an hour", n)
		}
		for _, id := range ids {
			r.want(id, "available", 0)
		}
		s.gone.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if open, ok := e.OpenBreaker(); ok {
			t.Errorf("still open: %+v", open)
		}
		for i, id := range ids {
			attempts := r.want(id, "completed", 1)
			if i == 0 && (len(attempts) != 2 || attempts[0].Outcome != job.Interrupted || attempts[0].Error.Type != shortage.ErrorType) {
				t.Errorf("attempts = %+v", attempts)
			}
		}
		if got := e.Shortages()[shortage.Descriptors]; got != (shortage.Counts{Openings: 1, GivenBack: 10}) {
			t.Errorf("counted %+v", got)
		}
	})
}

// Where a look says nothing, one job at a time finds out, ever more seldom.
func TestBreaker_OneJobTriesWhetherAShortageIsOver(t *testing.T) {
	bubble(t, func(r *rig) {
		var s scarce
		s.gone.Store(true)
		r.on("ok", s.use)
		e := r.start()
		ids := r.enqueue(repeat(once("ok"), 20)...)
		time.Sleep(10 * time.Minute)
		if met := s.met.Load(); met < 10+50 || met > 10+70 {
			t.Errorf("%d executions met the shortage in ten minutes", met)
		}
		if got := e.Shortages()[shortage.Descriptors].Openings; got != 1 {
			t.Errorf("it was open %d times", got)
		}
		s.gone.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, id := range ids {
			r.want(id, "completed", 1)
		}
	})
}

// A shortage and a database that refuses are waited out together, as when a disk is full: the
// dispatcher sleeps between its tries.
func TestBreaker_WaitsBesideTheDatabase(t *testing.T) {
	bubble(t, func(r *rig) {
		var s scarce
		s.gone.Store(true)
		r.on("ok", s.use)
		f := &faulty{Store: r.store}
		r.start(func(o *options) { o.Store = f })
		id := r.enqueue(ofType("ok"))[0]
		synctest.Wait()
		f.refuse(fault.ErrStorageFull)

		time.Sleep(5 * time.Minute) // never over if the dispatcher does not sleep
		f.err.Store(nil)
		s.gone.Store(false)
		time.Sleep(2 * time.Minute)
		r.want(id, "completed", 1)
	})
}

// What runs while others meet a shortage goes on and is settled.
func TestEngine_SettlesWhatRunsDuringAShortage(t *testing.T) {
	bubble(t, func(r *rig) {
		var s scarce
		s.gone.Store(true)
		r.on("bad", s.use)
		r.on("long", func(context.Context, job.Job) error { time.Sleep(time.Minute); return nil })
		r.start(func(o *options) { o.Probe = s.probe })
		id := r.enqueue(ofType("long"))[0]
		synctest.Wait()
		r.enqueue(ofType("bad"))
		time.Sleep(2 * time.Minute)
		r.want(id, "completed", 1)
	})
}

// The breaker closes although no job is there to try whether a shortage is over.
func TestBreaker_ClosesWithoutJobs(t *testing.T) {
	bubble(t, func(r *rig) {
		var s scarce
		s.gone.Store(true)
		r.on("ok", s.use)
		e := r.start(func(o *options) { o.Probe = s.probe })
		id := r.enqueue(ofType("ok"))[0]
		time.Sleep(time.Second)
		r.cancel(id)
		s.gone.Store(false)
		time.Sleep(5 * time.Second)
		if open, ok := e.OpenBreaker(); ok {
			t.Errorf("still open: %+v", open)
		}
	})
}

// A stop waits for no shortage, and neither does a person who cancels.
func TestEngine_StopsDuringAShortage(t *testing.T) {
	bubble(t, func(r *rig) {
		var s scarce
		s.gone.Store(true)
		r.on("ok", s.use)
		e := r.start(func(o *options) { o.Probe = s.probe })
		id := r.enqueue(once("ok"))[0]
		time.Sleep(time.Second)
		begin := time.Now()
		if err := e.Stop(r.Context()); err != nil || time.Since(begin) > time.Second {
			t.Errorf("Stop = %v after %v", err, time.Since(begin))
		}
		r.want(id, "available", 0)
	})
}

// A dead letter that cannot be sent for a shortage is sent after it.
func TestEngine_ADeadLetterOutlastsAShortage(t *testing.T) {
	bubble(t, func(r *rig) {
		var s scarce
		s.gone.Store(true)
		r.on("bad", fails(failure("x")))
		r.on("ok", succeed)
		e := r.start(func(o *options) {
			o.Probe = s.probe
			o.Kept = func(string) (job.Delivery, bool) { return job.Delivery{}, false }
			o.Deliver = func(context.Context, job.Job, job.DeadLetter) job.Delivery {
				if s.gone.Load() {
					return job.Delivery{Problem: "it was not sent", Shortage: s.shortage()}
				}
				return job.Delivery{ForwardedTo: "there", ForwardedAt: time.Now()}
			}
		})
		id := r.enqueue(once("bad"))[0]
		time.Sleep(10 * time.Minute)
		r.want(id, "active", 0)
		if _, ok := e.OpenBreaker(); !ok {
			t.Error("the engine claims")
		}
		s.gone.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want(id, "dead_letter", 1)
	})
}

// Where there is enough for some jobs and not for all, the breaker opens once and not
// again and again: readiness, page and log do not flap.
func TestBreaker_OpensOnceForAShortageThatLasts(t *testing.T) {
	bubble(t, func(r *rig) {
		var running, met atomic.Int64
		var s scarce
		r.on("ok", func(context.Context, job.Job) error {
			defer running.Add(-1)
			if running.Add(1) > 3 {
				met.Add(1)
				return s.shortage()
			}
			time.Sleep(5 * time.Second)
			return nil
		})
		e := r.start()
		ids := r.enqueue(repeat(once("ok"), 60)...)
		time.Sleep(2 * time.Minute)
		open, ok := e.OpenBreaker()
		if n := e.Shortages()[shortage.Descriptors].Openings; n != 1 || !ok {
			t.Errorf("open %d times, %v: %+v", n, ok, open)
		}
		time.Sleep(time.Hour)
		for _, id := range ids {
			r.want(id, "completed", 1)
		}
		if open, ok := e.OpenBreaker(); ok {
			t.Errorf("still open: %+v", open)
		}
		if n := met.Load(); n > 7+60 { // no job meets it again and again
			t.Errorf("%d executions met the shortage", n)
		}
	})
}

func TestEngine_RunsNoMoreThanItMay(t *testing.T) {
	bubble(t, func(r *rig) {
		var running, most atomic.Int64
		r.on("ok", func(context.Context, job.Job) error {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			running.Add(-1)
			return nil
		})
		r.start(func(o *options) { o.MaxRunning = 3 })
		var jobs []job.Job
		for i := range 30 {
			j := ofType("ok")
			j.Queue = fmt.Sprintf("q%d", i%5)
			jobs = append(jobs, j)
		}
		ids := r.enqueue(jobs...)
		time.Sleep(time.Minute)
		for _, id := range ids {
			r.want(id, "completed", 1)
		}
		if most.Load() != 3 {
			t.Errorf("%d at once", most.Load())
		}
	})
}
