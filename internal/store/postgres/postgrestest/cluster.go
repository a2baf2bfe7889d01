package postgrestest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"redrive/internal/freeport"

	"github.com/jackc/pgx/v5/pgconn"
)

// Cluster is a server of one test, which can be stopped, started and promoted. A commit that it
// has acknowledged outlives its processes.
type Cluster struct {
	tb      testing.TB
	bin     string // where the programs of PostgreSQL are
	dir     string
	as      *syscall.SysProcAttr
	address string
	options []string // of the server

	process *exec.Cmd // nil: it is stopped
	log     bytes.Buffer
}

// NewCluster starts a server with options such as max_connections=20, until the test ends.
func NewCluster(tb testing.TB, options ...string) *Cluster {
	tb.Helper()

	c := newCluster(tb, options)
	c.run("initdb", "-D", c.data(), "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8")
	c.Start()

	return c
}

// newCluster is a server that is stopped and has no data.
func newCluster(tb testing.TB, options []string) *Cluster {
	tb.Helper()

	need(tb) // which skips the test where there is no PostgreSQL

	initdb, err := installed()
	check(tb, err)

	dir, err := os.MkdirTemp("", "redrive-cluster")
	check(tb, err)

	c := &Cluster{tb: tb, bin: filepath.Dir(initdb), dir: dir, options: options}
	tb.Cleanup(func() {
		c.Stop(syscall.SIGQUIT)
		check(tb, os.RemoveAll(dir))
	})

	c.as, err = unprivileged(dir)
	check(tb, err)

	port, err := freeport.Find()
	check(tb, err)

	c.address = freeport.Address(port)

	return c
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// Address is the host and the port of the server.
func (c *Cluster) Address() string { return c.address }

// DSN is the address of its database of a name.
func (c *Cluster) DSN(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", c.address, database)
}

// Start starts the server, and waits until it answers.
func (c *Cluster) Start() {
	c.tb.Helper()

	host, port, err := net.SplitHostPort(c.address)
	check(c.tb, err)

	process := exec.Command(filepath.Join(c.bin, "postgres"), "-D", c.data())
	for _, option := range append([]string{
		"listen_addresses=" + host, "port=" + port, "unix_socket_directories=", "fsync=off", "autovacuum=off", "max_wal_senders=5",
	}, c.options...) {
		process.Args = append(process.Args, "-c", option)
	}

	process.Dir, process.SysProcAttr = c.dir, c.as
	process.Stdout, process.Stderr = &c.log, &c.log
	check(c.tb, process.Start())
	c.process = process

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	err = answers(ctx, c.DSN("postgres"))
	if err != nil {
		c.tb.Fatalf("%v: %s", err, &c.log)
	}
}

// Stop ends the server: by SIGINT in order, by SIGQUIT as if it crashed.
func (c *Cluster) Stop(signal os.Signal) {
	if c.process == nil {
		return
	}

	_ = c.process.Process.Signal(signal)
	_ = c.process.Wait()
	c.process = nil
}

// Replica starts a server that follows this one.
func (c *Cluster) Replica() *Cluster {
	c.tb.Helper()

	r := newCluster(c.tb, nil)
	r.run("pg_basebackup", "-D", r.data(), "-R", "--no-sync", "--checkpoint=fast", "-d", c.DSN("postgres"))
	r.Start()

	return r
}

// Promote makes a replica a server that takes writes.
func (c *Cluster) Promote() {
	c.tb.Helper()
	Query(c.tb, c.DSN("postgres"), `SELECT pg_promote(true, 60)`)
}

// Demote lets the server start as one that takes no writes.
func (c *Cluster) Demote() {
	c.tb.Helper()
	check(c.tb, os.WriteFile(filepath.Join(c.data(), "standby.signal"), nil, 0o600))
}

// SmallDisk is the folder of a disk of some megabytes on which the server may write. Where the test
// may not mount one, it is skipped.
func (c *Cluster) SmallDisk() (dir string) {
	c.tb.Helper()

	dir, err := os.MkdirTemp("", "redrive-disk")
	check(c.tb, err)

	mounted := false
	c.tb.Cleanup(func() {
		c.Stop(syscall.SIGQUIT)

		if mounted {
			check(c.tb, syscall.Unmount(dir, 0))
		}
		check(c.tb, os.Remove(dir))
	})

	owner := os.Geteuid()
	if c.as.Credential != nil {
		owner = int(c.as.Credential.Uid)
	}

	out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=40m,mode=0700,uid=%d", owner), "none", dir).CombinedOutput()
	if err != nil {
		c.tb.Skipf("a small disk cannot be mounted: %v: %s", err, out)
	}

	mounted = true

	return dir
}

// run runs a program of PostgreSQL to its end.
func (c *Cluster) run(program string, args ...string) {
	c.tb.Helper()

	command := exec.Command(filepath.Join(c.bin, program), args...)
	command.Dir, command.SysProcAttr = c.dir, c.as

	out, err := command.CombinedOutput()
	if err != nil {
		c.tb.Fatalf("%s: %v: %s", program, err, out)
	}
}

// TakeConnections takes all connections that a server has, and those of programs but for the one
// with which a program renews its lease. leave gives them back.
func (c *Cluster) TakeConnections() (leave func()) {
	c.tb.Helper()

	const end = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE application_name LIKE 'redrive %' AND query NOT LIKE '%UPDATE leases%'`

	var taken []*pgconn.PgConn
	takeAll := func() {
		for {
			conn, err := pgconn.Connect(c.tb.Context(), c.DSN("postgres"))
			if err != nil {
				return
			}

			taken = append(taken, conn)
		}
	}

	takeAll()

	left := "1"
	for left != "0" {
		all, err := taken[0].Exec(c.tb.Context(), end).ReadAll()
		check(c.tb, err)

		left = string(all[0].Rows[0][0])

		takeAll()
	}

	return func() {
		for _, conn := range taken {
			check(c.tb, conn.Close(context.Background()))
		}
	}
}
