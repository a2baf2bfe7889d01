// Package amqptest runs a real RabbitMQ for the tests of a package, with queues that hold
// the dead letters of real systems.
package amqptest

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"redrive/internal/freeport"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The users of the server beside guest, who may do everything.
const (
	Reader = "reader" // may read queues and nothing else
)

// program is where Debian's package has the server. The command of this name in the path
// would run it as another user.
const program = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// server is a node with files, a name and a port mapper of its own.
type server struct {
	dir  string
	port string
	epmd *exec.Cmd
	node *exec.Cmd

	ended chan error // gets how the node has ended
}

// start tries other ports if the server ends: another program can take a port between its
// choice and its use.
var start = sync.OnceValues(func() (s *server, err error) {
	for range 3 {
		started = &server{ended: make(chan error, 1)}

		err = started.start()
		if err == nil {
			return started, nil
		}

		started.stop()
	}

	return nil, err
})

var started *server

// Main runs the tests of a package and stops the server that they started.
func Main(m *testing.M) {
	code := m.Run()

	Stop()
	os.Exit(code)
}

// Stop stops the server that tests started, if they did.
func Stop() {
	if started != nil {
		started.stop()
	}
}

// Start returns the address of a server for all tests of the package. Without Debian's
// package rabbitmq-server the test is skipped; in CI it fails.
func Start(t *testing.T) (address string) {
	t.Helper()

	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("rabbitmq-server is missing: .ci/prepare installs it")
		}

		t.Skip("rabbitmq-server is missing: sudo apt-get install rabbitmq-server")
	}

	s, err := start()
	if err != nil {
		t.Fatal(err)
	}

	return "127.0.0.1:" + s.port
}

// URL is the address of a user.
func URL(address, user string) string { return fmt.Sprintf("amqp://%s:%[1]s@%s/", user, address) }

// start runs the port mapper and the node, and waits until it answers.
func (s *server) start() (err error) {
	s.dir, err = os.MkdirTemp("", "rabbit")
	if err != nil {
		return err
	}

	ports, err := freePorts(3)
	if err != nil {
		return err
	}

	s.port = ports[0]
	if err := s.configure(); err != nil {
		return err
	}

	env := append(os.Environ(),
		"HOME="+s.dir, "ERL_EPMD_PORT="+ports[1], "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=redrive-"+s.port+"@localhost", "RABBITMQ_DIST_PORT="+ports[2], "RABBITMQ_CONF_ENV_FILE=/dev/null",
		"RABBITMQ_MNESIA_BASE="+s.dir, "RABBITMQ_LOG_BASE="+s.dir, "RABBITMQ_CONFIG_FILE="+filepath.Join(s.dir, "rabbitmq.conf"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(s.dir, "plugins"), "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-start_epmd false +sbwt none")

	printed, err := os.Create(filepath.Join(s.dir, "printed"))
	if err != nil {
		return err
	}
	defer printed.Close()

	s.epmd, s.node = exec.Command("epmd", "-port", ports[1]), exec.Command(program)
	for _, c := range []*exec.Cmd{s.epmd, s.node} {
		c.Env = env
		c.Dir = s.dir
		c.Stdout = printed

		c.Stderr = printed
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its children end with it
		if err := c.Start(); err != nil {
			return err
		}
	}
	go func() { s.ended <- s.node.Wait() }()

	for late := time.After(5 * time.Minute); ; {
		conn, err := amqp.Dial(URL("127.0.0.1:"+s.port, "guest"))
		if err == nil {
			return conn.Close()
		}

		select {
		case <-time.After(50 * time.Millisecond):
			continue
		case err = <-s.ended:
			s.ended <- err // for stop
		case <-late:
		}

		text, _ := os.ReadFile(printed.Name()) // it only helps to understand

		return fmt.Errorf("rabbitmq-server does not answer: %w\n%s", err, text)
	}
}

// configure writes the files of the server.
func (s *server) configure() error {
	user := func(name string) string {
		hash := sha256.Sum256([]byte("salt" + name))
		return fmt.Sprintf(`{"name": %q, "tags": "", "hashing_algorithm": "rabbit_password_hashing_sha256", "password_hash": %q}`,
			name, base64.StdEncoding.EncodeToString(append([]byte("salt"), hash[:]...)))
	}
	definitions := fmt.Sprintf(`{"users": [%s, %s], "vhosts": [{"name": "/"}], "permissions": [
		{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
		{"user": %q, "vhost": "/", "configure": "^$", "write": "^$", "read": ".*"}]}`, user("guest"), user(Reader), Reader)
	path := filepath.Join(s.dir, "definitions.json")
	conf := fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%s\nlog.file.level = warning\n"+
		"definitions.import_backend = local_filesystem\ndefinitions.local.path = %s\n", s.port, path)

	return errors.Join(os.WriteFile(path, []byte(definitions), 0o644),
		os.WriteFile(filepath.Join(s.dir, "plugins"), nil, 0o644),
		os.WriteFile(filepath.Join(s.dir, "rabbitmq.conf"), []byte(conf), 0o644))
}

// stop ends the processes, which were started as groups, and removes the files.
func (s *server) stop() {
	for _, c := range []*exec.Cmd{s.node, s.epmd} {
		if c != nil && c.Process != nil {
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		}
	}

	if s.epmd != nil && s.epmd.Process != nil {
		_ = s.epmd.Wait() // it was killed
	}

	if s.node != nil && s.node.Process != nil {
		<-s.ended
	}

	_ = os.RemoveAll(s.dir)
}

// freePorts are different ports at which no program listens.
func freePorts(n int) (ports []string, err error) {
	for len(ports) < n {
		port, err := freeport.Find()
		if err != nil {
			return nil, err
		}

		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}

	return ports, nil
}
