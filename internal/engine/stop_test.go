package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/engine"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/stats"
	"redrive/internal/store"
)

func TestEngine_StopLetsRunningJobsEnd(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("slow", func(context.Context, job.Job) error { time.Sleep(5 * time.Second); return nil })
		e := r.start(func(o *options) { o.Workers = func(string) int { return 1 } })
		ids := r.enqueue(ofType("slow"), ofType("slow"))
		synctest.Wait()
		begin := time.Now()
		if err := e.Stop(r.Context()); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("Stop took %v, want the five seconds of the running job", took)
		}
		r.want(ids[0], "completed", 1)
		r.want(ids[1], "available", 0)
	})
}

func TestEngine_StopReleasesWithoutCounting(t *testing.T) {
	quiet := func(ctx context.Context, _ job.Job) error { <-ctx.Done(); return nil }
	tests := []struct {
		name    string
		handler engine.Handler
		took    time.Duration // the grace is ten seconds
	}{
		{"a handler that listens", untilTold, 10 * time.Second},
		{"a handler that listens and says nothing", quiet, 10 * time.Second},
		{"a handler that does not listen", deaf, 12 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.on("slow", test.handler)
				e := r.start()
				j := ofType("slow")
				j.Timeout = 2 * time.Hour
				id := r.enqueue(j)[0]
				synctest.Wait()
				begin := time.Now()
				if err := e.Stop(r.Context()); err != nil {
					t.Errorf("Stop: %v", err)
				}
				if took := time.Since(begin); took != test.took {
					t.Errorf("Stop took %v, want %v", took, test.took)
				}
				attempts := r.want(id, "available", 0)
				if len(attempts) != 1 || attempts[0].Outcome != job.Interrupted || attempts[0].Number != 0 {
					t.Errorf("attempts: %+v", attempts)
				}
				if got := r.store.Snapshot().Totals; got != (stats.Totals{}) {
					t.Errorf("totals = %+v, want none", got)
				}
				time.Sleep(2 * time.Hour) // let the deaf one go
			})
		})
	}
}

func TestEngine_StopHurries(t *testing.T) {
	second := func(r *rig, e *engine.Engine) error {
		go e.Stop(r.Context())
		time.Sleep(time.Second)
		return e.Stop(r.Context())
	}
	ended := func(r *rig, e *engine.Engine) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		return e.Stop(ctx)
	}
	for name, stop := range map[string]func(*rig, *engine.Engine) error{"by a second stop": second, "when its context ends": ended} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.on("slow", untilTold)
				e := r.start()
				id := r.enqueue(ofType("slow"))[0]
				synctest.Wait()
				begin := time.Now()
				if err := stop(r, e); err != nil || time.Since(begin) != time.Second {
					t.Errorf("Stop = %v after %v, want after one second", err, time.Since(begin))
				}
				r.want(id, "available", 0)
			})
		})
	}
}

func TestEngine_StopInAnyOrder(t *testing.T) {
	bubble(t, func(r *rig) {
		e := r.start()
		for range 3 {
			if err := e.Stop(r.Context()); err != nil {
				t.Errorf("Stop: %v", err)
			}
		}
		if err := e.Start(r.Context()); err == nil {
			t.Error("Start after Stop succeeded")
		}
		e.Changed(nil)
		idle, err := engine.New(r.options())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(idle.Stop(r.Context()), idle.Stop(r.Context())); err != nil {
			t.Errorf("Stop before Start: %v", err)
		}
		if err := idle.Start(r.Context()); err == nil {
			t.Error("Start after an early Stop succeeded")
		}
	})
}

// slowStart holds back what the start asks for.
type slowStart struct {
	*store.Store
	asked, answer chan struct{}
	returned      atomic.Bool
}

func (s *slowStart) Leases(ctx context.Context, endedBy time.Time) ([]job.Job, error) {
	close(s.asked)
	<-s.answer
	defer s.returned.Store(true)
	return s.Store.Leases(ctx, endedBy)
}

func TestEngine_StopWaitsForAStartUnderWay(t *testing.T) {
	bubble(t, func(r *rig) {
		slow := &slowStart{Store: r.store, asked: make(chan struct{}), answer: make(chan struct{})}
		o := r.options()
		o.Store = slow
		e, err := engine.New(o)
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan error, 1)
		go func() { started <- e.Start(r.Context()) }()
		<-slow.asked
		time.AfterFunc(time.Second, func() { close(slow.answer) })
		if err := e.Stop(r.Context()); err != nil || !slow.returned.Load() {
			t.Errorf("Stop = %v; the start was over: %v", err, slow.returned.Load())
		}
		if err := <-started; err == nil {
			t.Error("Start succeeded after Stop")
		}
	})
}

func TestEngine_StartsOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		if err := r.start().Start(r.Context()); err == nil {
			t.Error("a second Start succeeded")
		}
	})
}

// Of several fields that cannot be, the first is named, each time.
func TestNew_NamesTheFirstField(t *testing.T) {
	r := newRig(t)
	changes := []func(*options){
		func(o *options) { o.Grace = -1 }, func(o *options) { o.DeliverWithin = -1 },
		func(o *options) { o.StuckAfter = -1 }, func(o *options) { o.Timeout = -1 },
	}
	o := r.options()
	for i, field := range []string{"grace", "deliver_within", "stuck_after", "timeout"} {
		changes[i](&o)
		for range 50 {
			var bad *invalid.Error
			if _, err := engine.New(o); !errors.As(err, &bad) || bad.Field != field {
				t.Fatalf("New = %v, want an error of field %s", err, field)
			}
		}
	}
}

func TestNew_NamesTheField(t *testing.T) {
	tests := map[string]func(*options){
		"store":        func(o *options) { o.Store = nil },
		"queues":       func(o *options) { o.Queues = nil },
		"handlers":     func(o *options) { o.Handlers = nil },
		"workers":      func(o *options) { o.Workers = nil },
		"random":       func(o *options) { o.Random = nil },
		"name":         func(o *options) { o.Name = "" },
		"unknown_type": func(o *options) { o.UnknownType = "ignore" },
		"timeout":      func(o *options) { o.Timeout = -1 },
		"lease":        func(o *options) { o.Lease = time.Nanosecond },
		"grace":        func(o *options) { o.Grace = -1 },
	}
	r := newRig(t)
	for field, change := range tests {
		o := r.options()
		change(&o)
		var bad *invalid.Error
		if _, err := engine.New(o); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("New = %v, want an error of field %s", err, field)
		}
	}
}
