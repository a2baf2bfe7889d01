package postgres_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"redrive/internal/store/health"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
)

// watching opens a database that is looked at all the time, and tells of everything at once.
func watching(t *testing.T, dsn string) *health.Health {
	t.Helper()
	return watchingWith(t, dsn, slog.New(slog.DiscardHandler))
}

func watchingWith(t *testing.T, dsn string, log *slog.Logger) *health.Health {
	t.Helper()

	every, lasting := postgres.LookEvery, postgres.Lasting
	postgres.LookEvery, postgres.Lasting = time.Millisecond, 0
	defer func() { postgres.LookEvery, postgres.Lasting = every, lasting }()

	h := health.New(log)
	engine, err := postgres.Server{DSN: dsn}.Open(t.Context(), h)
	check(t, err)
	t.Cleanup(func() { check(t, engine.Close()) })

	return h
}

// find returns the hindrance whose name has a text.
func find(h *health.Health, text string) (found health.Hindrance, ok bool) {
	for _, one := range h.Hindrances() {
		if strings.Contains(one.Name, text) {
			return one, true
		}
	}

	return found, false
}

// named waits until a hindrance is told of, and checks what is said of it.
func named(t *testing.T, h *health.Health, kind, text string, says ...string) health.Hindrance {
	t.Helper()

	until(t, text+" is named", func() bool { _, ok := find(h, text); return ok })

	found, _ := find(h, text)
	said := fmt.Sprint(found.Name, found.Remedy, found.Statements)
	for _, want := range says {
		if !strings.Contains(said, want) {
			t.Errorf("it lacks %q: %s", want, said)
		}
	}

	if found.Kind != kind || found.Since.IsZero() {
		t.Errorf("it is a %s since %v, want a %s", found.Kind, found.Since, kind)
	}

	return found
}

// until waits for a look that shows something.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()

	late := time.After(3 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()

	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("it never came to be that %s", what)
		}
	}
}

func gone(t *testing.T, h *health.Health, text string) {
	t.Helper()
	until(t, text+" is gone", func() bool { _, ok := find(h, text); return !ok })
}

// sessionOf connects as another program.
func sessionOf(t *testing.T, dsn, name string, texts ...string) (conn *pgconn.PgConn, pid string) {
	t.Helper()

	conn, err := pgconn.Connect(t.Context(), dsn+"&application_name="+name)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })

	for _, text := range texts {
		_, err = conn.Exec(t.Context(), text).ReadAll()
		check(t, err)
	}

	return conn, strconv.FormatUint(uint64(conn.PID()), 10)
}

// afterwards runs a statement after the test, which may have done the same.
func afterwards(t *testing.T, dsn, text string) {
	t.Helper()

	t.Cleanup(func() {
		conn, err := pgconn.Connect(context.Background(), dsn)
		check(t, err)
		_, _ = conn.Exec(context.Background(), text).ReadAll()
		check(t, conn.Close(context.Background()))
	})
}

// A session is named while its transaction can see old rows, or has written and not ended, with all
// that tells who it is and how to end it.
func TestHindrance_NamesASession(t *testing.T) {
	dsn := postgrestest.New(t)
	h := watching(t, dsn)

	for name, texts := range map[string][]string{
		"reads":  {`BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT count(*) FROM jobs`},
		"writes": {`BEGIN`, `INSERT INTO queues (name, paused_at, paused_by) VALUES ('a', 0, '')`},
	} {
		t.Run(name, func(t *testing.T) {
			conn, pid := sessionOf(t, dsn, "report-"+name, texts...)
			end := "SELECT pg_terminate_backend(" + pid + ")"
			who := "Session " + pid + " (application report-" + name + ", user postgres, from 127.0.0.1, idle in transaction)"
			found := named(t, h, health.BySession, who, end)

			sql(t, dsn, found.Statements[0])
			gone(t, h, "Session "+pid+" ")
			check(t, conn.Close(t.Context()))
		})
	}
}

// A transaction that sees nothing old is none, and neither is a session of another database.
func TestHindrance_NamesNoOther(t *testing.T) {
	dsn, other := postgrestest.New(t), postgrestest.New(t)
	h := watching(t, dsn)

	_, idle := sessionOf(t, dsn, "idle", `BEGIN`, `SELECT 1`)
	_, elsewhere := sessionOf(t, other, "elsewhere", `BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT 1`)
	_, old := sessionOf(t, dsn, "old", `BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT 1`)

	named(t, h, health.BySession, "Session "+old+" ")
	for _, pid := range []string{idle, elsewhere} {
		if found, ok := find(h, "Session "+pid+" "); ok {
			t.Errorf("it names %s", found.Name)
		}
	}
}

// A prepared transaction is named until it ends, in statements that the server takes.
func TestHindrance_NamesAPreparedTransaction(t *testing.T) {
	const gid = "it''s 7"

	dsn := postgrestest.New(t)
	h := watching(t, dsn)
	sql(t, dsn, `BEGIN; INSERT INTO queues (name, paused_at, paused_by) VALUES ('a', 0, ''); PREPARE TRANSACTION '`+gid+`'`)
	afterwards(t, dsn, `ROLLBACK PREPARED '`+gid+`'`)

	found := named(t, h, health.ByPrepared, "prepared transaction it's 7 ", "user postgres", "COMMIT PREPARED '"+gid+"'", "ROLLBACK PREPARED '"+gid+"'")

	sql(t, dsn, found.Statements[1])
	gone(t, h, "prepared transaction")
}

// A slot is named while its replica is connected, and after it has gone, until it is dropped.
func TestHindrance_NamesASlot(t *testing.T) {
	dsn := postgrestest.New(t)
	h := watching(t, dsn)
	sql(t, dsn, `SELECT pg_create_physical_replication_slot('replica_1', true)`)
	afterwards(t, dsn, `SELECT pg_drop_replication_slot('replica_1')`)

	replica := replicate(t, dsn, "SLOT replica_1")
	named(t, h, health.BySlot, "slot replica_1, whose replica is connected,", "hot_standby_feedback")

	check(t, replica.Close(t.Context()))
	found := named(t, h, health.BySlot, "slot replica_1, whose replica is not connected,", "catch up", "SELECT pg_drop_replication_slot('replica_1')")

	sql(t, dsn, found.Statements[0])
	gone(t, h, "replica_1")
}

// A replica without a slot holds rows as long as it is connected.
func TestHindrance_NamesAReplica(t *testing.T) {
	dsn := postgrestest.New(t)
	h := watching(t, dsn)

	replica := replicate(t, dsn, "")
	named(t, h, health.BySession, "The replica standby (user postgres, from 127.0.0.1)", "hot_standby_feedback")

	check(t, replica.Close(t.Context()))
	gone(t, h, "The replica")
}

// replicate connects as a replica does, and says which transaction it can still see.
func replicate(t *testing.T, dsn, slot string) *pgconn.PgConn {
	t.Helper()

	at := sql(t, dsn, `SELECT pg_current_wal_flush_lsn()`)
	xid, err := strconv.ParseUint(sql(t, dsn, `SELECT pg_current_xact_id()`), 10, 64)
	check(t, err)
	conn, _ := sessionOf(t, dsn+"&replication=true", "standby")

	conn.Frontend().SendQuery(&pgproto3.Query{String: "START_REPLICATION " + slot + " PHYSICAL " + at})
	check(t, conn.Frontend().Flush())
	answer, err := conn.ReceiveMessage(t.Context())
	check(t, err)

	if _, ok := answer.(*pgproto3.CopyBothResponse); !ok {
		t.Fatalf("the server answers with %#v", answer)
	}

	feedback := []byte{'h'}
	feedback = binary.BigEndian.AppendUint64(feedback, 0) // when
	feedback = binary.BigEndian.AppendUint32(feedback, uint32(xid))
	feedback = binary.BigEndian.AppendUint32(feedback, uint32(xid>>32))
	feedback = binary.BigEndian.AppendUint64(feedback, 0) // no transaction of the catalog
	conn.Frontend().Send(&pgproto3.CopyData{Data: feedback})
	check(t, conn.Frontend().Flush())

	return conn
}

// ofRole is a database that belongs to a role: its address for the superuser and for the role, and
// a function that runs statements in it as the superuser.
func ofRole(t *testing.T, role string) (dsn, own string, run func(text string)) {
	t.Helper()

	dsn, run = postgrestest.Bare(t, `ENCODING 'UTF8' TEMPLATE template0`)
	run(`CREATE ROLE ` + role + ` LOGIN`)
	t.Cleanup(func() {
		run(fmt.Sprintf(`REASSIGN OWNED BY %[1]s TO postgres; DROP OWNED BY %[1]s; DROP ROLE %[1]s`, role))
	})
	run(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO ` + role + `', current_database()); END $$`)

	return dsn, strings.Replace(dsn, "postgres@", role+"@", 1), run
}

// The server hides from a role what sessions of others hold, until it may read that.
func TestHindrance_OfOtherRolesNeedsARight(t *testing.T) {
	dsn, own, run := ofRole(t, "worker")
	h := watching(t, own)
	_, foreign := sessionOf(t, dsn, "foreign", `BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT 1`)
	_, pid := sessionOf(t, own, "own", `BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT 1`)

	named(t, h, health.BySession, "Session "+pid+" ")
	if found, ok := find(h, "Session "+foreign+" "); ok {
		t.Errorf("it names %s", found.Name)
	}

	run(`GRANT pg_read_all_stats TO worker`)
	named(t, h, health.BySession, "Session "+foreign+" ", "user postgres")
}

// A role that may not look works all the same. The log says so once.
func TestHindrance_ThatCannotBeReadIsNoFault(t *testing.T) {
	_, own, run := ofRole(t, "blind")
	run(`REVOKE SELECT ON pg_replication_slots FROM PUBLIC`)

	log := new(transcript)
	h := watchingWith(t, own, slog.New(slog.NewTextHandler(log, nil)))
	until(t, "the log says so", func() bool { return log.count("cannot be read") > 0 })

	run(`GRANT SELECT ON pg_replication_slots TO PUBLIC`)
	_, pid := sessionOf(t, own, "own", `BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT 1`)
	named(t, h, health.BySession, "Session "+pid+" ")

	if n := log.count("level="); n != 1 || h.Problem() != nil {
		t.Errorf("the log has %d lines, the problem is %v", n, h.Problem())
	}
}

// transcript is a log that is read while it is written.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.text.Write(p)
}

func (t *transcript) count(text string) int {
	t.mu.Lock()
	defer t.mu.Unlock()

	return strings.Count(t.text.String(), text)
}
