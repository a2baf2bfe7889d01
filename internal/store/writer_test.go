package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"redrive/internal/audit"
	"redrive/internal/fault"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/sqlite"
)

// block makes the writer wait inside an operation until release is called.
func block(t *testing.T, s *Store) (release func()) {
	t.Helper()
	entered, gate := make(chan struct{}), make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		first := true
		_, err := db.Write(context.Background(), s.writer, 1, func(*db.Tx) (int, error) {
			if first {
				first = false
				close(entered)
				<-gate
			}
			return 0, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-entered
	return func() { close(gate); ended.Wait() }
}

func TestWriter_CommitsWhatHasQueuedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var commits []int
		s := open(t, Options{OnCommit: func(changes []job.Change) {
			mu.Lock()
			defer mu.Unlock()
			commits = append(commits, len(changes))
		}})
		release := block(t, s)
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() { enqueue(t, s, 1) })
		}
		synctest.Wait() // all stand in the queue
		release()
		callers.Wait()
		if len(commits) != 1 || commits[0] != 50 {
			t.Errorf("commits of %v jobs, want one of 50", commits)
		}
	})
}

// Who writes little does not wait for two others in turn who write much.
func TestWriter_LittleGoesBeforeMuchAfterMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		const muchRows = 250
		var order []string // in which the writer runs them
		var callers sync.WaitGroup
		queue := func(rows int, do func()) {
			callers.Go(func() {
				if _, err := db.Write(context.Background(), s.writer, rows, func(*db.Tx) (int, error) { do(); return 0, nil }); err != nil {
					t.Error(err)
				}
			})
		}
		entered, gate := make(chan struct{}), make(chan struct{})
		queue(muchRows, func() { close(entered); <-gate })
		<-entered
		for _, o := range []struct {
			name string
			rows int
		}{{"much", muchRows}, {"little", 1}, {"more", muchRows}, {"too", muchRows - 1}} {
			queue(o.rows, func() { order = append(order, o.name) })
			synctest.Wait() // all stand in the queue
		}
		close(gate)
		callers.Wait()
		if want := []string{"little", "too", "much", "more"}; !slices.Equal(order, want) {
			t.Errorf("they went in the order %q, want %q", order, want)
		}
	})
}

func TestWriter_AFaultMeetsItsOwnerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		taken := enqueue(t, s, 1)[0].Job
		release := block(t, s)
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() { enqueue(t, s, 2) })
		}
		callers.Go(func() { enqueueTaken(t, s, taken.ID, testJob("a"), testJob("b")) })
		synctest.Wait() // all stand in the queue
		release()
		callers.Wait()
		if n := s.Snapshot().Depths.Jobs(); n != 41 {
			t.Errorf("%d jobs, want 41", n)
		}
		sums(t, s)
	})
}

// enqueueTaken enqueues jobs of which the last has an id that another one has: a fault
// that the writer meets in the middle of its transaction.
func enqueueTaken(t *testing.T, s *Store, id string, jobs ...job.Job) {
	t.Helper()
	jobs[len(jobs)-1].ID = id
	if _, err := s.Enqueue(context.Background(), testTime, jobs); !errors.As(err, new(*job.Conflict)) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// sums checks that the rollups in memory are those of the tables.
func sums(t *testing.T, s *Store) {
	t.Helper()
	want := s.Snapshot()
	got := stats.Depths{}
	rows, err := s.engine.Reads().Query("SELECT state, count(*) FROM jobs GROUP BY state")
	check(t, err)
	for rows.Next() {
		var state string
		var n int64
		check(t, rows.Scan(&state, &n))
		got[job.Status(state)] = n
	}
	check(t, rows.Err())
	for _, state := range job.States() {
		if got[job.Status(state)] != want.Depths[job.Status(state)] {
			t.Errorf("%d jobs %s, the snapshot says %d", got[job.Status(state)], state, want.Depths[job.Status(state)])
		}
	}
}

// Nothing is kept, and nothing written, for a caller who left before it was begun.
func TestWriter_DropsWhatNoCallerWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		release := block(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		var caller sync.WaitGroup
		caller.Go(func() {
			if _, err := s.Enqueue(ctx, testTime, []job.Job{testJob("1"), testJob("2")}); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait() // all stand in the queue
		cancel()
		caller.Wait()
		release()
		enqueue(t, s, 1) // comes after it
		if n := s.Snapshot().Depths.Jobs(); n != 1 {
			t.Errorf("%d jobs, want 1", n)
		}
	})
}

// A caller that finds the writer idle commits in its own goroutine, and learns the
// result even if its context ends meanwhile.
func TestWriter_LeavesACallerThatIsAloneItsOwnCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		n, err := db.Write(ctx, s.writer, 1, func(*db.Tx) (int, error) { cancel(); return 1, nil })
		if n != 1 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		if _, err := db.Write(ctx, s.writer, 1, func(*db.Tx) (int, error) { t.Error("begun"); return 0, nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("of a caller that has left: %v", err)
		}
	})
}

// What an operation that panics left behind must not become part of another one,
// even if a caller recovers from the panic.
func TestWriter_EndsWithAPanic(t *testing.T) {
	s := open(t, Options{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = db.Write(t.Context(), s.writer, 1, func(*db.Tx) (int, error) { panic("a defect") })
	}()
	<-s.Failed()
	if _, err := s.Enqueue(t.Context(), testTime, []job.Job{testJob("1")}); !errors.Is(err, fault.ErrBroken) || !strings.Contains(err.Error(), "a defect") {
		t.Errorf("afterwards: %v", err)
	}
}

// What waits for a disk that stands still is bounded in bytes. The place of one
// that waits is free when its caller leaves; that of one under way when it ends,
// whether or not its caller has left.
func TestWriter_BoundsTheBytesThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{MaxBytes: 1000})
		begin := block(t, s) // so that the next one has to queue, and can leave when it is under way
		entered, gate := make(chan struct{}), make(chan struct{})
		var callers sync.WaitGroup
		underWay, leave := context.WithCancel(t.Context())
		callers.Go(func() {
			_, err := db.WriteLarge(underWay, s.writer, db.Size{Rows: 1, Bytes: 400}, func(*db.Tx) (int, error) {
				close(entered)
				<-gate
				return 0, nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the one under way: %v", err)
			}
		})
		synctest.Wait()
		begin()
		<-entered
		leave()
		of := func(bytes int) []job.Job { return []job.Job{testJob(strings.Repeat("x", bytes))} }
		waiting, give := context.WithCancel(t.Context())
		callers.Go(func() {
			if _, err := s.Enqueue(waiting, testTime, of(500)); !errors.Is(err, context.Canceled) {
				t.Errorf("the one that waits: %v", err)
			}
		})
		synctest.Wait()
		refused := func(bytes int) {
			t.Helper()
			if _, err := s.Enqueue(t.Context(), testTime, of(bytes)); !errors.Is(err, fault.ErrOverloaded) || !errors.Is(err, fault.ErrBusy) {
				t.Errorf("%d bytes: %v", bytes, err)
			}
		}
		refused(200)
		give()
		synctest.Wait()
		refused(700)
		callers.Go(func() {
			if _, err := s.Enqueue(t.Context(), testTime, of(500)); err != nil {
				t.Errorf("after one has left: %v", err)
			}
		})
		synctest.Wait()
		close(gate)
		callers.Wait()
		_, err := s.Enqueue(t.Context(), testTime, of(5000)) // alone, it is not refused
		check(t, err)
	})
}

// A worker's outcome is never refused for what others let wait.
func TestWriter_SettlesHoweverMuchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{MaxBytes: 10})
		enqueue(t, s, 1)
		claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{Now: testTime, Lease: time.Minute, Free: map[string]int{"orders": 1}})
		check(t, err)
		release := block(t, s)
		var callers sync.WaitGroup
		callers.Go(func() { enqueue(t, s, 1) })
		synctest.Wait()
		callers.Go(func() {
			end := job.Ending{Outcome: job.Failed, FinishedAt: testTime, Trace: strings.Repeat("x", 1000)}
			_, stale, err := s.Exchange(t.Context(), []job.Settlement{claimed[0].Settle(end, nil)}, job.Claim{})
			if err != nil || len(stale) > 0 {
				t.Errorf("%v, %v", stale, err)
			}
		})
		synctest.Wait()
		release()
		callers.Wait()
	})
}

// Payloads are large, and the next jobs may come much later.
func TestStore_KeepsNoTextOfJobsInMemory(t *testing.T) {
	s := open(t, Options{})
	large := testJob("1")
	large.Payload, large.Meta, large.MessageID = []byte(strings.Repeat("p", 1<<16)), []byte(`{"a":"`+strings.Repeat("m", 1<<16)+`"}`), "m1"
	large.Envelope = []byte(strings.Repeat("e", 1<<16))
	_, err := s.Enqueue(t.Context(), testTime, []job.Job{large})
	check(t, err)
	if n := len(s.named.In(new(db.Tx)).messages); n != 0 {
		t.Errorf("%d new jobs are kept after their commit", n)
	}
	claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{Now: testTime, Lease: time.Minute, Free: map[string]int{"orders": 1}})
	check(t, err)
	active, ok := s.local.active[claimed[0].ID]
	if !ok || active.Payload != nil || active.Meta != nil || active.Envelope != nil {
		t.Errorf("the active job is kept with %d, %d and %d bytes", len(active.Payload), len(active.Meta), len(active.Envelope))
	}
}

// What a transaction gathers is its own: two that are under way do not see each other, and
// nothing is left of one that fails.
func TestStore_TwoTransactionsGatherApart(t *testing.T) {
	s := open(t, Options{})
	first, second := new(db.Tx), new(db.Tx)

	j := testJob("1")
	j.State, j.ChangedAt = job.Available, testTime
	s.core.Move(first, nil, &j, stats.Totals{Replayed: 1})
	check(t, s.pauses.setPaused(first, "orders", true))
	check(t, s.leases.began(first, []job.Job{j}))
	number, err := s.numbers.Number(first)
	check(t, err)

	for _, seen := range []struct {
		by              *db.Tx
		waits, newest   int64
		paused, changed bool
	}{{first, 1, number, true, true}, {second, 0, number - 1, false, false}, {new(db.Tx), 0, number - 1, false, false}} {
		waits, err := s.depths.mayWait(seen.by, "orders", job.Available)
		check(t, err)
		paused, err := s.pauses.isPaused(seen.by, "orders")
		check(t, err)
		newest, err := s.numbers.Newest(seen.by)
		check(t, err)
		_, runs, err := s.leases.execution(seen.by, j.Token)
		check(t, err)

		if waits != seen.waits || paused != seen.paused || newest != seen.newest || runs != seen.changed ||
			len(s.core.Changes(seen.by)) > 0 != seen.changed {
			t.Errorf("%d jobs wait, paused %t, the newest is %d, under way %t; want %+v", waits, paused, newest, runs, seen)
		}
	}
}

// rival is another process's connection.
func rival(t *testing.T, s *Store) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+pathOf(t, s))
	check(t, err)
	conn, err := db.Conn(t.Context())
	check(t, err)
	t.Cleanup(func() { check(t, conn.Close()); check(t, db.Close()) })
	return conn
}

func TestWriter_BusyDatabaseIsTriedAgainThenReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		other := rival(t, s)
		_, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
		check(t, err)
		start := time.Now()
		_, err = s.Enqueue(t.Context(), testTime, []job.Job{testJob("1")})
		if !errors.Is(err, fault.ErrBusy) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(start); waited < 500*time.Millisecond || waited > time.Minute {
			t.Errorf("gave up after %v", waited)
		}
		_, err = other.ExecContext(t.Context(), "COMMIT")
		check(t, err)
		enqueue(t, s, 1)
		if n := s.Snapshot().Depths.Jobs(); n != 1 {
			t.Errorf("%d jobs, want 1", n)
		}
	})
}

func TestWriter_BusyDatabaseThatIsSoonFreeIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		other := rival(t, s)
		_, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
		check(t, err)
		var caller sync.WaitGroup
		caller.Go(func() { enqueue(t, s, 1) })
		time.Sleep(100 * time.Millisecond) // while the writer tries again
		_, err = other.ExecContext(t.Context(), "ROLLBACK")
		check(t, err)
		caller.Wait()
	})
}

func TestWriter_FullDiskIsReportedAndSurvived(t *testing.T) {
	s := open(t, Options{})
	enqueue(t, s, 3)
	limit := func(pages string) {
		t.Helper()
		_, err := db.Write(t.Context(), s.writer, 1, func(t *db.Tx) (int, error) {
			_, err := t.Exec("PRAGMA max_page_count = " + pages)
			return 0, err
		})
		check(t, err)
	}
	limit("1")
	before := s.Snapshot()
	jobs := []job.Job{testJob("1"), testJob(strings.Repeat("x", 300_000))}
	if _, err := s.Enqueue(t.Context(), testTime, jobs); !errors.Is(err, fault.ErrStorageFull) {
		t.Errorf("got %v", err)
	}
	if now := s.Snapshot(); now.Seq != before.Seq {
		t.Errorf("the snapshot went from %+v to %+v", before, now)
	}
	sums(t, s)
	limit("1000000")
	_, err := s.Enqueue(t.Context(), testTime, jobs)
	check(t, err)
	sums(t, s)
}

func TestWriter_ReadOnlyFileIsReported(t *testing.T) {
	s, readOnly := openSwitchable(t)
	readOnly.Store(true)
	if _, err := s.Enqueue(t.Context(), testTime, []job.Job{testJob("1")}); !errors.Is(err, fault.ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	readOnly.Store(false)
	enqueue(t, s, 1)
}

// A program that edits the file behind the store's back makes the store stop: what
// the store knows in memory is no longer true.
func TestWriter_StopsForGoodWhenTheFileCannotBeTrusted(t *testing.T) {
	s := open(t, Options{})
	enqueue(t, s, 2)
	claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{Now: testTime, Lease: time.Minute, Free: map[string]int{"orders": 2}})
	check(t, err)
	other := rival(t, s)
	_, err = other.ExecContext(t.Context(), "UPDATE jobs SET state = 'completed'")
	check(t, err)
	var settle []job.Settlement
	for _, j := range claimed {
		settle = append(settle, j.Settle(job.Ending{Outcome: job.Succeeded, FinishedAt: testTime}, nil))
	}
	if _, _, err := s.Exchange(t.Context(), settle, job.Claim{}); !errors.Is(err, fault.ErrBroken) {
		t.Errorf("got %v", err)
	}
	<-s.Failed()
	if _, err := s.Enqueue(t.Context(), testTime, []job.Job{testJob("1")}); !errors.Is(err, fault.ErrBroken) {
		t.Errorf("afterwards: %v", err)
	}
	if _, err := s.Job(t.Context(), claimed[0].ID); err != nil {
		t.Errorf("reading afterwards: %v", err)
	}
}

func TestWriter_ReadersDoNotWaitForIt(t *testing.T) {
	s := open(t, Options{})
	j := enqueue(t, s, 1)[0].Job
	release := block(t, s)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Job(ctx, j.ID); err != nil {
		t.Error(err)
	}
	if page, err := s.Jobs(ctx, filter.Filter{}, filter.Cursor{}, 10); err != nil || len(page.Jobs) != 1 {
		t.Errorf("%d jobs, %v", len(page.Jobs), err)
	}
}

func TestClose_FinishesWhatHasQueuedAndLeavesNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		path := filepath.Join(t.TempDir(), "jobs.db")
		s, err := Open(context.Background(), Options{Database: sqlite.File{Path: path}})
		check(t, err)
		release := block(t, s)
		var callers sync.WaitGroup
		for range 300 {
			callers.Go(func() { enqueue(t, s, 1) })
		}
		synctest.Wait() // all stand in the queue
		release()
		check(t, s.Close())
		callers.Wait()
		if _, err := s.Enqueue(context.Background(), testTime, []job.Job{testJob("1")}); !errors.Is(err, db.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		s, err = Open(context.Background(), Options{Database: sqlite.File{Path: path}})
		check(t, err)
		if n := s.Snapshot().Depths.Jobs(); n != 300 {
			t.Errorf("%d jobs, want 300", n)
		}
		check(t, s.Close())
	})
}

func TestOnCommit_TellsWhatMoved(t *testing.T) {
	var told []string
	s := open(t, Options{OnCommit: func(changes []job.Change) {
		for _, c := range changes {
			told = append(told, fmt.Sprintf("%s failed=%v", c.Status(), c.Failed))
		}
	}})
	enqueue(t, s, 1)
	claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{Now: testTime, Lease: time.Minute, Free: map[string]int{"orders": 1}})
	check(t, err)
	settlement := claimed[0].Settle(job.Ending{Outcome: job.Failed, FinishedAt: testTime}, nil)
	_, _, err = s.Exchange(t.Context(), []job.Settlement{settlement}, job.Claim{})
	check(t, err)
	if _, err := s.Replay(t.Context(), testTime, claimed[0].ID, 7, audit.Actor{Name: "eve"}); err == nil {
		t.Error("replay of run 7")
	}
	want := "[available failed=false active failed=false dead_letter failed=true]"
	if got := fmt.Sprint(told); got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

// A queue that is paused or resumed moves no job, but pages show it, and a resumed
// one lets jobs run: the listener is called, once for each.
func TestStore_TellsThatAQueueWasPausedAndResumed(t *testing.T) {
	calls := make(chan int, 10)
	s := open(t, Options{OnCommit: func(c []job.Change) { calls <- len(c) }})
	for _, act := range []func(context.Context, time.Time, string, audit.Actor) error{s.Pause, s.Resume} {
		check(t, act(t.Context(), testTime, "orders", audit.Actor{Name: "eve"}))
		if n := <-calls; n != 0 || len(calls) > 0 {
			t.Errorf("told of %d changes, and %d times more; want one call without changes", n, len(calls))
		}
	}
}

// A page of a source that is rolled back because of another operation's fault is taken over
// again, with all that is known of its records.
func TestMirror_IsRepeatedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		taken := enqueue(t, s, 1)[0].Job
		release := block(t, s)
		var callers sync.WaitGroup
		callers.Go(func() {
			earlier := source.Failure{Number: 1, At: testTime, Error: job.ErrorInfo{Message: "first"}}
			r := source.Record{
				Key: "1", Lineage: "1", Place: "failed", Queue: "orders", Type: "charge", Attempts: 2, FailedAt: testTime,
				CreatedAt: testTime, Payload: []byte("{}"), Error: job.ErrorInfo{Message: "second"}, History: []source.Failure{earlier},
			}
			if n, err := s.Mirror.Update(context.Background(), testTime, "shop", []source.Record{r}); n != 1 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		})
		synctest.Wait()
		callers.Go(func() { enqueueTaken(t, s, taken.ID, testJob("a")) })
		synctest.Wait()
		release()
		callers.Wait()
		var n, newest int
		check(t, s.engine.Reads().QueryRow("SELECT count(*), max(execution) FROM attempts").Scan(&n, &newest))
		if n != 2 || newest != 2 {
			t.Errorf("%d attempts up to number %d, want both failures", n, newest)
		}
	})
}

// What a source brings waits in a place of its own: it is never counted against producers, nor
// they against it.
func TestWriter_BytesOfASourceTakeNoRoomFromProducers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{MaxBytes: 1000})
		begin := block(t, s)
		var callers sync.WaitGroup
		large := source.Record{Key: "1", Queue: "q", Type: "t", Payload: []byte(strings.Repeat("x", 5000))}
		callers.Go(func() {
			if n, err := s.Mirror.Update(t.Context(), testTime, "shop", []source.Record{large}); n != 1 || err != nil {
				t.Errorf("%d records, %v", n, err)
			}
		})
		synctest.Wait()
		callers.Go(func() {
			if _, err := s.Enqueue(t.Context(), testTime, []job.Job{testJob(strings.Repeat("x", 900))}); err != nil {
				t.Errorf("a producer: %v", err)
			}
		})
		synctest.Wait()
		if _, err := s.Enqueue(t.Context(), testTime, []job.Job{testJob(strings.Repeat("x", 900))}); !errors.Is(err, fault.ErrOverloaded) {
			t.Errorf("a second producer: %v", err)
		} else if strings.Contains(err.Error(), "another process") {
			t.Errorf("%v blames another process", err)
		}
		callers.Go(func() {
			if _, err := s.Mirror.Update(t.Context(), testTime, "mail", []source.Record{large}); err != nil {
				t.Errorf("another source: %v", err)
			}
		})
		synctest.Wait()
		begin()
		callers.Wait()
	})
}
