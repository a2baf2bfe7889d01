package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	stdsql "database/sql"

	"redrive/internal/store/db"
	"redrive/internal/store/postgres/postgrestest"
)

// stuck is a query whose first rows come at once, in more bytes than the server holds back, and the next ones
// too late.
const stuck = `SELECT n, repeat('x', 10000) FROM generate_series(1, 20) AS n, LATERAL (SELECT pg_sleep(CASE WHEN n > 10 THEN 600 ELSE 0 END)) AS waits`

// leaves is a reader who leaves at the first row.
func leaves(leave func()) func(*stdsql.Rows) error {
	return func(*stdsql.Rows) error {
		leave()
		return nil
	}
}

// A reader who leaves, or whose time is up, costs no connection: neither in a transaction nor outside, and
// neither before the first row nor between two.
func TestReads_KeepTheirConnectionWhenNoOneWaits(t *testing.T) {
	const backend = `SELECT pg_backend_pid()`

	dsn := postgrestest.New(t)
	engine := openEngine(t, dsn)
	reads := engine.Reads()
	reads.SetMaxOpenConns(1) // what comes next meets the same connection

	var before int
	check(t, reads.QueryRowContext(t.Context(), backend).Scan(&before))

	alone := func(ctx context.Context, query string, each func(*stdsql.Rows) error) error {
		return db.Scan(reads.QueryContext(ctx, query))(each)
	}
	inTransaction := func(ctx context.Context, query string, each func(*stdsql.Rows) error) error {
		tx, err := reads.BeginTx(ctx, &stdsql.TxOptions{ReadOnly: true})
		check(t, err)
		defer func() { _ = tx.Rollback() }() // which package sql does, too

		return db.Scan(tx.QueryContext(ctx, query))(each)
	}

	for name, run := range map[string]func(context.Context, string, func(*stdsql.Rows) error) error{"alone": alone, "in a transaction": inTransaction} {
		for _, query := range []string{`SELECT pg_sleep(600)`, stuck} {
			ctx, leave := context.WithCancel(t.Context())

			var err error
			ended := inBackground(func() { err = engine.Fault(run(ctx, query, leaves(leave))) })
			if query != stuck {
				until(t, "the query runs", func() bool {
					return sql(t, dsn, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`) == "1"
				})
				leave()
			}
			within(t, "the reader leaves", ended)

			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: it ends with %v", name, err)
			}

			var after int
			check(t, reads.QueryRowContext(t.Context(), backend).Scan(&after))
			if after != before {
				t.Fatalf("%s: the reader's backend was %d and is %d", name, before, after)
			}
		}
	}

	check(t, engine.Close())
}

// A connection on which a query does not end when the server is asked to end it keeps no reader: it is closed.
func TestReads_LeaveASilentConnection(t *testing.T) {
	p := postgrestest.NewProxy(t, postgrestest.New(t))
	engine := openEngine(t, p.DSN)
	reads := engine.Reads()
	reads.SetMaxOpenConns(1)

	ctx, leave := context.WithCancel(t.Context())
	var err error
	ended := inBackground(func() {
		err = db.Scan(reads.QueryContext(ctx, stuck))(func(*stdsql.Rows) error {
			if ctx.Err() == nil {
				p.FreezeOpen(t)
				leave()
			}

			return nil
		})
	})
	within(t, "the reader leaves", ended)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}

	var n int
	check(t, reads.QueryRowContext(t.Context(), `SELECT 1`).Scan(&n))
	check(t, engine.Close())
}

// What ends a query meets no later one, whenever it comes: neither one of the same reader, nor one to which
// a pooler gives the same session.
func TestReads_AreNotCancelledForOthers(t *testing.T) {
	for _, pooled := range []bool{false, true} {
		t.Run(fmt.Sprintf("through a pooler: %t", pooled), func(t *testing.T) {
			dsn := postgrestest.New(t)
			if pooled {
				dsn = postgrestest.Pooler(t, dsn)
			}

			engine := openEngine(t, dsn)

			var all sync.WaitGroup
			for range 2 {
				all.Go(func() { leaveOften(t, engine) })
			}
			all.Wait()

			check(t, engine.Close())
		})
	}
}

// leaveOften runs a query of which the reader leaves at some moment, and one that is waited for, in turns.
func leaveOften(t *testing.T, engine db.Engine) {
	for i := range 300 {
		ctx, leave := context.WithCancel(t.Context())
		left := inBackground(func() {
			for range i * 20 {
				runtime.Gosched()
			}

			leave()
		})

		err := db.Scan(engine.Reads().QueryContext(ctx, `SELECT count(*) FROM generate_series(1, 10000)`))(func(*stdsql.Rows) error { return nil })
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}

		var n int
		err = engine.Reads().QueryRowContext(t.Context(), `SELECT 1`).Scan(&n)
		if err != nil {
			t.Errorf("the next one ends with %v", err)
		}

		<-left
	}
}
