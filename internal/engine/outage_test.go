package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/shortage"
)

// A database that is away keeps the engine from claiming, and the engine says
// since when and why, until the database is back.
func TestOutage_SaysSinceWhenTheDatabaseIsAway(t *testing.T) {
	for _, problem := range []error{fault.ErrStorageFull, fault.ErrReadOnly, fault.ErrBusy, errors.New("something new")} {
		t.Run(problem.Error(), func(t *testing.T) {
			bubble(t, func(r *rig) {
				f := &faulty{Store: r.store}
				r.on("ok", succeed)
				e := r.start(func(o *options) { o.Store = f })
				synctest.Wait()
				f.refuse(problem)
				began := time.Now()
				id := r.enqueue(once("ok"))[0]
				time.Sleep(time.Hour)
				open, ok := e.OpenBreaker()
				if !ok || open.Of != shortage.Database || open.Since.Sub(began) > time.Second || open.Reason == "" {
					t.Errorf("open %v: %+v", ok, open)
				}
				r.want(id, "active", 0) // its handler has returned
				f.err.Store(nil)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if open, ok := e.OpenBreaker(); ok {
					t.Errorf("still open: %+v", open)
				}
				r.want(id, "completed", 1)
				if got := e.Shortages()[shortage.Database]; got != (shortage.Counts{Openings: 1}) {
					t.Errorf("counted %+v", got)
				}
			})
		})
	}
}

// mute answers no exchange while its gate is shut.
type mute struct {
	*faulty
	gate atomic.Pointer[chan struct{}]
}

func (m *mute) Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) ([]job.Job, []job.Token, error) {
	if gate := m.gate.Load(); gate != nil {
		<-*gate
	}
	return m.faulty.Exchange(ctx, settle, claim)
}

// A disk that stands still answers nothing, neither well nor badly.
func TestOutage_SaysSinceWhenTheDatabaseIsMute(t *testing.T) {
	bubble(t, func(r *rig) {
		m := &mute{faulty: &faulty{Store: r.store}}
		r.on("ok", succeed)
		e := r.start(func(o *options) { o.Store = m })
		synctest.Wait()
		gate := make(chan struct{})
		m.gate.Store(&gate)
		began := time.Now()
		id := r.enqueue(once("ok"))[0]
		time.Sleep(4 * time.Second)
		if open, ok := e.OpenBreaker(); ok {
			t.Errorf("open too early: %+v", open)
		}
		time.Sleep(time.Minute)
		if open, ok := e.OpenBreaker(); !ok || open.Of != shortage.Database || open.Since.Sub(began) > time.Second {
			t.Errorf("open %v: %+v", ok, open)
		}
		close(gate)
		synctest.Wait()
		if open, ok := e.OpenBreaker(); ok {
			t.Errorf("still open: %+v", open)
		}
		r.want(id, "completed", 1)
	})
}
