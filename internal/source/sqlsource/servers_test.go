package sqlsource_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redrive/internal/freeport"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
)

// server is a database server that the tests started, once for all of them.
type server struct {
	process *exec.Cmd
	dir     string
	address string // host and port
}

// errMissing says that a program is not installed.
var errMissing = errors.New("not installed")

var (
	postgres = sync.OnceValues(func() (*server, error) { return startServer(initPostgres, "pgx", "postgres://postgres@%s/postgres") })
	mariadb  = sync.OnceValues(func() (*server, error) { return startServer(initMariaDB, "mysql", "root@tcp(%s)/mysql") })
	started  []*server
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range started {
		s.stop()
	}
	os.Exit(code)
}

// stop ends a server by its process id and removes its files.
func (s *server) stop() {
	_ = s.process.Process.Signal(syscall.SIGTERM)
	_ = s.process.Wait()
	_ = os.RemoveAll(s.dir)
}

// startServer runs the command that init makes, and waits until the server answers.
func startServer(init func(dir, host, port string, as *syscall.SysProcAttr) (*exec.Cmd, error), driver, dsn string) (*server, error) {
	dir, err := os.MkdirTemp("", "sources")
	if err != nil {
		return nil, err
	}
	as, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	port, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	cmd, err := init(dir, "127.0.0.1", port, as)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	log := new(bytes.Buffer)
	cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = dir, as, log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd, dir, freeport.Address(port)}
	started = append(started, s)
	db, err := sql.Open(driver, fmt.Sprintf(dsn, s.address))
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err = db.Ping(); err == nil || time.Now().After(end) {
			return s, errors.Join(err, db.Close())
		}
	}
}

// unprivileged lets root run servers in dir as a user who is not root, which they want.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	as := &syscall.SysProcAttr{Setpgid: true} // the signal of a terminal is for the tests
	if os.Getuid() != 0 {
		return as, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return as, os.Chown(dir, int(uid), int(gid))
}

// installed finds a program, the newest where a pattern has several.
func installed(pattern, name string) (string, error) {
	if found, err := filepath.Glob(pattern); err != nil || len(found) > 0 {
		return found[len(found)-1], err
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is %w", name, errMissing)
	}
	return path, nil
}

func initPostgres(dir, host, port string, as *syscall.SysProcAttr) (*exec.Cmd, error) {
	initdb, err := installed("/usr/lib/postgresql/*/bin/initdb", "initdb")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	cmd := exec.Command(initdb, "-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
	cmd.SysProcAttr, cmd.Dir = as, dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	options := []string{
		"listen_addresses=" + host, "port=" + port, "unix_socket_directories=", "max_connections=100", "timezone=Asia/Tokyo",
		// Nothing has to outlive the server, and many databases are made.
		"fsync=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0", "autovacuum=off",
	}
	server := exec.Command(filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data)
	for _, option := range options {
		server.Args = append(server.Args, "-c", option)
	}
	return server, nil
}

func initMariaDB(dir, host, port string, as *syscall.SysProcAttr) (*exec.Cmd, error) {
	install, err := installed("/usr/bin/mariadb-install-db", "mariadb-install-db")
	if err != nil {
		return nil, err
	}
	mariadbd, err := installed("/usr/sbin/mariadbd", "mariadbd")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	cmd := exec.Command(install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db", "--tmpdir="+dir)
	cmd.SysProcAttr, cmd.Dir = as, dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}
	return exec.Command(mariadbd, "--no-defaults", "--datadir="+data, "--bind-address="+host, "--port="+port, "--tmpdir="+dir,
		"--socket="+filepath.Join(dir, "socket"), "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin", "--skip-name-resolve"), nil
}

// need is a server, or the end of a test on a machine that does not have it. In CI that
// is a failure.
func need(t *testing.T, start func() (*server, error)) *server {
	t.Helper()
	s, err := start()
	if errors.Is(err, errMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	check(t, err)
	return s
}

var databases atomic.Int64

// emptied are databases of tests that have ended. PostgreSQL makes three hundred files for a
// new database, which takes longer than most tests.
var emptied = make(chan string, 100)

// empty leaves nothing in a database of PostgreSQL but what each new one has.
const empty = `
	SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
	DO $$ DECLARE s text; BEGIN
		FOR s IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
			EXECUTE format('DROP SCHEMA %I CASCADE', s);
		END LOOP;
	END $$;
	CREATE SCHEMA public;
	GRANT USAGE ON SCHEMA public TO PUBLIC`

// newDatabase makes an empty database and returns its URL. A SQLite database is a file.
func newDatabase(t *testing.T, engine string) (address string) {
	t.Helper()
	name := fmt.Sprintf("source%d", databases.Add(1))
	switch engine {
	case "postgres":
		s := need(t, postgres)
		select {
		case address = <-emptied:
		default:
			execute(t, "postgres://postgres@"+s.address+"/postgres", "CREATE DATABASE "+name+" TEMPLATE template0 STRATEGY FILE_COPY")
			address = "postgres://postgres@" + s.address + "/" + name
		}
		t.Cleanup(func() {
			execute(t, address, empty)
			emptied <- address
		})
		return address
	case "mysql":
		s := need(t, mariadb)
		execute(t, "mysql://root@"+s.address+"/mysql", "CREATE DATABASE "+name)
		return "mysql://root@" + s.address + "/" + name
	}
	return "sqlite://" + filepath.Join(t.TempDir(), "source.sqlite")
}

// loaded makes a database of a dump.
func loaded(t *testing.T, engine, file string, more ...string) (address string) {
	t.Helper()
	address = newDatabase(t, engine)
	content, err := os.ReadFile(filepath.Join("../testdata", file))
	check(t, err)
	execute(t, address, string(content))
	for _, statement := range more {
		execute(t, address, statement)
	}
	return address
}

// ofClient are lines that are for the client which loads a dump.
var ofClient = regexp.MustCompile(`(?m)^(\\(un)?restrict .*|/\*M!999999.*)$`)

// execute runs a script of statements.
func execute(t *testing.T, address, script string) {
	t.Helper()
	script = ofClient.ReplaceAllString(script, "")
	if strings.HasPrefix(address, "postgres:") {
		ctx := context.WithoutCancel(t.Context()) // a script may be for the time after the test
		c, err := pgx.Connect(ctx, address)
		check(t, err)
		defer c.Close(ctx)
		_, err = c.PgConn().Exec(ctx, script).ReadAll()
		check(t, err)
		return
	}
	db := open(t, address)
	_, err := db.Exec(script)
	check(t, err)
	check(t, db.Close())
}

// open opens a database for the tests themselves.
func open(t *testing.T, address string) *sql.DB {
	t.Helper()
	u, err := url.Parse(address)
	check(t, err)
	var db *sql.DB
	switch u.Scheme {
	case "postgres":
		db, err = sql.Open("pgx", address)
	case "mysql":
		password, _ := u.User.Password()
		db, err = sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)%s?multiStatements=true", u.User.Username(), password, u.Host, u.Path))
	default:
		db, err = sql.Open("sqlite", "file:"+u.Path+"?_pragma=busy_timeout(10000)")
	}
	check(t, err)
	return db
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
