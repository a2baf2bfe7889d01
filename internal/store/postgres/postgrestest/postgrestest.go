// Package postgrestest gives tests empty databases on a PostgreSQL server. A package of tests
// starts one with [Run] and ends it; the packages that run beside each other on PostgreSQL share
// the one that [Serve] starts.
package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/store/db"
	"redrive/internal/store/health"
	"redrive/internal/store/postgres"
)

// A list that takes long on a busy machine is no failure of a test.
func init() { db.Patience = 10 * time.Minute }

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

// careless are the settings of a server from which nothing has to outlive a test.
var careless = []string{"fsync=off", "full_page_writes=off", "synchronous_commit=off", "autovacuum=off"}

// durable are those of a server that has on the disk what it has confirmed, and cleans up.
var durable = []string{
	"fsync=on", "full_page_writes=on", "synchronous_commit=on", "autovacuum=on", "shared_buffers=512MB", "max_wal_size=4GB",
}

// Durable starts a server on which the program is as fast as on one that people use, and returns
// a function that makes an empty database there. On a machine without PostgreSQL the benchmark is
// skipped, and in CI it fails.
func Durable(tb testing.TB) (empty func() (dsn string)) {
	tb.Helper()

	s, err := start(durable)
	if errors.Is(err, errMissing) && os.Getenv("CI") == "" {
		tb.Skip(err)
	}

	check(tb, err)
	tb.Cleanup(s.stop)

	return func() string {
		tb.Helper()

		name, err := s.empty(tb.Context())
		check(tb, err)

		return s.dsn(name)
	}
}

// start makes a cluster in a folder of its own, starts its server with such settings, and makes
// the template.
func start(settings []string) (*server, error) {
	initdb, err := installed()
	if err != nil {
		return nil, err
	}

	dir, err := os.MkdirTemp("", "redrive-postgres")
	if err != nil {
		return nil, err
	}

	as, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}

	address, err := freeAddress()
	if err != nil {
		return nil, err
	}

	data := filepath.Join(dir, "data")
	cluster := exec.Command(initdb, "-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8")
	cluster.SysProcAttr, cluster.Dir = as, dir

	out, err := cluster.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("make a cluster: %w: %s", err, out)
	}

	host, port, _ := net.SplitHostPort(address)
	process := exec.Command(filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data)
	for _, option := range append([]string{
		"listen_addresses=" + host, "port=" + port, "unix_socket_directories=", "max_connections=500",
		"max_prepared_transactions=10", "max_wal_senders=10",
	}, settings...) {
		process.Args = append(process.Args, "-c", option)
	}

	log := new(bytes.Buffer)
	process.Dir, process.SysProcAttr, process.Stdout, process.Stderr = dir, as, log, log

	err = process.Start()
	if err != nil {
		return nil, err
	}

	s := newServer(address)
	s.process, s.dir = process, dir

	err = s.makeTemplate()
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("%w: %s", err, log)
	}

	return s, nil
}

// makeTemplate waits until the server answers, and makes the template.
func (s *server) makeTemplate() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	err := answers(ctx, s.dsn("postgres"))
	if err == nil {
		err = s.admin(ctx, `CREATE DATABASE `+template)
	}

	if err != nil {
		return err
	}

	engine, err := postgres.Server{DSN: s.dsn(template)}.Open(ctx, health.New(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}

	return engine.Close()
}

// stop ends the server by its process id and removes its files.
func (s *server) stop() {
	_ = s.process.Process.Signal(syscall.SIGINT)
	_ = s.process.Wait()
	_ = os.RemoveAll(s.dir)
}

// installed finds the newest initdb.
func installed() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}

	if len(found) > 0 {
		return found[len(found)-1], nil
	}

	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errMissing
	}

	return path, nil
}

// unprivileged lets root run a server in dir as another user, which PostgreSQL wants.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	as := &syscall.SysProcAttr{Setpgid: true} // the signal of a terminal is for the tests
	if os.Getuid() != 0 {
		return as, nil
	}

	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}

	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}

	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}

	as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}

	return as, os.Chown(dir, uid, gid)
}

// freeAddress is an address on this machine at which no program listens.
func freeAddress() (string, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}

	return free.Addr().String(), free.Close()
}
