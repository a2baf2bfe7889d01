package postgres_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	stdsql "database/sql"

	"redrive/internal/store/db"
	"redrive/internal/store/health"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
)

const endOthers = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`

func openEngine(t *testing.T, dsn string) db.Engine {
	t.Helper()

	engine, err := postgres.Server{DSN: dsn}.Open(t.Context(), health.New(slog.New(slog.DiscardHandler)))
	check(t, err)

	return engine
}

// A connection that the server has ended is only seen when it is used again. No reader hears of it,
// and neither does one that has a transaction.
func TestReads_ComeBack(t *testing.T) {
	dsn := postgrestest.New(t)
	engine := openEngine(t, dsn)
	reads := engine.Reads()

	for range 3 {
		var n int
		check(t, reads.QueryRowContext(t.Context(), `SELECT 1`).Scan(&n))

		sql(t, dsn, endOthers)
		check(t, reads.QueryRowContext(t.Context(), `SELECT 2`).Scan(&n))

		sql(t, dsn, endOthers)
		tx, err := reads.BeginTx(t.Context(), &stdsql.TxOptions{ReadOnly: true})
		check(t, err)
		check(t, tx.QueryRowContext(t.Context(), `SELECT 3`).Scan(&n))

		var isolation, readOnly string
		check(t, tx.QueryRowContext(t.Context(),
			`SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')`).Scan(&isolation, &readOnly))
		check(t, tx.Rollback())

		if n != 3 || isolation != "repeatable read" || readOnly != "on" {
			t.Errorf("the transaction reads %d, its isolation is %s, read-only %s", n, isolation, readOnly)
		}
	}

	check(t, engine.Close())
}

// In the middle of a transaction, a lost connection is an error: what was read before belongs to
// another state of the database.
func TestReads_AreOfOneState(t *testing.T) {
	dsn := postgrestest.New(t)
	engine := openEngine(t, dsn)

	tx, err := engine.Reads().BeginTx(t.Context(), &stdsql.TxOptions{ReadOnly: true})
	check(t, err)

	var n int
	check(t, tx.QueryRowContext(t.Context(), `SELECT 1`).Scan(&n))
	sql(t, dsn, endOthers)

	if err := tx.QueryRowContext(t.Context(), `SELECT 2`).Scan(&n); err == nil {
		t.Error("a transaction goes on after its connection was lost")
	}

	_ = tx.Rollback()
	check(t, engine.Close())
}

// When the connection that writes was lost, or the server takes no writes, that server may have
// become a replica, which shows the past: all connections are opened again.
func TestReads_FollowTheWriter(t *testing.T) {
	const backend = `SELECT pg_backend_pid()`

	for name, trouble := range map[string]string{
		"lost":      `SELECT pg_terminate_backend(pg_backend_pid())`,
		"read-only": `DO $$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = '25006'; END $$`,
	} {
		t.Run(name, func(t *testing.T) {
			engine := openEngine(t, postgrestest.New(t))
			engine.Reads().SetMaxOpenConns(1)
			conn, err := engine.Writer(t.Context())
			check(t, err)

			pids := func() (writes, reads int) {
				check(t, db.Transact(t.Context(), conn, func(tx *db.Tx) (err error) {
					writes, err = db.Value[int](tx, backend)
					return err
				}))
				check(t, engine.Reads().QueryRowContext(t.Context(), backend).Scan(&reads))

				return writes, reads
			}

			writes, reads := pids()
			if err := db.Transact(t.Context(), conn, func(tx *db.Tx) error { return tx.Run(trouble) }); err == nil {
				t.Fatal("there is no trouble")
			}

			newWrites, newReads := pids()
			if writes == newWrites || reads == newReads {
				t.Errorf("the writer's backend was %d and is %d, the reader's was %d and is %d", writes, newWrites, reads, newReads)
			}

			check(t, conn.Close())
			check(t, engine.Close())
		})
	}
}

// Rows that a reader does not want are not sent: they can be large.
func TestRows_EndEarly(t *testing.T) {
	const rows, size = 500, 1 << 20
	large := fmt.Sprintf(`SELECT repeat('x', %d) FROM generate_series(1, %d)`, size, rows)

	p := postgrestest.NewProxy(t, postgrestest.New(t))
	engine := openEngine(t, p.DSN)
	reads := engine.Reads()
	reads.SetMaxOpenConns(1) // what comes next meets the same connection

	first := func(rows *stdsql.Rows) error {
		var text string
		check(t, rows.Scan(&text))

		return db.ErrEnough
	}

	for range 5 {
		before := p.Sent()
		check(t, db.Scan(reads.QueryContext(t.Context(), large))(first))

		if sent := p.Sent() - before; sent > rows*size/2 {
			t.Errorf("%d bytes were sent", sent)
		}

		var n int
		check(t, reads.QueryRowContext(t.Context(), `SELECT 1`).Scan(&n))
	}

	// A transaction goes on: its other queries are of the same state.
	tx, err := reads.BeginTx(t.Context(), &stdsql.TxOptions{ReadOnly: true})
	check(t, err)
	check(t, db.Scan(tx.QueryContext(t.Context(), strings.Replace(large, "500", "100", 1)))(first))

	var n int
	check(t, tx.QueryRowContext(t.Context(), `SELECT 1`).Scan(&n))
	check(t, tx.Rollback())
	check(t, engine.Close())
}

// The server keeps a bounded number of plans for a connection.
func TestWire_ForgetsStatements(t *testing.T) {
	const most = 1000

	engine := openEngine(t, postgrestest.New(t))
	reads := engine.Reads()
	reads.SetMaxOpenConns(1)

	for i := range most {
		var n int
		check(t, reads.QueryRowContext(t.Context(), fmt.Sprintf(`SELECT %d`, i)).Scan(&n))

		if n != i {
			t.Fatalf("SELECT %d returns %d", i, n)
		}
	}

	var prepared int
	check(t, reads.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_prepared_statements`).Scan(&prepared))
	if prepared > most/2 {
		t.Errorf("%d of %d statements are still prepared", prepared, most)
	}

	check(t, engine.Close())
}

// To compile the plan of a query takes longer than most queries run.
func TestReads_AreNotCompiled(t *testing.T) {
	dsn := postgrestest.New(t)
	engine := openEngine(t, dsn)

	var compiles string
	check(t, engine.Reads().QueryRowContext(t.Context(), `SELECT current_setting('jit')`).Scan(&compiles))
	check(t, engine.Close())

	if compiles != "off" {
		t.Errorf("jit is %s where pages read", compiles)
	}
}
