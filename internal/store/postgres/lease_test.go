package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

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

// sql runs a statement beside the store.
func sql(t *testing.T, dsn, text string) string {
	t.Helper()

	conn, err := pgconn.Connect(t.Context(), dsn)
	check(t, err)
	all, err := conn.Exec(t.Context(), text).ReadAll()
	check(t, err)
	check(t, conn.Close(t.Context()))

	if len(all) == 0 || len(all[0].Rows) == 0 {
		return ""
	}

	return string(all[0].Rows[0][0])
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

	sql(t, dsn, `UPDATE leases SET until = now() - interval '1 second'`)
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
			p := proxyTo(t, dsn)
			s := mustOpen(t, p.dsn)
			check(t, add(t.Context(), s))

			p.cutAtCommit(reaches)

			check(t, add(t.Context(), s))
			check(t, add(t.Context(), s))

			if n := sql(t, dsn, `SELECT count(*) FROM jobs`); n != "3" {
				t.Errorf("%s jobs are there, want 3", n)
			}

			check(t, s.Close())
		})
	}
}

// What a transaction asked together with its commit is asked again when the answer was lost: here,
// whether a failure has opened its group again.
func TestCommit_WhatItAskedIsAskedAgain(t *testing.T) {
	p := proxyTo(t, postgrestest.New(t))
	s := mustOpen(t, p.dsn+"&default_query_exec_mode=exec") // texts travel each time
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

	p.cutWhen("UPDATE groups")
	failOnce()

	if open := s.Snapshot().OpenGroups; open != 1 || p.cut.Load() != 0 {
		t.Errorf("%d groups are open after the failure, want 1; the answer was lost: %t", open, p.cut.Load() == 0)
	}

	check(t, s.Close())
}

// proxy stands between a program and its server.
type proxy struct {
	dsn    string
	server string
	cut    atomic.Int32           // 1: cut before the next commit, 2: after it
	sent   atomic.Int64           // bytes that the server has sent
	beside atomic.Pointer[string] // only a commit together with this text is cut; nil: any
}

func proxyTo(t *testing.T, dsn string) *proxy {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = listener.Close() })

	config, err := pgconn.ParseConfig(dsn)
	check(t, err)

	server := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	p := &proxy{server: server, dsn: strings.Replace(dsn, server, listener.Addr().String(), 1)}
	go p.serve(listener)

	return p
}

func (p *proxy) cutAtCommit(reaches bool) {
	if reaches {
		p.cut.Store(2)
	} else {
		p.cut.Store(1)
	}
}

// cutWhen loses the answer to the next commit that travels together with a text.
func (p *proxy) cutWhen(text string) {
	p.beside.Store(&text)
	p.cut.Store(2)
}

func (p *proxy) serve(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}

		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}

		silent := new(atomic.Bool) // the answers of this connection are lost
		go p.requests(client, server, silent)
		go p.answers(server, client, silent)
	}
}

// requests carries what the program sends, and cuts the connection at a commit.
func (p *proxy) requests(client, server net.Conn, silent *atomic.Bool) {
	defer server.Close()
	defer client.Close()

	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}

		commits := strings.Contains(string(buffer[:n]), "COMMIT")
		if beside := p.beside.Load(); beside != nil && !strings.Contains(string(buffer[:n]), *beside) {
			commits = false
		}

		if commits && p.cut.CompareAndSwap(1, 0) {
			return
		}

		if commits && p.cut.CompareAndSwap(2, 0) {
			silent.Store(true)
		}

		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// answers carries what the server sends.
func (p *proxy) answers(server, client net.Conn, silent *atomic.Bool) {
	defer client.Close()

	buffer := make([]byte, 1<<16)
	for {
		n, err := server.Read(buffer)
		p.sent.Add(int64(n))
		if err != nil || silent.Load() {
			return
		}

		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
