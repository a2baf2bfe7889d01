// Package amqptest runs a real RabbitMQ for the tests of a package, with queues that hold
// the dead letters of real systems.
package amqptest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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
		if err = started.start(); err == nil {
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
	if s.dir, err = os.MkdirTemp("", "rabbit"); err != nil {
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
		c.Env, c.Dir, c.Stdout, c.Stderr = env, s.dir, printed, printed
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

func freePorts(n int) (ports []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()

		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}

		ports = append(ports, port)
	}

	return ports, nil
}

// Broker is a connection with the server, for one test.
type Broker struct {
	*testing.T
	Address string
	*amqp.Channel
}

// Open connects with the server.
func Open(t *testing.T) *Broker {
	t.Helper()
	b := &Broker{T: t, Address: Start(t)}
	conn, err := amqp.Dial(URL(b.Address, "guest"))
	b.check(err)
	t.Cleanup(func() { b.check(conn.Close()) })

	b.Channel, err = conn.Channel()
	b.check(err)
	b.check(b.Channel.Confirm(false))

	return b
}

// URL is the address of the user who may do everything.
func (b *Broker) URL() string { return URL(b.Address, "guest") }

func (b *Broker) check(err error) {
	b.Helper()

	if err != nil {
		b.Fatal(err)
	}
}

// Queue makes a durable queue that lives as long as the test.
func (b *Broker) Queue(name string, args amqp.Table) {
	b.Helper()
	_, err := b.QueueDeclare(name, true, false, false, false, args)
	b.check(err)
	b.Cleanup(func() {
		_, err := b.QueueDelete(name, false, false, false)
		b.check(err)
	})
}

// Put puts a message into a queue.
func (b *Broker) Put(queue string, p amqp.Publishing) {
	b.Helper()
	confirmed, err := b.PublishWithDeferredConfirm("", queue, true, false, p)
	b.check(err)

	if !confirmed.Wait() {
		b.Fatal("the broker did not take a message")
	}
}

// Load makes the queues of a file of genuine messages, and those from which they came,
// and puts the messages there.
func (b *Broker) Load(path ...string) {
	b.Helper()

	queues := Read(b.T, path...)
	made := map[string]bool{}
	for name, messages := range queues {
		b.Queue(name, nil)

		made[name] = true
		for _, m := range messages {
			b.Put(name, m)
		}
	}

	for name, messages := range queues {
		for _, from := range origins(name, messages) {
			if !made[from] {
				b.Queue(from, nil)
				made[from] = true
			}
		}
	}
}

// origins are the queues from which messages came.
func origins(queue string, messages []amqp.Publishing) (all []string) {
	for _, suffix := range []string{".failed", ".dlq"} {
		if name, ok := strings.CutSuffix(queue, suffix); ok {
			all = append(all, name)
		}
	}

	for _, m := range messages {
		if name, ok := m.Headers["x-first-death-queue"].(string); ok {
			all = append(all, name)
		}
	}

	return all
}

// Take takes all messages out of a queue.
func (b *Broker) Take(queue string) (all []amqp.Delivery) {
	b.Helper()

	for {
		d, ok, err := b.Get(queue, true)
		b.check(err)

		if !ok {
			return all
		}

		all = append(all, d)
	}
}

// Dump takes all messages out of queues and writes them as text.
func (b *Broker) Dump(queues ...string) string {
	b.Helper()

	var text strings.Builder
	for _, q := range queues {
		for _, d := range b.Take(q) {
			headers, err := json.Marshal(d.Headers)
			b.check(err)
			fmt.Fprintf(&text, "%s: %s %s mode %d priority %d correlation %q reply %q id %q type %q app %q at %d expiration %q user %q\n  headers %s\n  body %q\n",
				q, d.ContentType, d.ContentEncoding, d.DeliveryMode, d.Priority, d.CorrelationId, d.ReplyTo, d.MessageId, d.Type, d.AppId,
				d.Timestamp.Unix(), d.Expiration, d.UserId, headers, d.Body)
		}
	}

	return text.String()
}

// Read reads a file of genuine messages, by their queues. The files were written by
// clients in several languages, each with its own names.
func Read(t testing.TB, path ...string) map[string][]amqp.Publishing {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	var file map[string]any
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}

	all := map[string][]amqp.Publishing{}
	for queue, content := range file {
		if object, ok := content.(map[string]any); ok {
			content = object["messages"]
		}

		messages, _ := content.([]any)
		for _, m := range messages {
			all[queue] = append(all[queue], publishing(m.(map[string]any)))
		}
	}

	return all
}

func publishing(message map[string]any) amqp.Publishing {
	properties, ok := message["properties"].(map[string]any)
	if !ok {
		properties = message
	}

	headers, ok := message["headers"].(map[string]any)
	if !ok {
		headers, _ = properties["application_headers"].(map[string]any)
	}

	text := func(name string) string {
		s, _ := properties[name].(string)
		return s
	}
	number := func(name string) int64 {
		n, _ := properties[name].(json.Number)
		value, _ := n.Int64() // 0 when there is none
		return value
	}
	body, _ := message["body"].(string)

	p := amqp.Publishing{
		Headers: Table(headers), Body: []byte(body), ContentType: text("content_type"), ContentEncoding: text("content_encoding"),
		DeliveryMode: uint8(number("delivery_mode")), Priority: uint8(number("priority")), CorrelationId: text("correlation_id"),
		ReplyTo: text("reply_to"), MessageId: text("message_id"), Type: text("type"), AppId: text("app_id"),
	}
	if at := number("timestamp"); at > 0 {
		p.Timestamp = time.Unix(at, 0)
	}

	return p
}

// Table makes headers of a JSON object: its whole numbers are integers, and an object of
// the one member timestamp is a time.
func Table(object map[string]any) amqp.Table {
	if object == nil {
		return nil
	}

	t := amqp.Table{}
	for name, value := range object {
		t[name] = valueOf(value)
	}

	return t
}

func valueOf(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if text, ok := v["timestamp"].(string); ok && len(v) == 1 {
			if at, err := time.Parse(time.RFC3339, text); err == nil {
				return at
			}
		}

		return Table(v)
	case []any:
		v = slices.Clone(v)
		for i := range v {
			v[i] = valueOf(v[i])
		}

		return v
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}

		f, _ := v.Float64() // infinite when it is too large

		return f
	}

	return value
}
