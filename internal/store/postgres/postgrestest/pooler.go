package postgrestest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/freeport"

	"github.com/jackc/pgx/v5/pgconn"
)

// poolerConfig is the configuration of pgbouncer: it has fewer sessions than a store has
// connections, and gives each transaction any of them.
const poolerConfig = `
[databases]
* = host=%[1]s port=%[2]s user=postgres

[pgbouncer]
listen_addr = %[3]s
listen_port = %[4]s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
`

// Pooler starts pgbouncer, which gives each transaction a session of its own, in front of a
// server, and returns the address by which a database is reached through it. On a machine
// without pgbouncer the test is skipped, and in CI it fails.
func Pooler(tb testing.TB, dsn string) (through string) {
	tb.Helper()

	program, err := exec.LookPath("/usr/sbin/pgbouncer")
	if err != nil && os.Getenv("CI") == "" {
		tb.Skip("pgbouncer is not installed")
	}

	check(tb, err)

	config, err := pgconn.ParseConfig(dsn)
	check(tb, err)
	port, err := freeport.Find()
	check(tb, err)

	dir, err := os.MkdirTemp("", "redrive-pooler")
	check(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })

	as, err := unprivileged(dir)
	check(tb, err)

	file := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(poolerConfig, config.Host, fmt.Sprint(config.Port), "127.0.0.1", port)
	check(tb, os.WriteFile(file, []byte(text), 0o644))

	log := new(bytes.Buffer)
	process := exec.Command(program, file)
	process.Dir, process.SysProcAttr, process.Stdout, process.Stderr = dir, as, log, log
	check(tb, process.Start())
	tb.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		_ = process.Wait()
	})

	server := net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
	through = strings.Replace(dsn, server, freeport.Address(port), 1)

	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()

	err = answers(ctx, through)
	if err != nil {
		tb.Fatalf("pgbouncer does not answer: %v: %s", err, log)
	}

	return through
}

// answers waits until a server answers.
func answers(ctx context.Context, dsn string) error {
	for {
		conn, err := pgconn.Connect(ctx, dsn)
		if err == nil {
			return conn.Close(ctx)
		}

		if ctx.Err() != nil {
			return err
		}

		time.Sleep(20 * time.Millisecond)
	}
}
