package postgres_test

import (
	sqlpackage "database/sql"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"redrive/internal/fault"
	"redrive/internal/store/db"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
)

// becomesReplica is an engine with a connection whose server has become a replica since.
func becomesReplica(t *testing.T, numbered bool) (db.Engine, postgres.Asking) {
	t.Helper()

	server := postgrestest.NewCluster(t)
	engine := openEngine(t, server.DSN("postgres"))
	t.Cleanup(func() { _ = engine.Close() }) // which cannot give the lease back

	conn, err := postgres.NewAsking(t.Context(), engine, numbered)
	check(t, err)

	server.Stop(syscall.SIGINT)
	server.Demote()
	server.Start()

	return engine, conn
}

// What a replica has not yet learned of can have taken place: it does not say that a commit did not.
func TestLost_IsNotDecidedByAReplica(t *testing.T) {
	engine, conn := becomesReplica(t, true)

	committed, err := conn.Ask(t.Context())
	for tries := 0; tries < 3 && !errors.Is(engine.Fault(err), fault.ErrReadOnly); tries++ {
		committed, err = conn.Ask(t.Context()) // the connection was lost with the restart
	}

	if !errors.Is(engine.Fault(err), fault.ErrReadOnly) {
		t.Errorf("a replica says whether the commit took place: %t, %v", committed, err)
	}
}

// A server that has become a replica refuses to begin what writes with a code of its own. The
// database is read-only then, and the next transaction looks for the server that takes writes.
func TestConn_LeavesAReplica(t *testing.T) {
	engine, conn := becomesReplica(t, false)
	write := func() error {
		return db.Transact(t.Context(), conn, func(tx *db.Tx) error { return tx.Run(`SELECT 1`) })
	}

	err := write() // the connection was lost with the restart
	for tries := 0; tries < 3 && !errors.Is(engine.Fault(err), fault.ErrReadOnly); tries++ {
		err = write()
	}

	if !errors.Is(engine.Fault(err), fault.ErrReadOnly) {
		t.Fatalf("the transaction fails with %v", err)
	}

	before := conn.Backend()
	_ = write()

	if conn.Backend() == before {
		t.Error("a connection to the replica is used again")
	}
}

// A replica knows nothing of the session that was lost on the primary: that is ended once the connection
// leads there again.
func TestConn_EndsItsLostSessionAfterAReplica(t *testing.T) {
	const sessions = `SELECT count(*) FROM pg_stat_activity WHERE concat(pid, ' since ', backend_start) = '%s'`

	primary := postgrestest.NewCluster(t)
	replica := primary.Replica()
	name := postgrestest.NewProxy(t, primary.DSN("postgres"))

	engine := openEngine(t, name.DSN)
	conn, err := postgres.NewAsking(t.Context(), engine, false)
	check(t, err)
	write := func() error {
		return db.Transact(t.Context(), conn, func(tx *db.Tx) error { return tx.Run(`SELECT 1`) })
	}
	check(t, write())

	lost := conn.Backend()
	name.Lead(replica.Address())
	name.LoseClients()

	for tries := 0; tries < 3 && !errors.Is(engine.Fault(err), fault.ErrReadOnly); tries++ {
		err = write()
	}
	if !errors.Is(engine.Fault(err), fault.ErrReadOnly) {
		t.Fatalf("on a replica, the transaction fails with %v", err)
	}

	name.Lead(primary.Address())
	check(t, write())

	if n := sql(t, primary.DSN("postgres"), fmt.Sprintf(sessions, lost)); n != "0" {
		t.Error("the session that was lost goes on")
	}

	check(t, errors.Join(conn.Close(), engine.Close()))
}

// One name can lead to a replica, and a pooler from one server to another within a connection. What reads
// finds that out, and shows nothing of the past: nothing is written meanwhile.
func TestReads_LeaveAReplica(t *testing.T) {
	primary := postgrestest.NewCluster(t)
	replica := primary.Replica()
	name := postgrestest.NewProxy(t, primary.DSN("postgres"))

	engine := openReading(t, name.DSN)
	check(t, readAll(t, engine))

	name.Lead(replica.Address())
	name.LoseClients()

	err := readAll(t, engine)
	if !errors.Is(engine.Fault(err), fault.ErrUnreachable) {
		t.Errorf("the replica is read: %v", err)
	}

	name.Lead(primary.Address())
	check(t, readAll(t, engine))
	check(t, engine.Close())
}

// So does a connection that stays open while its server is another one, as through a pooler.
func TestReads_LeaveAServerThatBecomesAReplica(t *testing.T) {
	primary := postgrestest.NewCluster(t)
	through := postgrestest.Pooler(t, primary.DSN("postgres"))

	engine := openReading(t, through)
	check(t, readAll(t, engine))

	primary.Stop(syscall.SIGINT)
	primary.Demote()
	primary.Start()

	for range 3 { // the pooler has to find out that its sessions have ended
		err := readAll(t, engine)
		if err == nil {
			t.Error("the replica is read")
		}
	}

	_ = engine.Close() // which cannot give the lease back
}

// openReading is an engine with two connections that read, and whose lease lasts.
func openReading(t *testing.T, dsn string) db.Engine {
	t.Helper()

	engine := openEngine(t, dsn)
	engine.Reads().SetMaxOpenConns(2)

	_, err := postgres.NewAsking(t.Context(), engine, false)
	check(t, err)

	return engine
}

// readAll reads on each connection of the pool, within a transaction as pages do.
func readAll(t *testing.T, of db.Engine) error {
	t.Helper()

	var all error
	for range of.Reads().Stats().MaxOpenConnections {
		tx, err := of.Reads().BeginTx(t.Context(), &sqlpackage.TxOptions{ReadOnly: true})
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		defer func() { _ = tx.Rollback() }()

		var n int
		all = errors.Join(all, tx.QueryRowContext(t.Context(), `SELECT count(*) FROM jobs`).Scan(&n))
	}

	return all
}
