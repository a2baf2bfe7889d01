package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"redrive/internal/freeport"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// errMissing says that a server is not installed.
var errMissing = errors.New("not installed")

// daemon is a database server that this program has started, with data of its
// own.
type daemon struct {
	address string // on loopback
	version string
	cmd     *exec.Cmd
	end     os.Signal // asks it to stop at once
	ended   chan error
}

// start starts a server and waits until it answers.
func (d *daemon) start(ctx context.Context, answers func(context.Context) error) error {
	output := new(bytes.Buffer)
	d.cmd.Stdout, d.cmd.Stderr = output, output

	err := d.cmd.Start()
	if err != nil {
		return err
	}

	d.ended = make(chan error, 1)
	go func() { d.ended <- d.cmd.Wait() }()

	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	// It answers, ends, or takes too long.
	for answers(ctx) != nil {
		select {
		case err := <-d.ended:
			return fmt.Errorf("%s ended: %w: %s", d.cmd.Path, err, output)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", d.cmd.Path, errors.Join(ctx.Err(), d.stop()))
		case <-time.After(20 * time.Millisecond):
		}
	}

	return nil
}

// stop stops the server and waits for its end.
func (d *daemon) stop() error {
	if err := d.cmd.Process.Signal(d.end); err != nil {
		return err
	}

	select {
	case <-d.ended: // how it ended does not matter: its data is thrown away
		return nil
	case <-time.After(10 * time.Second):
		return errors.Join(fmt.Errorf("%s had to be killed", d.cmd.Path), d.cmd.Process.Kill())
	}
}

// freeAddress returns an address on loopback where no process listens.
func freeAddress() (host, port string, err error) {
	port, err = freeport.Find()
	return "127.0.0.1", port, err
}

// startRedis starts a Redis that writes to the disk before it answers.
func startRedis(ctx context.Context, dir string) (*daemon, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server is %w (Debian's package redis-server)", errMissing)
	}

	host, port, err := freeAddress()
	if err != nil {
		return nil, err
	}

	d := &daemon{address: net.JoinHostPort(host, port), end: syscall.SIGTERM}
	d.cmd = exec.Command(path, "--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "yes",
		"--appendfsync", "always", "--auto-aof-rewrite-percentage", "0")

	client := redis.NewClient(&redis.Options{Addr: d.address})
	defer client.Close()

	err = d.start(ctx, func(ctx context.Context) error {
		info, err := client.Info(ctx, "server").Result()
		_, after, _ := strings.Cut(info, "redis_version:")
		version, _, _ := strings.Cut(after, "\r")
		d.version = "Redis " + version

		return err
	})

	return d, err
}

// postgres is a running PostgreSQL.
type postgres struct {
	*daemon
	users int // systems that are measured on it
}

// running is the PostgreSQL on which all that need one are measured; nil: there is none yet.
var running *postgres

// sharedPostgres is that server, which is started in dir for the first of its users.
func sharedPostgres(ctx context.Context, dir string) (*postgres, error) {
	if running == nil {
		started, err := startPostgres(ctx, dir)
		if err != nil {
			return nil, err
		}

		running = started
	}

	running.users++

	return running, nil
}

// release stops the server after the last of its users.
func (p *postgres) release() error {
	p.users--
	if p.users > 0 {
		return nil
	}

	running = nil

	return p.stop()
}

// postgresSettings differ from PostgreSQL's own: more memory, and fewer
// checkpoints in the middle of a measurement.
var postgresSettings = []string{
	"fsync=on", "synchronous_commit=on", "full_page_writes=on", "shared_buffers=512MB", "max_wal_size=4GB", "max_connections=200",
}

var postgresWords = "`" + strings.Join(postgresSettings, "`, `") + "`"

// startPostgres starts a PostgreSQL that loses nothing of what it has confirmed. It refuses to run
// as root, so that root runs it as the user postgres.
func startPostgres(ctx context.Context, dir string) (*postgres, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}

	attr, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}

	data := filepath.Join(dir, "data")

	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "bench", "--auth=trust", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = attr, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}

	host, port, err := freeAddress()
	if err != nil {
		return nil, err
	}

	args := []string{"-D", data, "-c", "listen_addresses=" + host, "-c", "port=" + port, "-c", "unix_socket_directories="}
	for _, setting := range postgresSettings {
		args = append(args, "-c", setting)
	}

	p := &postgres{daemon: &daemon{address: net.JoinHostPort(host, port), end: syscall.SIGINT}} // SIGINT is its fast stop
	p.cmd = exec.Command(filepath.Join(bin, "postgres"), args...)
	p.cmd.SysProcAttr, p.cmd.Dir = attr, dir

	return p, p.start(ctx, p.learnVersion)
}

// postgresBin finds the newest that Debian has installed, or the one in the path.
func postgresBin() (string, error) {
	installed, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}

	if len(installed) > 0 {
		return filepath.Dir(installed[len(installed)-1]), nil
	}

	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", fmt.Errorf("PostgreSQL is %w (Debian's package postgresql)", errMissing)
	}

	return filepath.Dir(path), nil
}

// unprivileged lets root run a program in dir as the user postgres.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}

	u, err := user.Lookup("postgres")
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

	attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}

	return attr, os.Chown(dir, uid, gid)
}

func (p *postgres) url(database string) string {
	return "postgres://bench@" + p.address + "/" + database
}

// exec runs a statement about databases.
func (p *postgres) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		return err
	}

	_, err = conn.Exec(ctx, statement)

	return errors.Join(err, conn.Close(ctx))
}

func (p *postgres) learnVersion(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		return err
	}

	version, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ")
	p.version = "PostgreSQL " + version

	return conn.Close(ctx)
}
