// Package postgrestest gives tests empty databases on a PostgreSQL server. A package of tests
// starts one with [Run] and ends it; the packages that run beside each other on PostgreSQL share
// the one that [Serve] starts.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/store/db"
	"redrive/internal/store/postgres"
)

// A list that takes long on a busy machine is no failure of a test. The lists of tests are short, and
// are read in several windows all the same.
func init() { db.Patience, db.Window = 10*time.Minute, 50 }

// template is the name of an empty database with the schema, of which others are copies: the
// schema takes longer than most tests.
const template = "redrive_empty"

// New returns the address of an empty database. On a machine without PostgreSQL the test is
// skipped, and in CI it fails.
func New(tb testing.TB) (dsn string) {
	tb.Helper()

	s := need(tb)
	name, err := s.empty(tb.Context())
	check(tb, err)
	tb.Cleanup(func() { check(tb, s.giveBack(name)) })

	return s.dsn(name)
}

// Bare returns the address of a database that has no schema yet, made with options of CREATE
// DATABASE, and a function that runs statements in it as the superuser.
func Bare(tb testing.TB, options string) (dsn string, run func(text string)) {
	tb.Helper()

	s := need(tb)
	name := s.newName()
	check(tb, s.admin(tb.Context(), `CREATE DATABASE `+name+` `+options))
	tb.Cleanup(func() { check(tb, s.admin(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`)) })

	return s.dsn(name), func(text string) {
		tb.Helper()
		check(tb, s.run(context.Background(), name, text)) // also after the test
	}
}

// NewRole returns the address of an empty database for a role of its own that is no superuser, and
// the name of the role.
func NewRole(tb testing.TB) (dsn, role string) {
	tb.Helper()

	dsn = New(tb)
	role = need(tb).newName()
	Query(tb, dsn, `CREATE ROLE `+role+` LOGIN; GRANT ALL ON SCHEMA public TO `+role+`;
		GRANT ALL ON ALL TABLES IN SCHEMA public TO `+role+`; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO `+role)
	tb.Cleanup(func() {
		check(tb, need(tb).run(context.Background(), nameOf(dsn), `DROP OWNED BY `+role+`; DROP ROLE `+role))
	})

	return strings.Replace(dsn, "postgres@", role+"@", 1), role
}

// nameOf is the name of the database at an address.
func nameOf(dsn string) string {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return ""
	}

	return config.Database
}

// Admin runs statements on the server that the tests share, as the superuser.
func Admin(tb testing.TB, text string) {
	tb.Helper()
	check(tb, need(tb).run(tb.Context(), "postgres", text))
}

// Query runs statements in a database beside the program under test, and returns the first value
// of the first one.
func Query(tb testing.TB, dsn, text string) string {
	tb.Helper()

	conn, err := pgconn.Connect(tb.Context(), dsn)
	check(tb, err)
	all, err := conn.Exec(tb.Context(), text).ReadAll()
	check(tb, errors.Join(err, conn.Close(context.Background())))

	if len(all) == 0 || len(all[0].Rows) == 0 {
		return ""
	}

	return string(all[0].Rows[0][0])
}

// ExpireLease lets another process take over from the one that works on a database, without the
// time that the lease of a dead one lasts.
func ExpireLease(tb testing.TB, dsn string) {
	tb.Helper()
	Query(tb, dsn, `UPDATE leases SET until = now() - interval '1 second'`)
}

// empty takes a database that an earlier test has left, or makes one.
func (s *server) empty(ctx context.Context) (name string, err error) {
	select {
	case name := <-s.left:
		return name, nil
	default:
	}

	name = s.newName()

	return name, s.admin(ctx, `CREATE DATABASE `+name+` TEMPLATE `+template+` STRATEGY file_copy`)
}

// newName names a database. Several processes of tests can share the server.
func (s *server) newName() string {
	return fmt.Sprintf("redrive_%d_%d", os.Getpid(), s.databases.Add(1))
}

// wipe empties every table that has rows, and leaves what a new database has. To make a database
// takes longer than most tests.
const wipe = `
	SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
	SET session_replication_role = replica; -- no trigger guards the audit log
	DO $$ DECLARE name text; filled boolean; BEGIN
		FOR name IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
			EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', name) INTO filled;
			CONTINUE WHEN NOT filled OR name = 'schema_version';
			EXECUTE format('DELETE FROM %I', name);
		END LOOP;
		FOR name IN SELECT relname FROM pg_class WHERE relkind = 'S' LOOP
			PERFORM setval(name::regclass, 1, false);
		END LOOP;
	END $$;`

// giveBack leaves a database to a later test.
func (s *server) giveBack(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	err := s.run(ctx, name, wipe+postgres.FirstRows)
	if err == nil {
		s.left <- name
	}

	return err
}

// Run runs the tests of a package, and ends the server after them.
func Run(m *testing.M) {
	code := m.Run()

	if begun.Load() {
		s, err := started()
		if err == nil && s.process != nil {
			s.stop()
		}
	}

	os.Exit(code)
}

// shared is the variable with the address of a server that several processes share.
const shared = "REDRIVE_TEST_POSTGRES"

// Serve runs a command beside a server, which its tests share, and ends the server after it.
func Serve(command *exec.Cmd) error {
	s, err := start(careless)
	if err != nil {
		return err
	}
	defer s.stop()

	command.Env = append(command.Environ(), shared+"="+s.address)

	return command.Run()
}

// use returns the server that is shared, or starts one.
func use() (*server, error) {
	address := os.Getenv(shared)
	if address == "" {
		return start(careless)
	}

	return newServer(address), nil
}

func newServer(address string) *server {
	return &server{address: address, left: make(chan string, 1000)}
}

// server is a server of PostgreSQL.
type server struct {
	process   *exec.Cmd // nil: another process has started it
	dir       string
	address   string
	databases atomic.Int64
	lock      sync.Mutex  // of the template, which only one copies at a time
	left      chan string // databases of tests that have ended
}

var (
	begun   atomic.Bool
	started = sync.OnceValues(use)
)

// errMissing says that PostgreSQL is not installed.
var errMissing = errors.New("PostgreSQL is not installed")

func need(tb testing.TB) *server {
	tb.Helper()

	begun.Store(true)

	s, err := started()
	if errors.Is(err, errMissing) && os.Getenv("CI") == "" {
		tb.Skip(err)
	}

	check(tb, err)

	return s
}

func check(tb testing.TB, err error) {
	tb.Helper()

	if err != nil {
		tb.Fatal(err)
	}
}

func (s *server) dsn(name string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", s.address, name)
}

// admin runs a statement that makes a database.
func (s *server) admin(ctx context.Context, text string) error {
	s.lock.Lock()
	defer s.lock.Unlock()

	return s.run(ctx, "postgres", text)
}

// run runs statements in a database.
func (s *server) run(ctx context.Context, name, text string) error {
	conn, err := pgconn.Connect(ctx, s.dsn(name))
	if err != nil {
		return err
	}

	_, err = conn.Exec(ctx, text).ReadAll()

	return errors.Join(err, conn.Close(context.Background()))
}
