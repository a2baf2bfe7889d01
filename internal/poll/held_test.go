package poll_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/store/db"
)

// broker is a queue whose records are with a connection that has broken, until the system
// notices. It cannot tell them from records that have left.
type broker struct {
	*queue
	mu    sync.Mutex
	until time.Time
}

// hide keeps the records away for a while, as after a network that broke.
func (b *broker) hide(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = time.Now().Add(d)
}

func (b *broker) hides() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.until)
}

func (b *broker) Scan(ctx context.Context, after string, limit int) (source.Page, error) {
	if b.hides() {
		return source.Page{}, nil
	}
	return b.queue.Scan(ctx, after, limit)
}

func (b *broker) Act(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	if b.hides() {
		return source.NotAttempted(acts), nil
	}
	return b.queue.Act(ctx, acts)
}

func (b *broker) Find(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	if b.hides() {
		return nil, nil
	}
	return b.queue.Find(ctx, acts)
}

// brokered runs a test in fake time whose source is a broker that is looked at every minute.
func brokered(t *testing.T, test func(t *testing.T, l *life, b *broker)) {
	t.Helper()
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, false)
		defer func() { check(t, l.store.Close()) }()
		b := &broker{queue: l.queue}
		l.every, l.open = time.Minute, func(context.Context) (source.Origin, error) { return b, nil }
		test(t, l, b)
	})
}

// What a source cannot tell yet is neither gone nor done: jobs stay what they were, and what
// people ask for is done when the source can tell, without a wait for the next look.
func TestSources_WhatCannotBeToldYetIsAskedAgain(t *testing.T) {
	brokered(t, func(t *testing.T, l *life, b *broker) {
		defer l.process(&crash{}).Close()
		l.replay("k1")
		time.Sleep(time.Second)
		b.hide(20 * time.Second)
		l.replay("k0")
		_, err := l.store.Discard(t.Context(), time.Now(), l.jobs()["charge k2"].ID, 1, ana)
		check(t, err)
		time.Sleep(13 * time.Second) // not when the source is asked, every five
		for _, a := range l.acts() {
			if a.State != source.Asked && a.Key != "k1" {
				t.Errorf("the %s of %s is %s while the source cannot tell", a.Kind, a.Key, a.State)
			}
		}
		time.Sleep(17 * time.Second)
		for _, a := range l.acts() {
			if a.State != source.Done {
				t.Errorf("the %s of %s is %s: %s", a.Kind, a.Key, a.State, a.Why)
			}
		}
		if dead, work := b.now(); dead != 0 || !maps.Equal(work, map[string]int{"k0": 1, "k1": 1}) {
			t.Errorf("%d are dead and %v came to work", dead, work)
		}
	})
}

// A look that finds nothing because the records are with a connection that broke takes no
// job away.
func TestSources_WhatIsHeldElsewhereIsNotGone(t *testing.T) {
	brokered(t, func(t *testing.T, l *life, b *broker) {
		l.process(&crash{}).Close()
		b.hide(20 * time.Second)
		now := l.process(&crash{})
		defer now.Close()
		time.Sleep(time.Minute)
		for name, j := range l.jobs() {
			if j.Status() != job.StatusDeadLetter || j.Run != 1 {
				t.Errorf("%s is %s in run %d", name, j.Status(), j.Run)
			}
		}
	})
}

// What had begun when the connection broke stays begun until the source can tell.
func TestSources_WhatHadBegunWaitsForAnAnswer(t *testing.T) {
	brokered(t, func(t *testing.T, l *life, b *broker) {
		l.process(&crash{}).Close()
		_, err := l.store.Discard(t.Context(), time.Now(), l.jobs()["charge k0"].ID, 1, ana)
		check(t, err)
		_, err = l.store.Sources.Take(t.Context(), "shop", 10)
		check(t, err)
		b.hide(20 * time.Second)
		defer l.process(&crash{}).Close() // it works for ten seconds
		if a := l.acts()[0]; a.State != source.Begun {
			t.Errorf("the discard is %s while the source cannot tell", a.State)
		}
		time.Sleep(20 * time.Second)
		if a, dead := l.acts()[0], l.jobs()["charge k0"]; a.State != source.Done || dead.Status() == job.StatusDeadLetter {
			t.Errorf("the discard is %s, and the job is %s", a.State, dead.Status())
		}
		if dead, _ := b.now(); dead != 2 {
			t.Errorf("%d are dead", dead)
		}
	})
}

// A record that died again while the old one cannot be looked up is the next run of its
// job, not another job.
func TestSources_ADeathDuringTheWaitIsTheNextRun(t *testing.T) {
	brokered(t, func(t *testing.T, l *life, b *broker) {
		l.process(&crash{}).Close()
		b.hide(20 * time.Second)
		late := &early{broker: b, met: record("k0 again", "2")}
		late.met.Lineage, late.met.Type = record("k0", "1").Lineage, record("k0", "1").Type
		l.open = func(context.Context) (source.Origin, error) { return late, nil }
		defer l.process(&crash{}).Close()
		b.take("k0")
		time.Sleep(time.Minute)
		if j := l.jobs()["charge k0"]; j.Status() != job.StatusDeadLetter || j.Run != 2 {
			t.Errorf("the job that died again is %s in run %d", j.Status(), j.Run)
		}
	})
}

// What people ask for meanwhile does not put off the look that was to come soon.
func TestSources_ClicksDoNotPutOffALook(t *testing.T) {
	brokered(t, func(t *testing.T, l *life, b *broker) {
		l.every = 10 * time.Minute
		defer l.process(&crash{}).Close()
		b.die("k0", "2")
		l.replay("k0")
		for _, key := range []string{"k1", "k2"} {
			time.Sleep(4 * time.Second)
			l.replay(key)
		}
		if j := l.jobs()["charge k0"]; j.Status() != job.StatusDeadLetter || j.Run != 2 {
			t.Errorf("after eight seconds, the job that died again is %s in run %d", j.Status(), j.Run)
		}
	})
}

// early is a broker at which one record can be met before the others.
type early struct {
	*broker
	met source.Record
}

func (e *early) Scan(ctx context.Context, after string, limit int) (source.Page, error) {
	page, err := e.broker.Scan(ctx, after, limit)
	page.Records = append(page.Records, e.met)
	return page, err
}
