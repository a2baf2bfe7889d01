package breaker_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/engine/breaker"
	"redrive/internal/shortage"
)

// none counts no running jobs.
func none() int { return 0 }

// A breaker opens at a shortage, and closes by steps once a probe has found some again.
func TestBreaker_OpensProbesAndClosesByDoubling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lack error
		b := breaker.New(func(shortage.Resource) error { return lack }, 3, slog.New(slog.DiscardHandler))
		if !b.Closed() || b.Room(1) != 2 || !b.NextAt().IsZero() {
			t.Errorf("at first: closed %v, room %d, next %v", b.Closed(), b.Room(1), b.NextAt())
		}

		lack = errors.New("no memory")
		b.Trip(&shortage.Error{Of: shortage.Memory})
		if why, open := b.Why(); !open || why.Of != shortage.Memory || b.Room(0) != 0 {
			t.Errorf("after a shortage: open %v for %v, room %d", open, why.Of, b.Room(0))
		}

		// The probe finds none, and later some.
		time.Sleep(time.Until(b.NextAt()))
		b.Attend(time.Now(), false, none)
		if b.Room(0) != 0 {
			t.Errorf("after a probe that found none: room %d", b.Room(0))
		}
		lack = nil
		time.Sleep(time.Until(b.NextAt()))
		b.Attend(time.Now(), false, none)

		// One job may run, then two, then all.
		for _, want := range []int{1, 2, 3} {
			if b.Room(0) != want || b.Closed() {
				t.Errorf("room %d, closed %v, want %d", b.Room(0), b.Closed(), want)
			}
			time.Sleep(time.Until(b.NextAt()))
			b.Attend(time.Now(), true, none)
		}
		if !b.Closed() || b.Shortages()[shortage.Memory] != (shortage.Counts{Openings: 1, GivenBack: 1}) {
			t.Errorf("in the end: closed %v, counted %+v", b.Closed(), b.Shortages())
		}
	})
}

// A shortage while few jobs may run opens the breaker again, for longer.
func TestBreaker_OpensAgainForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(func(shortage.Resource) error { return nil }, 3, slog.New(slog.DiscardHandler))
		var pauses []time.Duration
		for range 5 {
			b.Trip(&shortage.Error{Of: shortage.Memory})
			pauses = append(pauses, time.Until(b.NextAt()))
			time.Sleep(time.Until(b.NextAt()))
			b.Attend(time.Now(), false, none)
		}
		for i := range pauses[1:] {
			if pauses[i+1] < pauses[i] {
				t.Errorf("the pauses are %v", pauses)
			}
		}
		if pauses[4] <= pauses[0] || b.Shortages()[shortage.Memory] != (shortage.Counts{Openings: 1, GivenBack: 5}) {
			t.Errorf("the pauses are %v, and counted is %+v", pauses, b.Shortages())
		}
	})
}

// A database that refuses for a moment, or is slow for a few seconds, is no outage.
func TestOutage_IsSaidOnlyOfWhatLasts(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	var o breaker.Outage

	if !o.Refuses(now) || o.Refuses(now.Add(time.Second)) || !o.Refusing() {
		t.Error("the first refusal is not told from the second")
	}
	if _, away := o.Why(now.Add(time.Second - 1)); away {
		t.Error("it is away at once")
	}
	if why, away := o.Why(now.Add(time.Second)); !away || !why.Since.Equal(now) {
		t.Errorf("after a second it is away: %v, since %v", away, why.Since)
	}
	if lasted := o.Accepts(now.Add(time.Minute)); lasted != time.Minute || o.Refusing() || o.Times() != 1 {
		t.Errorf("it lasted %v, goes on: %v, times %d", lasted, o.Refusing(), o.Times())
	}

	o.Ask(now)
	if _, away := o.Why(now.Add(4 * time.Second)); away {
		t.Error("it is away before it is slow")
	}
	if _, away := o.Why(now.Add(5 * time.Second)); !away {
		t.Error("it does not answer, and is not away")
	}
	o.Answered()
	if _, away := o.Why(now.Add(time.Hour)); away {
		t.Error("it is away after it has answered")
	}
}
