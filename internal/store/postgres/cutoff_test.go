package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/store"
	"redrive/internal/store/db"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
)

// endSessions ends the connections of all programs.
const endSessions = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`

// within ends a test whose step hangs.
func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()

	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s: still waiting after a minute", what)
	}
}

// inBackground runs a step whose end is waited for.
func inBackground(do func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)

		do()
	}()

	return done
}

// A server that lost commits which it had acknowledged is behind the memory of the process: it
// writes nothing more, and says why.
func TestServer_ThatLostCommitsEndsTheWriter(t *testing.T) {
	dsn := postgrestest.New(t)
	s := mustOpen(t, dsn)
	check(t, add(t.Context(), s))
	check(t, add(t.Context(), s))

	sql(t, dsn, `UPDATE nodes SET commits = commits - 1`)
	sql(t, dsn, endSessions)

	err := add(t.Context(), s)
	if !errors.Is(err, fault.ErrBroken) || !strings.Contains(err.Error(), "lost") || !strings.Contains(err.Error(), "restart") {
		t.Errorf("the next job says %v", err)
	}

	check(t, s.Close())
}

// A process that writes nothing learns of it, too: pages would show what is not there.
func TestServer_ThatLostCommitsIsNoticedWithoutAWrite(t *testing.T) {
	dsn := postgrestest.New(t)
	s := mustOpen(t, dsn)
	check(t, add(t.Context(), s))

	sql(t, dsn, `UPDATE nodes SET commits = commits - 1`)

	within(t, "the process notices", s.Failed())
	check(t, s.Close())
}

// A store whose server has gone silent can be closed, also while a commit is under way.
func TestClose_EndsWhileTheServerIsSilent(t *testing.T) {
	p := postgrestest.NewProxy(t, postgrestest.New(t))
	s := mustOpen(t, p.DSN)
	check(t, add(t.Context(), s))

	p.Freeze(t)

	written := inBackground(func() { _ = add(context.Background(), s) })
	within(t, "the commit has begun", p.Held)

	closed := inBackground(func() { _ = s.Close() })
	within(t, "the store is closed", closed)
	within(t, "the caller is told", written)
}

// So can one whose server went away in the middle of a commit, although what became of the
// commit is not known.
func TestClose_EndsWhileTheServerIsAway(t *testing.T) {
	p := postgrestest.NewProxy(t, postgrestest.New(t))
	s := mustOpen(t, p.DSN)
	check(t, add(t.Context(), s))

	p.Refuse()
	p.CutAtCommit(false)

	written := inBackground(func() { _ = add(context.Background(), s) })
	within(t, "the commit is cut", p.Held)

	closed := inBackground(func() { _ = s.Close() })

	within(t, "the store is closed", closed)
	within(t, "the caller is told", written)
}

// A process that is cut off learns by its own clock that its lease is over, before another one
// can take it, and nothing that it began waits any longer.
func TestLease_ThatIsOverEndsTheWriter(t *testing.T) {
	p := postgrestest.NewProxy(t, postgrestest.New(t))
	s := mustOpen(t, p.DSN)
	check(t, add(t.Context(), s))

	p.Freeze(t)

	written := inBackground(func() {
		err := add(context.Background(), s)
		if err == nil {
			t.Error("a job was written through a frozen connection")
		}
	})

	within(t, "the store fails", s.Failed())
	within(t, "the caller is told", written)

	if problem := s.Problem(); !errors.Is(problem, fault.ErrTakenOver) {
		t.Errorf("the problem is %v", problem)
	}

	err := add(t.Context(), s)
	if !errors.Is(err, fault.ErrTakenOver) {
		t.Errorf("the next job says %v", err)
	}

	within(t, "the store is closed", inBackground(func() { _ = s.Close() }))
}

// What a process that died or was frozen has locked is free for the next one at once.
func TestLease_EndsTheSessionsOfItsFormerHolder(t *testing.T) {
	dsn := postgrestest.New(t)
	first := mustOpen(t, dsn)
	holder := sql(t, dsn, `SELECT holder FROM leases`)

	// A session of the first process is in the middle of a transaction, and so is one of another
	// program.
	postgrestest.ExpireLease(t, dsn)
	frozen := session(t, dsn, "redrive "+holder, `BEGIN; SELECT 1 FROM leases FOR SHARE; SELECT 1 FROM revision FOR UPDATE`)
	other := session(t, dsn, "redrive", `BEGIN; SELECT 1`)

	second := mustOpen(t, dsn)
	check(t, add(t.Context(), second))

	if _, err := frozen.Exec(t.Context(), `SELECT 1`).ReadAll(); err == nil {
		t.Error("the session of the former holder goes on")
	}

	if _, err := other.Exec(t.Context(), `SELECT 1`).ReadAll(); err != nil {
		t.Errorf("another program lost its session: %v", err)
	}

	check(t, first.Close())
	check(t, second.Close())
}

// A commit that waits, as for a replica, does not keep the lease from being renewed.
func TestLease_IsRenewedWhileACommitWaits(t *testing.T) {
	dsn := postgrestest.New(t)
	s := mustOpen(t, dsn)
	holder := sql(t, dsn, `SELECT holder FROM leases`)

	waiting := session(t, dsn, "a commit", `BEGIN; SELECT check_lease('`+holder+`')`)
	sql(t, dsn, `SET lock_timeout = '10s'; UPDATE leases SET until = now() + interval '8 seconds' WHERE name = 'main'`)

	// Another process that wants the lease waits for the commit, which it has to see.
	_, err := waiting.Exec(t.Context(), `COMMIT`).ReadAll()
	check(t, err)
	check(t, s.Close())
}

// What this process left on the server when its connection was lost is ended: it could hold locks.
func TestConn_EndsItsLostSession(t *testing.T) {
	const writers = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT'`

	dsn := postgrestest.New(t)
	p := postgrestest.NewProxy(t, dsn)
	s := mustOpen(t, p.DSN)
	check(t, add(t.Context(), s))

	p.LoseClients()

	claim := job.Claim{Worker: "w", Now: time.Now(), Lease: time.Minute, Free: map[string]int{"orders": 1}}
	claimed, _, err := s.Exchange(t.Context(), nil, claim)
	if err != nil || len(claimed) != 1 {
		t.Errorf("%d jobs are claimed: %v", len(claimed), err)
	}

	if n := sql(t, dsn, writers); n != "1" {
		t.Errorf("the server has %s sessions that commit, want 1", n)
	}

	check(t, s.Close())
}

// A connection that is silent and does not end, as one whose other side is frozen, is given up,
// and what was under way is run on another one.
func TestConn_ThatIsSilentIsGivenUp(t *testing.T) {
	dsn := postgrestest.New(t)
	p := postgrestest.NewProxy(t, dsn)
	s, err := store.Open(t.Context(), store.Options{Database: postgres.Impatient{
		Server: postgres.Server{DSN: p.DSN}, Silence: time.Second, AtStop: time.Second,
	}})
	check(t, err)
	check(t, add(t.Context(), s))

	p.FreezeOpen(t)
	check(t, add(t.Context(), s))
	check(t, add(t.Context(), s))

	if n := sql(t, dsn, `SELECT count(*) FROM jobs`); n != "3" {
		t.Errorf("%s jobs are there, want 3", n)
	}

	check(t, s.Close())
}

// A connection that is silent is given up much earlier while the process stops, and what was under
// way is run on another one.
func TestHasten_GivesUpASilentConnection(t *testing.T) {
	for name, hasten := range map[string]func(*store.Store){
		"the process stops":   func(s *store.Store) { s.Hasten() },
		"the store is closed": func(s *store.Store) { _ = s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			dsn := postgrestest.New(t)
			p := postgrestest.NewProxy(t, dsn)
			s, err := store.Open(t.Context(), store.Options{Database: postgres.Impatient{
				Server: postgres.Server{DSN: p.DSN}, Silence: time.Hour, AtStop: time.Second,
			}})
			check(t, err)
			check(t, add(t.Context(), s))

			p.FreezeOpen(t)

			written := inBackground(func() { err = add(context.Background(), s) })
			within(t, "the commit has begun", p.Held)
			hasten(s)
			within(t, "the caller is told", written)

			n := sql(t, dsn, `SELECT count(*) FROM jobs`)
			if err == nil && n != "2" || err != nil && n != "1" {
				t.Errorf("%s jobs are there, and the caller is told %v", n, err)
			}

			check(t, s.Close())
		})
	}
}

// session is one of another program, in which some statements were run.
func session(t *testing.T, dsn, name, text string) *pgconn.PgConn {
	t.Helper()

	config, err := pgconn.ParseConfig(dsn)
	check(t, err)

	config.RuntimeParams["application_name"] = name

	conn, err := pgconn.ConnectConfig(t.Context(), config)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })

	_, err = conn.Exec(t.Context(), text).ReadAll()
	check(t, err)

	return conn
}

// waitingCommits are the sessions whose commit waits for a replica.
const waitingCommits = `FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'`

// commitUntilOneWaits commits again and again until it fails, which ends written. It returns when a
// commit waits: from some moment on, a replica has to have each of them, and is away.
func commitUntilOneWaits(t *testing.T, commit func() error, dsn string) (acknowledged *atomic.Int64, written <-chan struct{}) {
	t.Helper()

	acknowledged = new(atomic.Int64)
	written = inBackground(func() {
		for commit() == nil {
			acknowledged.Add(1)
		}
	})

	sql(t, dsn, `ALTER SYSTEM SET synchronous_standby_names = 'away'`)
	sql(t, dsn, `SELECT pg_reload_conf()`)
	within(t, "a commit waits", inBackground(func() {
		for sql(t, dsn, `SELECT count(*) `+waitingCommits) == "0" {
		}
	}))

	return acknowledged, written
}

// A commit that waits for a replica is not acknowledged because its connection was lost: the server
// that gives up the wait has it, and the replica does not.
func TestCommit_WithoutItsReplicaIsNotAcknowledged(t *testing.T) {
	dsn := postgrestest.NewCluster(t).DSN("postgres")
	p := postgrestest.NewProxy(t, dsn)
	s := mustOpen(t, p.DSN)
	check(t, add(t.Context(), s))

	acknowledged, written := commitUntilOneWaits(t, func() error { return add(context.Background(), s) }, dsn)
	before := acknowledged.Load()
	p.LoseClients()
	within(t, "the caller is told", written)

	if n := acknowledged.Load(); n != before {
		t.Errorf("%d commits are acknowledged that no replica has", n-before)
	}

	_ = s.Close() // its lease is over
}

// Neither is one whose wait a person cancels, which the server acknowledges with a warning: it is
// waited for on another connection. The role wants to hear of no warnings.
func TestCommit_WhoseWaitIsCancelledIsNotAcknowledged(t *testing.T) {
	dsn := postgrestest.NewCluster(t).DSN("postgres")
	sql(t, dsn, `ALTER ROLE postgres SET client_min_messages = 'error'`)
	s := mustOpen(t, dsn)
	check(t, add(t.Context(), s))

	cancelWait(t, func() error { return add(context.Background(), s) }, dsn)

	_ = s.Close() // its lease is over
}

// The same is true of the search index, which is written on a connection of its own.
func TestIndex_WhoseWaitIsCancelledIsNotWritten(t *testing.T) {
	dsn := postgrestest.NewCluster(t).DSN("postgres")
	engine := openReading(t, dsn) // its lease, which is not renewed, waits for nothing
	put := func() error { return engine.Search().Put(context.Background(), db.IndexState{}, nil, nil) }
	check(t, put())

	cancelWait(t, put, dsn)

	// The note of what was cancelled is that of a connection, which is given up.
	sql(t, dsn, `ALTER SYSTEM RESET synchronous_standby_names`)
	sql(t, dsn, `SELECT pg_reload_conf()`)
	check(t, put())
	check(t, engine.Close())
}

// Neither is the lease renewed by a commit whose wait is cancelled: a replica that is promoted would let
// another process take it.
func TestLease_IsNotRenewedWithoutItsReplica(t *testing.T) {
	const cancel = `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`

	dsn := postgrestest.NewCluster(t).DSN("postgres")
	s := mustOpen(t, dsn)
	sql(t, dsn, `ALTER SYSTEM SET synchronous_standby_names = 'away'`)
	sql(t, dsn, `SELECT pg_reload_conf()`)

	over := func() bool {
		select {
		case <-s.Failed():
			return true
		default:
			return false
		}
	}

	late := time.Now().Add(time.Minute)
	for !over() && time.Now().Before(late) {
		sql(t, dsn, cancel)
	}

	if problem := s.Problem(); !errors.Is(problem, fault.ErrTakenOver) {
		t.Errorf("the problem is %v", problem)
	}

	_ = s.Close() // which cannot give the lease back
}

// cancelWait commits until a commit waits for a replica, cancels the wait, and wants that commit not to
// be acknowledged.
func cancelWait(t *testing.T, commit func() error, dsn string) {
	t.Helper()

	acknowledged, written := commitUntilOneWaits(t, commit, dsn)
	before := acknowledged.Load()
	cancelled := sql(t, dsn, `SELECT string_agg(pid::text, ',') `+waitingCommits)
	sql(t, dsn, `SELECT count(pg_cancel_backend(pid)) FROM unnest(ARRAY[`+cancelled+`]) AS pid`)

	// The writer asks for its commit on a connection of its own, or its lease is over.
	within(t, "the commit is asked for", inBackground(func() {
		for acknowledged.Load() == before && sql(t, dsn, `SELECT count(*) `+waitingCommits+` AND pid NOT IN (`+cancelled+`)`) == "0" {
			select {
			case <-written:
				return
			default:
			}
		}
	}))

	if n := acknowledged.Load(); n != before {
		t.Errorf("%d commits are acknowledged that no replica has", n-before)
	}
}

// The host that answered last is tried first: a silent one costs one connection its time, and not
// each.
func TestHosts_TheOneThatAnsweredIsTriedFirst(t *testing.T) {
	dsn := postgrestest.New(t)
	silent, other := postgrestest.NewProxy(t, dsn), postgrestest.NewProxy(t, dsn)
	silent.Freeze(t)

	s := mustOpen(t, bothHosts(t, silent.DSN, other.DSN)+"&connect_timeout=1")
	check(t, add(t.Context(), s))
	sql(t, dsn, endSessions)
	check(t, add(t.Context(), s))
	check(t, s.Close())

	if n := silent.Taken(); n != 1 {
		t.Errorf("the silent host was tried %d times, want once", n)
	}
}

// A host that lets this program in from nowhere says nothing of the others. The database refuses it
// only if all that answer do.
func TestHosts_OneThatRefusesIsPassed(t *testing.T) {
	refusing := postgrestest.NewCluster(t)
	dsn := refusing.DSN("postgres")
	other := postgrestest.NewCluster(t)
	silent := postgrestest.NewProxy(t, other.DSN("postgres"))
	silent.Freeze(t)

	file := sql(t, dsn, `SHOW hba_file`)
	sql(t, dsn, `COPY (SELECT 'local all all trust') TO '`+file+`'`)
	sql(t, dsn, `SELECT pg_reload_conf()`)
	within(t, "the host refuses", inBackground(func() {
		for {
			conn, err := pgconn.Connect(context.Background(), dsn)
			if err != nil {
				return
			}

			_ = conn.Close(context.Background())
		}
	}))

	check(t, mustOpen(t, bothHosts(t, dsn, other.DSN("postgres"))).Close())

	_, err := openAt(t, bothHosts(t, silent.DSN, dsn)+"&connect_timeout=1")
	if !errors.Is(err, fault.ErrRefused) {
		t.Errorf("beside a silent host, the start says %v", err)
	}

	other.Stop(syscall.SIGINT)
	other.Demote()
	other.Start()

	_, err = openAt(t, bothHosts(t, dsn, other.DSN("postgres")))
	if !errors.Is(err, fault.ErrUnreachable) || errors.Is(err, fault.ErrRefused) {
		t.Errorf("beside a replica, the start says %v", err)
	}
}

// bothHosts is an address that names the hosts of two.
func bothHosts(t *testing.T, one, two string) string {
	t.Helper()

	first, err := pgconn.ParseConfig(one)
	check(t, err)
	second, err := pgconn.ParseConfig(two)
	check(t, err)

	name := func(c *pgconn.Config) string { return fmt.Sprintf("%s:%d", c.Host, c.Port) }

	return strings.Replace(one, name(first), name(first)+","+name(second), 1)
}

// A start does not wait for a server that takes connections and answers nothing.
func TestOpen_DoesNotWaitForASilentServer(t *testing.T) {
	p := postgrestest.NewProxy(t, postgrestest.New(t))
	p.Freeze(t)

	_, err := openAt(t, p.DSN)
	if !errors.Is(err, fault.ErrUnreachable) {
		t.Errorf("the start says %v", err)
	}
}
