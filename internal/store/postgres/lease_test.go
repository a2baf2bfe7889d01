package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/db"
	"redrive/internal/store/health"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
)

func openAt(t *testing.T, dsn string) (*store.Store, error) {
	t.Helper()
	return store.Open(t.Context(), store.Options{Database: postgres.Server{DSN: dsn}})
}

func mustOpen(t *testing.T, dsn string) *store.Store {
	t.Helper()

	s, err := openAt(t, dsn)
	check(t, err)

	return s
}

func check(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// sql runs statements beside the store.
func sql(t *testing.T, dsn, text string) string {
	t.Helper()
	return postgrestest.Query(t, dsn, text)
}

func add(ctx context.Context, s *store.Store) error {
	j := job.Job{Queue: "orders", Type: "email.send", Policy: retry.Default(), Timeout: time.Minute, Payload: []byte("1")}
	_, err := s.Enqueue(ctx, time.Now(), []job.Job{j})

	return err
}

// A second process learns who works on the database, and takes over at once when the first one
// stops.
func TestLease_IsOfOneProcess(t *testing.T) {
	dsn := postgrestest.New(t)
	first := mustOpen(t, dsn)
	check(t, first.Announce("http://127.0.0.1:8080", "key"))

	_, err := openAt(t, dsn)
	locked, ok := errors.AsType[*health.LockedError](err)
	if !ok || locked.Holder == "" || locked.URL != "http://127.0.0.1:8080" {
		t.Fatalf("the second start says %v", err)
	}

	check(t, first.Close())
	check(t, mustOpen(t, dsn).Close())
}

// A process that slept through the end of its lease writes nothing more, and says why.
func TestLease_ThatWasLostEndsTheWriter(t *testing.T) {
	dsn := postgrestest.New(t)
	first := mustOpen(t, dsn)
	check(t, add(t.Context(), first))

	postgrestest.ExpireLease(t, dsn)
	second := mustOpen(t, dsn)

	err := add(t.Context(), first)
	if !errors.Is(err, fault.ErrBroken) {
		t.Errorf("the first process writes with %v", err)
	}

	select {
	case <-first.Failed():
	default:
		t.Error("the first process goes on")
	}

	check(t, add(t.Context(), second))

	if n := sql(t, dsn, `SELECT count(*) FROM jobs`); n != "2" {
		t.Errorf("%s jobs are there, want 2", n)
	}

	check(t, first.Close())
	check(t, add(t.Context(), second)) // the end of the first one takes nothing from it
	check(t, second.Close())
}

// A connection that the server ended is opened again, and what was under way is run again: no
// caller hears of it.
func TestConn_ComesBack(t *testing.T) {
	dsn := postgrestest.New(t)
	s := mustOpen(t, dsn)
	check(t, add(t.Context(), s))

	for range 3 {
		sql(t, dsn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)

		check(t, add(t.Context(), s))
	}

	if n := sql(t, dsn, `SELECT count(*) FROM jobs`); n != "4" {
		t.Errorf("%s jobs are there, want 4", n)
	}

	if problem := s.Problem(); problem != nil {
		t.Errorf("the problem stays: %v", problem)
	}

	check(t, s.Close())
}

// It is opened again also where transactions of the database are read-only by default by then, as
// some providers make them while the disk is nearly full: those of the store say that they write, and so
// do those of its lease.
func TestConn_ComesBackWhereItMayWrite(t *testing.T) {
	const alter = `BEGIN READ WRITE; DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I %s', current_database()); END $$; COMMIT`

	dsn := postgrestest.New(t)
	s := mustOpen(t, dsn)
	check(t, add(t.Context(), s))

	sql(t, dsn, fmt.Sprintf(alter, `SET default_transaction_read_only = on`))
	defer sql(t, dsn, fmt.Sprintf(alter, `RESET default_transaction_read_only`))
	sql(t, dsn, endSessions)

	check(t, add(t.Context(), s))
	check(t, s.Close())

	if holder := sql(t, dsn, `SELECT holder FROM leases`); holder != "" {
		t.Errorf("the lease still is that of %s", holder)
	}
}

// A statement that waited and failed ends its transaction, also if another part sends the next one: nothing of
// the transaction is committed.
func TestConn_WhatFailedOnTheWayStaysFailed(t *testing.T) {
	dsn := postgrestest.New(t)
	engine, err := postgres.Server{DSN: dsn}.Open(t.Context(), health.New(slog.New(slog.DiscardHandler)))
	check(t, err)
	conn, err := engine.Writer(t.Context())
	check(t, err)

	err = db.Transact(t.Context(), conn, func(tx *db.Tx) error {
		check(t, tx.Run(`INSERT INTO queues (name, paused_at, paused_by) VALUES ('a', 0, '')`))
		check(t, tx.ExecExactly(1, `UPDATE queues SET paused_at = 1 WHERE name = 'none'`)) // it waits

		// Another part of the transaction meets the error, and takes it for its own.
		check(t, tx.Run(`SAVEPOINT part`))
		if _, err := db.Value[int](tx, `SELECT 1`); err == nil {
			t.Error("the query succeeds")
		}

		_ = tx.Run(`ROLLBACK TO SAVEPOINT part`)

		return nil
	})
	if !errors.Is(engine.Fault(err), fault.ErrBroken) {
		t.Errorf("the commit says %v", err)
	}

	if n := sql(t, dsn, `SELECT count(*) FROM queues`); n != "0" {
		t.Errorf("%s rows are there", n)
	}

	check(t, conn.Close())
	check(t, engine.Close())
}

// What became of a commit whose answer was lost is found out: one that took place is not run
// again, and one that did not is.
func TestCommit_ItsLostAnswerIsFoundOut(t *testing.T) {
	for name, reaches := range map[string]bool{"the commit does not reach the server": false, "the answer does not reach the program": true} {
		t.Run(name, func(t *testing.T) {
			dsn := postgrestest.New(t)
			p := postgrestest.NewProxy(t, dsn)
			s := mustOpen(t, p.DSN)
			check(t, add(t.Context(), s))

			p.CutAtCommit(reaches)

			check(t, add(t.Context(), s))
			check(t, add(t.Context(), s))

			if n := sql(t, dsn, `SELECT count(*) FROM jobs`); n != "3" {
				t.Errorf("%s jobs are there, want 3", n)
			}

			check(t, s.Close())
		})
	}
}

// A connection can end at any byte of a commit, and of its answer: the job is there once.
func TestCommit_EndsAtSomeBytes(t *testing.T) { cutCommits(t, 61) }

func TestLong_CommitEndsAtEachByte(t *testing.T) { cutCommits(t, 1) }

// cutCommits cuts the connection of a commit each time after so many bytes more.
func cutCommits(t *testing.T, step int) {
	for name, answer := range map[string]bool{"of the commit": false, "of its answer": true} {
		t.Run(name, func(t *testing.T) {
			dsn := postgrestest.New(t)
			p := postgrestest.NewProxy(t, dsn)
			s := mustOpen(t, p.DSN)
			check(t, add(t.Context(), s))

			jobs, cut := 1, 0
			for after := 0; ; after += step {
				check(t, add(t.Context(), s)) // from here on, its statements are prepared
				p.CutAfter(after, answer)
				check(t, add(t.Context(), s))

				jobs += 2
				if n := sql(t, dsn, `SELECT count(*) FROM jobs`); n != strconv.Itoa(jobs) {
					t.Fatalf("%s jobs are there after %d bytes, want %d", n, after, jobs)
				}

				if !p.HasCut() {
					break
				}
				cut++
			}

			t.Logf("cut %d times", cut)
			if cut == 0 {
				t.Error("nothing was cut")
			}

			check(t, s.Close())

			found, err := store.Examine(t.Context(), postgres.Server{DSN: dsn})
			check(t, err)
			for _, f := range found {
				if f.Problem != "" {
					t.Errorf("%s: %s", f.What, f.Problem)
				}
			}
		})
	}
}

// What a transaction asked together with its commit is asked again when the answer was lost: here,
// whether a failure has opened its group again.
func TestCommit_WhatItAskedIsAskedAgain(t *testing.T) {
	p := postgrestest.NewProxy(t, postgrestest.New(t))
	s := mustOpen(t, p.DSN+"&default_query_exec_mode=exec") // texts travel each time
	now := time.Now().UTC().Truncate(time.Microsecond)

	failOnce := func() {
		check(t, add(t.Context(), s))

		claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{Worker: "w", Now: now, Lease: time.Minute, Free: map[string]int{"orders": 1}})
		check(t, err)

		if len(claimed) != 1 {
			t.Fatalf("%d jobs were claimed", len(claimed))
		}

		ending := job.Ending{Outcome: job.Failed, FinishedAt: now, Error: job.ErrorInfo{Type: "E", Message: "as asked"}}
		_, _, err = s.Exchange(t.Context(), []job.Settlement{claimed[0].Settle(ending, func() float64 { return 1 })}, job.Claim{Now: now})
		check(t, err)
	}

	failOnce()
	groups, err := s.Groups.List(t.Context(), now, failures.Filter{}, failures.Cursor{}, 10)
	check(t, err)
	_, err = s.Groups.Decide(t.Context(), now, groups.Groups[0].Fingerprint, failures.Decision{State: failures.Resolved}, audit.Actor{Name: "eve"})
	check(t, err)

	if open := s.Snapshot().OpenGroups; open != 0 {
		t.Fatalf("%d groups are open before", open)
	}

	p.CutBeside("UPDATE groups")
	failOnce()

	if open := s.Snapshot().OpenGroups; open != 1 || !p.HasCut() {
		t.Errorf("%d groups are open after the failure, want 1; the answer was lost: %t", open, p.HasCut())
	}

	check(t, s.Close())
}
