package postgres_test

import (
	"errors"
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
	const backend = `SELECT pg_backend_pid()`

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

	var before, after int
	engine.Reads().SetMaxOpenConns(1)
	check(t, engine.Reads().QueryRowContext(t.Context(), backend).Scan(&before))
	_ = write()
	check(t, engine.Reads().QueryRowContext(t.Context(), backend).Scan(&after))

	if before == after {
		t.Error("a connection to the replica is used again")
	}
}
