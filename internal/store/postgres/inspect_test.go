package postgres_test

import (
	stdsql "database/sql"
	"testing"

	"redrive/internal/store/db"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
)

// An examination that takes long does not keep the server from cleaning up: no transaction is open
// between its queries.
func TestInspect_KeepsNoTransactionOpen(t *testing.T) {
	const open = `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`

	dsn := postgrestest.New(t)
	err := postgres.Server{DSN: dsn}.Inspect(t.Context(), func(src db.Source, _ []db.Finding) {
		check(t, src.Query(`SELECT seq FROM jobs`, func(*stdsql.Rows) error { return nil }))

		if n := sql(t, dsn, open); n != "0" {
			t.Errorf("%s transactions are open", n)
		}
	})
	check(t, err)
}
