package process_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/store/postgres/postgrestest"
	"redrive/test/rig"
)

// A server that is restarted under load, or crashes, loses nothing.
func TestLong_PostgresIsRestarted(t *testing.T) {
	for name, signal := range map[string]os.Signal{"in order": syscall.SIGINT, "after a crash": syscall.SIGQUIT} {
		t.Run(name, func(t *testing.T) {
			server := postgrestest.NewCluster(t)
			l := underLoad(t, server.DSN("postgres"), server.DSN("postgres"), "x")

			for range 3 {
				server.Stop(signal)
				server.Start()
				l.untilMore(50)
			}

			// For longer than its lease: the process ends, and its supervisor starts it again.
			server.Stop(signal)
			l.log.Await(t, "another process may work on it by now")
			l.saysOnReady("storage_unreachable")
			server.Start()
			l.untilMore(50)

			l.end()
		})
	}
}

// A replica that is promoted takes over, also while the former primary answers and takes no
// writes. It has what was acknowledged, because commits wait for it.
func TestLong_PostgresReplicaIsPromoted(t *testing.T) {
	first := postgrestest.NewCluster(t)
	second := first.Replica()
	postgrestest.Query(t, first.DSN("postgres"), `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	postgrestest.Query(t, first.DSN("postgres"), `SELECT pg_reload_conf()`)

	both := strings.Replace(first.DSN("postgres"), first.Address(), first.Address()+","+second.Address(), 1)
	l := underLoad(t, both, second.DSN("postgres"), "x")

	first.Stop(syscall.SIGQUIT)
	second.Promote()
	l.untilMore(50)

	first.Demote()
	first.Start()
	postgrestest.Query(t, second.DSN("postgres"),
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'redrive %'`)
	l.untilMore(50)

	l.end()
}

// A start on a replica waits until that is promoted.
func TestLong_PostgresStartsOnAReplica(t *testing.T) {
	first := postgrestest.NewCluster(t)
	second := first.Replica()

	p, url := standingBy(t, t.TempDir(), second.DSN("postgres"))
	if _, body := statusOf(t, url+"/readyz"); !strings.HasPrefix(body, "read_only: ") || !strings.Contains(body, "is a replica") {
		t.Errorf("it says: %s", body)
	}

	first.Stop(syscall.SIGINT)
	second.Promote()
	p.Says("Redrive is ready.")

	if p.Stop(syscall.SIGTERM); p.Code() != 0 {
		t.Errorf("exit %d: %s", p.Code(), p.Stderr)
	}
}

// A server whose disk is full is waited for.
func TestLong_PostgresDiskIsFull(t *testing.T) {
	server := postgrestest.NewCluster(t)
	postgrestest.Query(t, server.DSN("postgres"), `CREATE TABLESPACE small LOCATION '`+server.SmallDisk()+`'`)
	postgrestest.Query(t, server.DSN("postgres"), `CREATE DATABASE jobs TABLESPACE small`)
	l := underLoad(t, server.DSN("jobs"), server.DSN("jobs"), strings.Repeat("x", 1<<10))

	const fill = `CREATE TABLE IF NOT EXISTS ballast (x text); ALTER TABLE ballast ALTER x SET STORAGE PLAIN;
		DO $$ BEGIN
			LOOP
				BEGIN
					INSERT INTO ballast SELECT repeat('x', 7000) FROM generate_series(1, 10);
				EXCEPTION WHEN disk_full THEN EXIT;
				END;
			END LOOP;
		END $$`

	postgrestest.Query(t, server.DSN("jobs"), fill)
	l.untilRefused("storage_full")
	l.saysOnReady("is full")

	postgrestest.Query(t, server.DSN("jobs"), `DROP TABLE ballast`)
	l.untilMore(50)

	l.end()
}

// Other programs that take all connections of the server are waited for.
func TestLong_PostgresHasNoConnectionLeft(t *testing.T) {
	server := postgrestest.NewCluster(t, "max_connections=30", "superuser_reserved_connections=0")
	l := underLoad(t, server.DSN("postgres"), server.DSN("postgres"), "x")

	leave := server.TakeConnections()
	l.saysOnReady("has no connection or memory left")
	l.untilRefused("busy")

	leave()
	l.untilMore(50)

	l.end()
}

// A transaction that meets another one, or is in its way, is run again.
func TestLong_PostgresTransactionsMeet(t *testing.T) {
	dsn := postgrestest.New(t)
	l := underLoad(t, dsn, dsn, "x")

	const meet = `CREATE FUNCTION meet() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF random() < 0.02 THEN RAISE EXCEPTION 'as asked' USING ERRCODE = '40001'; END IF;
			IF random() < 0.02 THEN RAISE EXCEPTION 'as asked' USING ERRCODE = '40P01'; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER meet BEFORE INSERT OR UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION meet()`

	postgrestest.Query(t, dsn, meet)
	l.untilMore(300)
	postgrestest.Query(t, dsn, `DROP TRIGGER meet ON jobs; DROP FUNCTION meet`)

	l.end()
}

// A server that takes a second for each answer is worked on, and one that takes too long for the
// lease is waited for.
func TestLong_PostgresIsSlow(t *testing.T) {
	dsn := postgrestest.New(t)
	proxy := postgrestest.NewProxy(t, dsn)
	l := underLoad(t, proxy.DSN, dsn, "x")

	proxy.Slow(1)
	l.untilMore(10)

	proxy.Slow(3)
	l.log.Await(t, "another process may work on it by now")
	l.saysOnReady("storage_unreachable")
	proxy.Slow(0)
	l.untilMore(50)

	l.end()
}

// A stop ends within the time that systemd gives it, also while a connection is frozen in the middle
// of a request.
func TestLong_PostgresStopsWithAFrozenConnection(t *testing.T) {
	dsn := postgrestest.New(t)
	proxy := postgrestest.NewProxy(t, dsn)
	p := rig.Start(t, t.TempDir(), "--db", proxy.DSN)
	p.Post(`{"type":"t"}`)

	proxy.FreezeOpen(t)
	answered := make(chan string)
	go func() { answered <- p.Post(`{"type":"t"}`) }()
	<-proxy.Held

	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	killed := time.AfterFunc(unitTimeout, func() { _ = p.Cmd.Process.Kill() })
	p.Wait()
	killed.Stop()
	if p.Code() != 0 {
		t.Errorf("exit %d: %s", p.Code(), p.Stderr)
	}

	want := "1"
	if <-answered != "" {
		want = "2"
	}
	if n := postgrestest.Query(t, dsn, `SELECT count(*) FROM jobs`); n != want {
		t.Errorf("%s jobs are there, want %s", n, want)
	}
}

// unitTimeout is TimeoutStopSec of deploy/redrive.service.
const unitTimeout = time.Minute
