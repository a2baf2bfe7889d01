package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"redrive/internal/fault"
	"redrive/internal/store/health"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
)

// A newer program that stands by leaves the schema alone under the older one that works on it.
func TestMigrate_WaitsForTheLease(t *testing.T) {
	dsn := postgrestest.New(t)
	first := mustOpen(t, dsn)

	newest := sql(t, dsn, `SELECT n FROM schema_version`)
	sql(t, dsn, `UPDATE schema_version SET n = n - 1`)

	_, err := openAt(t, dsn)
	if _, locked := errors.AsType[*health.LockedError](err); !locked {
		t.Errorf("the second start says %v", err)
	}

	// It makes the steps that are missing when it takes over: here, one that has been made.
	check(t, first.Close())

	_, err = openAt(t, dsn)
	if !errors.Is(err, fault.ErrUnsafe) {
		t.Errorf("the migration says %v", err)
	}

	if holder := sql(t, dsn, `SELECT holder FROM leases`); holder != "" {
		t.Errorf("%s keeps the lease after a start that failed", holder)
	}

	sql(t, dsn, `UPDATE schema_version SET n = `+newest)
	check(t, mustOpen(t, dsn).Close())
}

// A program that is older than the schema ends at once, also while another one works on it.
func TestMigrate_RefusesANewerSchema(t *testing.T) {
	dsn := postgrestest.New(t)
	first := mustOpen(t, dsn)

	sql(t, dsn, `UPDATE schema_version SET n = n + 1`)

	_, err := openAt(t, dsn)
	if !errors.Is(err, fault.ErrUnsafe) || !strings.Contains(err.Error(), "use a newer version") {
		t.Errorf("an older program says %v", err)
	}

	sql(t, dsn, `UPDATE schema_version SET n = n - 1`)
	check(t, first.Close())
}

// A process that was frozen while it made the tables does not block another one.
func TestMigrate_DoesNotWaitForAFrozenProcess(t *testing.T) {
	dsn, _ := postgrestest.Bare(t, "")
	session(t, dsn, "another", `BEGIN; SELECT pg_advisory_xact_lock(7310576482401)`)

	_, err := openAt(t, dsn)
	if !errors.Is(err, fault.ErrBusy) || !strings.Contains(err.Error(), "another process is changing the tables") {
		t.Errorf("the second process says %v", err)
	}
}

// A standby looks on one connection.
func TestWatch_KeepsItsConnection(t *testing.T) {
	const sessions = `SELECT string_agg(concat(pid, backend_start), ' ' ORDER BY pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'redrive'`

	dsn := postgrestest.New(t)
	s := mustOpen(t, dsn)

	watch, err := postgres.Server{DSN: dsn}.Watch()
	check(t, err)

	before := ""
	for range 3 {
		held, err := watch.Holder(t.Context())
		check(t, err)

		if held == nil || held.Holder == "" {
			t.Errorf("%+v has the lease", held)
		}

		now := sql(t, dsn, sessions)
		if before != "" && now != before {
			t.Errorf("the sessions are %s, and were %s", now, before)
		}

		before = now
	}

	check(t, s.Close())

	held, err := watch.Holder(t.Context())
	if err != nil || held != nil {
		t.Errorf("%+v has the lease: %v", held, err)
	}

	check(t, watch.Close())
}
