package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/engine"
	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
)

// locker is another program that has the database open.
type locker struct {
	r    *rig
	conn *sql.Conn
}

func lockDatabase(r *rig) *locker {
	r.Helper()
	databasetest.NeedsFile(r, "a server has no lock that stops all writers")
	db, err := sql.Open("sqlite", "file:"+r.path)
	if err != nil {
		r.Fatal(err)
	}
	conn, err := db.Conn(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := errors.Join(conn.Close(), db.Close()); err != nil {
			r.Error(err)
		}
	})
	return &locker{r, conn}
}

func (l *locker) exec(query string) {
	l.r.Helper()
	if _, err := l.conn.ExecContext(l.r.Context(), query); err != nil {
		l.r.Fatalf("%s: %v", query, err)
	}
}

func (l *locker) lock()   { l.exec("BEGIN IMMEDIATE") }
func (l *locker) unlock() { l.exec("ROLLBACK") }

func TestEngine_KeepsOutcomesWhileTheDatabaseIsBusy(t *testing.T) {
	bubble(t, func(r *rig) {
		other := lockDatabase(r)
		r.on("ok", func(context.Context, job.Job) error { time.Sleep(time.Second); return nil })
		r.start()
		ids := r.enqueue(repeat(ofType("ok"), 20)...) // ten of them run
		synctest.Wait()
		other.lock()
		time.Sleep(time.Minute)
		r.want(ids[0], "active", 0)
		if len(r.engine.Running()) != 0 {
			t.Errorf("running while nothing can be claimed: %v", r.engine.Running())
		}
		other.unlock()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for _, id := range ids {
			if attempts := r.want(id, "completed", 1); len(attempts) != 1 {
				t.Errorf("attempts: %+v", attempts)
			}
		}
	})
}

// faulty lets the real store refuse exchanges.
type faulty struct {
	*store.Store
	err   atomic.Pointer[error]
	calls atomic.Int64
}

func (f *faulty) Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) ([]job.Job, []job.Token, error) {
	f.calls.Add(1)
	if err := f.err.Load(); err != nil {
		return nil, nil, *err
	}
	return f.Store.Exchange(ctx, settle, claim)
}

func (f *faulty) Ping(ctx context.Context) error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return f.Store.Ping(ctx)
}

func (f *faulty) refuse(err error) {
	err = fmt.Errorf("injected: %w", err)
	f.err.Store(&err)
}

func TestEngine_KeepsOutcomesWhileTheDiskIsFull(t *testing.T) {
	for _, problem := range []error{fault.ErrStorageFull, fault.ErrReadOnly, errors.New("something new")} {
		t.Run(problem.Error(), func(t *testing.T) {
			bubble(t, func(r *rig) {
				f := &faulty{Store: r.store}
				r.on("ok", func(context.Context, job.Job) error { time.Sleep(time.Second); return nil })
				r.start(func(o *options) { o.Store = f })
				ids := r.enqueue(repeat(ofType("ok"), 20)...)
				synctest.Wait()
				f.refuse(problem)
				before := f.calls.Load()
				time.Sleep(5 * time.Minute)
				if n := f.calls.Load() - before; n < 10 || n > 80 {
					t.Errorf("%d tries in five minutes", n)
				}
				r.want(ids[0], "active", 0)
				f.err.Store(nil)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				for _, id := range ids {
					r.want(id, "completed", 1)
				}
			})
		})
	}
}

// What a dead process left is settled before anything is claimed, also when the
// store refused it at the start.
func TestEngine_StartsWhileNothingCanBeWritten(t *testing.T) {
	for _, problem := range []error{fault.ErrStorageFull, fault.ErrReadOnly, fault.ErrBusy} {
		t.Run(problem.Error(), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.on("ok", succeed)
				ids := r.enqueue(repeat(ofType("ok"), 2)...)
				claim := job.Claim{Worker: "dead", Now: time.Now(), Lease: time.Hour, Free: map[string]int{"default": 1}}
				if _, _, err := r.store.Exchange(r.Context(), nil, claim); err != nil {
					t.Fatal(err)
				}
				f := &faulty{Store: r.store}
				f.refuse(problem)
				r.start(func(o *options) { o.Store = f })
				time.Sleep(time.Minute)
				r.want(ids[0], "active", 0)
				r.want(ids[1], "available", 0)
				f.err.Store(nil)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if attempts := r.want(ids[0], "completed", 2); len(attempts) != 2 || attempts[0].Outcome != job.Lost {
					t.Errorf("attempts: %+v", attempts)
				}
				r.want(ids[1], "completed", 1)
			})
		})
	}
}

func TestEngine_StopsWhileNothingCouldEverBeWritten(t *testing.T) {
	bubble(t, func(r *rig) {
		id := r.enqueue(ofType("ok"))[0]
		claim := job.Claim{Worker: "dead", Now: time.Now(), Lease: time.Hour, Free: map[string]int{"default": 1}}
		if _, _, err := r.store.Exchange(r.Context(), nil, claim); err != nil {
			t.Fatal(err)
		}
		f := &faulty{Store: r.store}
		f.refuse(fault.ErrStorageFull)
		if err := r.start(func(o *options) { o.Store = f }).Stop(r.Context()); err != nil {
			t.Errorf("Stop: %v", err)
		}
		r.want(id, "active", 0)
	})
}

func TestEngine_StopsClaimingWhenTheStoreBreaks(t *testing.T) {
	bubble(t, func(r *rig) {
		f := &faulty{Store: r.store}
		r.on("ok", func(context.Context, job.Job) error { time.Sleep(time.Second); return nil })
		e := r.start(func(o *options) { o.Store = f })
		r.enqueue(repeat(ofType("ok"), 3)...)
		synctest.Wait()
		f.refuse(fault.ErrBroken)
		time.Sleep(time.Second)
		if err := <-e.Err(); !errors.Is(err, fault.ErrBroken) {
			t.Errorf("Err gives %v", err)
		}
		calls := f.calls.Load()
		r.enqueue(ofType("ok"))
		time.Sleep(time.Hour)
		if f.calls.Load() != calls {
			t.Error("the engine went on after the store broke")
		}
		if err := e.Stop(r.Context()); !errors.Is(err, fault.ErrBroken) {
			t.Errorf("Stop = %v, want the outcomes that were not written", err)
		}
	})
}

// A stop does not wait forever for a database that stays locked.
func TestEngine_StopSaysWhatItCouldNotWrite(t *testing.T) {
	bubble(t, func(r *rig) {
		f := &faulty{Store: r.store}
		r.on("ok", succeed)
		e := r.start(func(o *options) { o.Store = f })
		r.on("ok", func(context.Context, job.Job) error { f.refuse(fault.ErrStorageFull); return nil })
		r.enqueue(ofType("ok"))
		synctest.Wait()
		begin := time.Now()
		err := e.Stop(r.Context())
		if !errors.Is(err, fault.ErrStorageFull) || time.Since(begin) > 30*time.Second {
			t.Errorf("Stop = %v after %v", err, time.Since(begin))
		}
	})
}

var _ engine.Store = (*store.Store)(nil)
