// Package databasetest gives tests an empty database of the kind that they are to run on: SQLite,
// or PostgreSQL where the environment says so. What is tested with it must not depend on the
// kind.
package databasetest

import (
	"os"
	"strings"
	"testing"

	"redrive/internal/store/db"
	"redrive/internal/store/location"
	"redrive/internal/store/postgres/postgrestest"
	"redrive/internal/store/sqlite/sqlitetest"
)

// OnPostgres is the variable of the environment, with its value, by which tests run on
// PostgreSQL.
const OnPostgres = "REDRIVE_TEST_DATABASE=postgres"

// New returns where an empty database is, as --db names it.
func New(tb testing.TB) string {
	tb.Helper()

	name, value, _ := strings.Cut(OnPostgres, "=")
	if os.Getenv(name) == value {
		return postgrestest.New(tb)
	}

	return sqlitetest.New(tb)
}

// Database is an empty database.
func Database(tb testing.TB) db.Database {
	tb.Helper()
	return location.Of(New(tb)).Database(false)
}
