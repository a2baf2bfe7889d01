package main

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver

	"redrive/internal/store/rawtest"
)

// sqliteSettings are shared by every queue on SQLite.
const sqliteSettings = "`modernc.org/sqlite` and Redrive's pragmas (WAL, `synchronous=FULL`, `wal_autocheckpoint=8000`, 16 MB of cache), " +
	"one connection (`SetMaxOpenConns(1)`), `BEGIN IMMEDIATE`"

// openSQLite makes an empty database. One connection is what goqite's and River's
// documentation say; with more, writers wait for one another's locks by sleeping.
func openSQLite(dir string) (*sql.DB, error) {
	params := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)"}}
	for name, value := range rawtest.Pragmas() {
		params.Add("_pragma", name+"("+value+")")
	}

	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "queue.db")+"?"+params.Encode())
	if err == nil {
		db.SetMaxOpenConns(1)
	}

	return db, err
}

// count runs a query for a number.
func count(ctx context.Context, db *sql.DB, query string) (n int, err error) {
	err = db.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}
