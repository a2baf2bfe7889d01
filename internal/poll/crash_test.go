package poll_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/poll"
	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
	"redrive/internal/store/db"
	"redrive/internal/store/mirror"
	"redrive/internal/store/sources"
)

// errCrash is all that a process says that has ended.
var errCrash = errors.New("the process has ended")

// crash ends the process at one of its steps: before it takes effect, or after that and
// before any caller gets to know it. A step is a commit here, or an act at the source.
type crash struct {
	mu   sync.Mutex
	at   int // two for each step; 0: never
	next int
	dead bool
}

func (c *crash) do(step func() error) error {
	c.mu.Lock()
	c.next += 2
	before, after := c.next == c.at, c.next+1 == c.at
	c.dead = c.dead || before
	dead := c.dead
	c.mu.Unlock()
	if dead {
		return errCrash
	}
	err := step()
	if after {
		c.mu.Lock()
		c.dead = true
		c.mu.Unlock()
		return errCrash
	}
	return err
}

func (c *crash) happened() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// set ends the process, or begins another one.
func (c *crash) set(dead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = dead
}

// mortal are the store and the ledger of a process that can end.
type mortal struct {
	*mirror.Mirror
	*sources.Projection
	crash *crash
}

func (m mortal) Update(ctx context.Context, now time.Time, name string, records []source.Record) (n int, err error) {
	err = m.crash.do(func() (err error) { n, err = m.Mirror.Update(ctx, now, name, records); return err })
	return n, err
}

func (m mortal) SettleActs(ctx context.Context, now time.Time, results []source.Result) error {
	return m.crash.do(func() error { return m.Mirror.SettleActs(ctx, now, results) })
}

func (m mortal) Take(ctx context.Context, name string, most int) (acts []source.Act, err error) {
	err = m.crash.do(func() (err error) { acts, err = m.Projection.Take(ctx, name, most); return err })
	return acts, err
}

func (m mortal) Reopen(ctx context.Context, ids []int64) error {
	return m.crash.do(func() error { return m.Projection.Reopen(ctx, ids) })
}

// queue is a system with dead records and work to do, which counts what reaches it.
type queue struct {
	mu    sync.Mutex
	crash *crash
	dead  map[string]source.Record
	work  map[string]int // how often a replay brought it there
	tells bool           // what is under way
}

func newQueue(tells bool) *queue {
	q := &queue{dead: map[string]source.Record{}, work: map[string]int{}, tells: tells}
	for n := range 3 {
		q.die(fmt.Sprint("k", n), "1")
	}
	return q
}

// die makes a record dead.
func (q *queue) die(key, token string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dead[key] = record(key, token)
}

// take takes a record away, as another program does at the source.
func (q *queue) take(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.dead, key)
}

// forget forgets what a replay brought to work.
func (q *queue) forget(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.work, key)
}

// now is how many records are dead, and what came to work.
func (q *queue) now() (dead int, work map[string]int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.dead), maps.Clone(q.work)
}

func (q *queue) Check(context.Context) (source.Report, error) { return source.Report{}, nil }
func (q *queue) Close() error                                 { return nil }

func (q *queue) Scan(context.Context, string, int) (page source.Page, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.dead {
		page.Records = append(page.Records, r)
	}
	return page, nil
}

func (q *queue) Act(_ context.Context, acts []source.Act) (results []source.Result, err error) {
	for _, a := range acts {
		err := q.crash.do(func() error { results = append(results, q.act(a)); return nil })
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// act is one transaction of the system.
func (q *queue) act(a source.Act) source.Result {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch r, dead := q.dead[a.Key]; {
	case !dead:
		return source.Result{ID: a.ID, State: source.Gone}
	case r.VersionToken != a.VersionToken:
		return source.Result{ID: a.ID, State: source.Changed}
	}
	delete(q.dead, a.Key)
	if a.Kind == source.Replay {
		q.work[a.Key]++
	}
	return source.Result{ID: a.ID, State: source.Done}
}

func (q *queue) Find(_ context.Context, acts []source.Act) (results []source.Result, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range acts {
		r, dead := q.dead[a.Key]
		results = append(results, found(a, dead, r.VersionToken, q.tells && q.work[a.Key] > 0))
	}
	return results, nil
}

// found is what a source knows of an act: whether its record is dead, with which version token,
// or came to work.
func found(a source.Act, dead bool, token string, works bool) source.Result {
	state := source.Gone
	switch {
	case dead && token == a.VersionToken:
		state = source.Asked
	case dead:
		state = source.Changed
	case works:
		state = source.Done
	}
	return source.Result{ID: a.ID, State: state}
}

func (*queue) Succeeded(context.Context, []source.ReplayedJob) ([]source.Success, error) {
	return nil, nil
}

// life is a database that outlives the processes that work on it.
type life struct {
	*testing.T
	store *store.Store
	now   atomic.Pointer[poll.Sources]
	queue *queue
	open  func(context.Context) (source.Origin, error) // the queue, unless a test says otherwise
	every time.Duration
}

// bubble runs a test in a synctest bubble. The database is made outside: those of a server are
// handed from test to test.
func bubble(t *testing.T, test func(t *testing.T, database db.Database)) {
	t.Helper()
	database := databasetest.Database(t)
	synctest.Test(t, func(t *testing.T) { test(t, database) })
}

func newLife(t *testing.T, database db.Database, tells bool) *life {
	l := &life{T: t, queue: newQueue(tells), every: time.Second}
	l.open = func(context.Context) (source.Origin, error) { return l.queue, nil }
	var err error
	l.store, err = store.Open(t.Context(), store.Options{
		Database: database,
		OnCommit: func(changes []job.Change) {
			if now := l.now.Load(); now != nil {
				now.Changed(changes)
			}
		},
	})
	check(t, err)
	return l
}

// process works until it is closed, or ends at a step. It returns between two rounds: what a
// test does next happens at one moment of the fake clock, in which the source is not read
// unless it takes time.
func (l *life) process(c *crash) *poll.Sources {
	l.queue.crash = c
	now := poll.New([]poll.Attached{{
		Name: "shop", Preset: preset.All()["sidekiq"], Allow: []source.Kind{source.Replay, source.Discard}, Every: l.every,
		Open: l.open,
	}}, func(s string) string { return s }, slog.New(slog.DiscardHandler))
	l.now.Store(now)
	m := mortal{l.store.Mirror, l.store.Sources, c}
	now.Start(m, m, m)
	time.Sleep(10*time.Second + time.Second/2)
	return now
}

// jobs are those of the three records by their types.
func (l *life) jobs() map[string]job.Job {
	l.Helper()
	all := l.all()
	if len(all) != 3 {
		l.Errorf("jobs of %d records, want 3", len(all))
	}
	return all
}

// all are the jobs of the source by their types, one for each record.
func (l *life) all() map[string]job.Job {
	l.Helper()
	list, err := l.store.Jobs(l.Context(), filter.Filter{Source: "shop"}, filter.Cursor{}, 100)
	check(l.T, err)
	all := map[string]job.Job{}
	for _, j := range list.Jobs {
		all[j.Type] = j
	}
	if len(list.Jobs) != len(all) {
		l.Errorf("%d jobs of %d records", len(list.Jobs), len(all))
	}
	return all
}

// acts are what the ledger has, the newest first.
func (l *life) acts() []source.Act {
	l.Helper()
	acts, err := l.store.Sources.Acts(l.Context(), "shop", 10)
	check(l.T, err)
	return acts
}

// ask asks for two replays and a discard, unless that was done before.
func (l *life) ask() {
	l.Helper()
	all := l.jobs()
	for _, key := range []string{"k0", "k1"} {
		_, err := l.store.Replay(l.Context(), time.Now(), all["charge "+key].ID, 1, ana)
		check(l.T, err)
	}
	_, err := l.store.Discard(l.Context(), time.Now(), all["charge k2"].ID, 1, ana)
	check(l.T, err)
	time.Sleep(10 * time.Second)
}

// tell lives one life with a crash at a step, and reports whether there was one. A new
// process follows, which can reach the source.
func tell(t *testing.T, database db.Database, tells bool, at int) (crashed bool) {
	l, c := newLife(t, database, tells), &crash{at: at}
	defer func() { check(t, l.store.Close()) }()
	first := l.process(c)
	early := c.happened() // before a user could see the record and ask
	if !early {
		l.ask()
	}
	crashed = c.happened()
	first.Close()
	second := l.process(&crash{})
	defer func() { second.Close() }()
	if early {
		l.ask()
	}
	l.settled()
	l.queue.die("k0", "2")
	time.Sleep(10 * time.Second)
	if j := l.jobs()["charge k0"]; j.Run != 2 || j.Status() != job.StatusDeadLetter {
		t.Errorf("the replay that failed again is %s in run %d", j.Status(), j.Run)
	}
	return crashed
}

// settled fails unless each act took place exactly once and the ledger says so: a
// source that does not tell what is under way may leave a replay unknown.
func (l *life) settled() {
	l.Helper()
	if dead, work := l.queue.now(); dead != 0 || !maps.Equal(work, map[string]int{"k0": 1, "k1": 1}) {
		l.Errorf("%d are dead and %v came to work, want k0 and k1 once each", dead, work)
	}
	acts := l.acts()
	if len(acts) != 3 {
		l.Errorf("%d acts in the ledger", len(acts))
	}
	for _, a := range acts {
		if a.State != source.Done && (l.queue.tells || a.State != source.Unknown) {
			l.Errorf("the %s of %s is %s: %s", a.Kind, a.Key, a.State, a.Why)
		}
	}
	if j := l.jobs()["charge k1"]; j.State != job.Returned || j.Run != 2 {
		l.Errorf("the replayed job is %s in run %d", j.State, j.Run)
	}
}

// What had begun when a process ended and did not happen is not said to be done: the
// record has died again meanwhile, or another program replayed it.
func TestSources_WhatDidNotHappenIsNotDone(t *testing.T) {
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		defer func() { check(t, l.store.Close()) }()
		l.process(&crash{}).Close()
		for _, key := range []string{"k0", "k1"} {
			_, err := l.store.Discard(t.Context(), time.Now(), l.jobs()["charge "+key].ID, 1, ana)
			check(t, err)
		}
		begun, err := l.store.Sources.Take(t.Context(), "shop", 10)
		if len(begun) != 2 || err != nil {
			t.Fatalf("%+v, %v", begun, err)
		}
		l.queue.die("k0", "2")
		l.queue.act(source.Act{Kind: source.Replay, Record: source.Record{Key: "k1", VersionToken: "1"}})
		defer l.process(&crash{}).Close()
		ended := map[string]source.State{}
		for _, a := range l.acts() {
			ended[a.Key] = a.State
		}
		if want := map[string]source.State{"k0": source.Changed, "k1": source.Gone}; !maps.Equal(ended, want) {
			t.Errorf("the discards are %v, not %v", ended, want)
		}
		if j := l.jobs()["charge k0"]; j.Status() != job.StatusDeadLetter {
			t.Errorf("what is dead is %s", j.Status())
		}
	})
}

// The process ends at every fourth of its steps in turn. Whatever it was doing, no act is
// lost and none is done twice, and where the source tells what is under way, nothing is
// left unknown.
func TestSources_ACrashLosesAndDoublesNothing(t *testing.T) { crashes(t, 4) }

func TestLong_SourcesACrashAtAnyStepLosesAndDoublesNothing(t *testing.T) { crashes(t, 1) }

func crashes(t *testing.T, stride int) {
	t.Helper()
	for _, tells := range []bool{true, false} {
		crashes := 0
		for at, crashed := 2, true; crashed && !t.Failed(); at += stride {
			t.Run(fmt.Sprintf("tells %v, step %d", tells, at), func(t *testing.T) {
				bubble(t, func(t *testing.T, database db.Database) { crashed = tell(t, database, tells, at) })
			})
			if crashed {
				crashes++
			}
		}
		if crashes < 12/stride {
			t.Errorf("%d steps ended a process, want all of a mirror, three acts and their ledger", crashes)
		}
	}
}
