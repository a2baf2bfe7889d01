package workers_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
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

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := built(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	if p, err := postgres(); err == nil {
		p.stop()
	}
	os.Exit(code)
}

// freeAddress is one on loopback where no program listens, below the ports that connections get:
// none of them takes it before the server does.
func freeAddress() (address, port string, err error) {
	port = strconv.Itoa(20_000 + rand.IntN(12_000))
	address = net.JoinHostPort("127.0.0.1", port)

	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return freeAddress()
	}
	if err != nil {
		return "", "", err
	}

	return address, port, l.Close()
}

// free is an address on loopback where no program listens.
func free(t testing.TB) (address, port string) {
	t.Helper()
	address, port, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address, port
}

// answers waits until a server takes connections.
func answers(t testing.TB, address string) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// redisServer starts a Redis for one test and returns its URL.
func redisServer(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		missing(t, "redis-server is missing: sudo apt-get install redis-server")
	}
	address, port := free(t)
	start(t, exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir()))
	answers(t, address)
	return "redis://" + address + "/0"
}

// server is the PostgreSQL in which each test has a database.
type server struct {
	cmd     *exec.Cmd
	dir     string
	address string
}

// errMissing says that a program is not installed.
var errMissing = errors.New("PostgreSQL is missing: sudo apt-get install postgresql")

var postgres = sync.OnceValues(startPostgres)

var databases atomic.Int64

// postgresDatabase makes an empty database and returns its URL.
func postgresDatabase(t testing.TB) string {
	t.Helper()
	p, err := postgres()
	if errors.Is(err, errMissing) {
		missing(t, "%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("shop%d", databases.Add(1))
	c, err := pgx.Connect(t.Context(), p.url("postgres"))
	if err == nil {
		_, err = c.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE template0")
		err = errors.Join(err, c.Close(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.url(name)
}

func (p *server) url(database string) string {
	return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Host: p.address, Path: database}).String()
}

// stop ends the server and removes its files.
func (p *server) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGINT) // its fast end
	_ = p.cmd.Wait()
	_ = os.RemoveAll(p.dir)
}

// startPostgres makes a server without its promises to the disk and waits until it answers.
func startPostgres() (p *server, err error) {
	initdb, err := findInitdb()
	if err != nil {
		return nil, err
	}
	p = new(server)
	if p.dir, err = os.MkdirTemp("", "workers"); err != nil {
		return nil, err
	}
	as, err := unprivileged(p.dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(p.dir, "data")
	create := exec.Command(initdb, "-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
	create.SysProcAttr, create.Dir = as, p.dir
	if out, err := create.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	address, port, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p.address = address
	p.cmd = exec.Command(filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-c", "listen_addresses=127.0.0.1", "-c", "port="+port,
		"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=200")
	p.cmd.SysProcAttr, p.cmd.Dir = as, p.dir
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := pgx.Connect(context.Background(), p.url("postgres"))
		if err == nil {
			return p, c.Close(context.Background())
		} else if time.Now().After(end) {
			return nil, err
		}
	}
}

// findInitdb finds the newest that Debian has installed, or the one in the path.
func findInitdb() (string, error) {
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); err != nil || len(found) > 0 {
		return found[len(found)-1], err
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errMissing
	}
	return path, nil
}

// unprivileged lets root run a server in dir as another user: PostgreSQL refuses root.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	as := &syscall.SysProcAttr{Setpgid: true} // the signal of a terminal is for the tests
	if os.Getuid() != 0 {
		return as, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	ids := [2]int{}
	for i, text := range []string{u.Uid, u.Gid} {
		if ids[i], err = strconv.Atoi(strings.TrimSpace(text)); err != nil {
			return nil, err
		}
	}
	as.Credential = &syscall.Credential{Uid: uint32(ids[0]), Gid: uint32(ids[1])}
	return as, os.Chown(dir, ids[0], ids[1])
}
