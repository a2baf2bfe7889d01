// Package databasetest gives tests an empty database of the kind that they are to run on: SQLite,
// or PostgreSQL where the environment says so. What is tested with it must not depend on the
// kind.
package databasetest

import (
	"database/sql"
	"errors"
	"fmt"
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

	if isPostgres() {
		return postgrestest.New(tb)
	}

	return sqlitetest.New(tb)
}

// NeedsFile skips a test, where tests run on PostgreSQL, that is about a file of SQLite.
func NeedsFile(tb testing.TB, why string) {
	tb.Helper()

	if isPostgres() {
		tb.Skipf("%s: it runs on SQLite only", why)
	}
}

// isPostgres reports whether tests are to run on PostgreSQL.
func isPostgres() bool {
	name, value, _ := strings.Cut(OnPostgres, "=")
	return os.Getenv(name) == value
}

// Run runs a statement in a database, as another program would.
func Run(tb testing.TB, where, statement string) {
	tb.Helper()

	if location.Of(where).IsServer() {
		postgrestest.Query(tb, where, statement)
		return
	}

	file, err := sql.Open("sqlite", "file:"+where+"?_pragma=busy_timeout(10000)")
	if err == nil {
		_, err = file.ExecContext(tb.Context(), statement)
		err = errors.Join(err, file.Close())
	}

	if err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

// Spoil lets a database refuse new rows of a table in which a column has a value, until mend is
// called.
func Spoil(tb testing.TB, where, table, column string, value int64) (mend func()) {
	tb.Helper()

	spoil := fmt.Sprintf(`CREATE TRIGGER spoiled BEFORE INSERT ON %s WHEN new.%s = %d BEGIN SELECT raise(ABORT, 'spoiled'); END`, table, column, value)
	cure := `DROP TRIGGER spoiled`
	if location.Of(where).IsServer() {
		spoil = fmt.Sprintf(`ALTER TABLE %s ADD CONSTRAINT spoiled CHECK (%s <> %d)`, table, column, value)
		cure = fmt.Sprintf(`ALTER TABLE %s DROP CONSTRAINT spoiled`, table)
	}

	Run(tb, where, spoil)

	return func() {
		tb.Helper()
		Run(tb, where, cure)
	}
}

// Died lets the next store be opened at once on the database of a process that was killed.
// Otherwise that waits, on a server, until the lease of the process is over.
func Died(tb testing.TB, where string) {
	tb.Helper()

	if location.Of(where).IsServer() {
		postgrestest.ExpireLease(tb, where)
	}
}

// Database is an empty database.
func Database(tb testing.TB) db.Database {
	tb.Helper()
	return location.Of(New(tb)).Database(true)
}
