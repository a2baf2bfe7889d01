package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"redrive/internal/freeport"
	"redrive/internal/store/health"
	"redrive/internal/store/postgres"
)

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

	port, err := freeport.Find()
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

	process := exec.Command(filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data)
	for _, option := range append([]string{
		"listen_addresses=127.0.0.1", "port=" + port, "unix_socket_directories=", "max_connections=500",
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

	s := newServer(freeport.Address(port))
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
