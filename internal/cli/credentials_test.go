package cli

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"redrive/internal/cli/console"
	"redrive/test/rig"
)

const testPassword = "s3cr-hush"

// withPassword are URLs and data sources with a password in every place that takes one, also
// those in which it is wrong.
var withPassword = []string{
	"postgres://ana:" + testPassword + "@127.0.0.1:1/db", "redis://:" + testPassword + "@127.0.0.1:1/0", "postgres://127.0.0.1:1/db?password=" + testPassword,
	"none/host=127.0.0.1 port=1 password=" + testPassword,
	"mysql://ana:" + testPassword + "@127.0.0.1:1/db?tls=x", "amqp://ana:" + testPassword + "@127.0.0.1:1/?queues=a", "http://ana:" + testPassword + "@127.0.0.1:1",
	"postgres://ana:" + testPassword + "/" + testPassword + "@127.0.0.1:1/db", "postgres://ana:" + testPassword + "%zz@127.0.0.1:1/db", "ana:" + testPassword + "@tcp(127.0.0.1:1)/db",
	"postgres://ana:" + testPassword + `\"x@127.0.0.1:1/db`, "sqlite://ana:" + testPassword + "@none/x.db", "http://ana:" + testPassword + "/" + testPassword + "@127.0.0.1:1",
}

// TestCommands_PrintNoCredentials gives every command one URL, and one command of each
// kind every URL.
func TestCommands_PrintNoCredentials(t *testing.T) {
	for _, url := range withPassword {
		runWithPassword(t, someCommands(url))
	}
	runWithPassword(t, otherCommands(withPassword[0]))
}

// TestLong_CommandsPrintNoCredentials gives every command the other URLs too.
func TestLong_CommandsPrintNoCredentials(t *testing.T) {
	for _, url := range withPassword[1:] {
		runWithPassword(t, otherCommands(url))
	}
}

// someCommands are one of each kind of those that get a URL.
func someCommands(url string) [][]string {
	look := "check"
	if url == withPassword[0] || strings.Contains(url, "%zz") || strings.Contains(url, "/"+testPassword) {
		look = "discover" // an address that does not answer takes its time
	}
	return [][]string{
		{"source", look, url}, {"serve", "--db", url, "--listen", "127.0.0.1:0"}, {"list", "--server", url}, {"restore", url}, {url},
	}
}

func otherCommands(url string) [][]string {
	return [][]string{
		{"serve", "--db=" + url, "--log-format", "json", "--listen", "127.0.0.1:0"},
		{"--listen", url}, {"--config", url}, {"--base-path", url}, {"--log-level", url}, {"serve", url},
		{"list", "--db", url}, {"health", "--server", url}, {"doctor", "--db", url}, {"doctor", url},
		{"backup", "--db", url, url}, {"restore", url, "--db", url}, {"check", url}, {"source", "check", url},
		{"user", "list", "--db", url}, {"token", "list", "--server", url}, {"enqueue", url, "{}", "--server", url},
		{"show", url, "--server", url}, {"policy", url},
	}
}

// runWithPassword runs commands that must fail without a word of the password, or wait for their
// database without one.
func runWithPassword(t *testing.T, commands [][]string) {
	t.Helper()
	for _, args := range commands {
		out := &untilWaiting{stop: make(chan os.Signal, 1)}
		code := Execute(args, console.Console{Stdin: strings.NewReader(""), Stdout: out, Stderr: out, Signals: out.signals})

		said := out.said.String()
		if code == 0 && !out.waited || strings.Contains(said, "s3cr") || strings.Contains(said, "hush") {
			t.Errorf("%q: exit %d\n%s", args, code, said)
		}
	}
}

// untilWaiting is what a command says. It stops one that says that it waits for its database.
type untilWaiting struct {
	mu     sync.Mutex
	said   bytes.Buffer
	waited bool
	stop   chan os.Signal
}

func (u *untilWaiting) Write(text []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()

	n, err := u.said.Write(text)
	if !u.waited && strings.Contains(u.said.String(), "the database cannot be used") {
		u.waited = true
		u.stop <- syscall.SIGTERM
	}

	return n, err
}

// signals are the interrupts of the command, and nothing else.
func (u *untilWaiting) signals(which ...os.Signal) (<-chan os.Signal, func()) {
	if !slices.Contains(which, os.Signal(syscall.SIGTERM)) {
		return nil, func() {}
	}

	return u.stop, func() {}
}

// noSignals is a process that gets no signal.
func noSignals(...os.Signal) (<-chan os.Signal, func()) { return nil, func() {} }

// The environment stands for flags, so its passwords are not printed either.
func TestCommands_PrintNoCredentialsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"REDRIVE_DB", "REDRIVE_SERVER", "REDRIVE_CONFIG", "REDRIVE_LISTEN", "REDRIVE_BASE_PATH"} {
		value := "postgres://ana:s3cr-hush@127.0.0.1:1/db"
		if variable == "REDRIVE_DB" {
			value += "?sslmode=nonsense" // serve would wait for the server
		}

		for _, name := range []string{"serve", "list"} {
			cmd := rig.Command(t, t.TempDir(), name)
			cmd.Env = append(cmd.Env, variable+"="+value, "REDRIVE_TOKEN=x")
			if name == "serve" && variable == "REDRIVE_SERVER" {
				continue // which only other commands read
			}
			if code, stdout, stderr := rig.Finish(t, cmd); code == 0 || strings.Contains(stdout+stderr, "s3cr") {
				t.Errorf("%s with %s: exit %d\n%s%s", name, variable, code, stdout, stderr)
			}
		}
	}
}

// A URL of a database that is not Redrive's is refused in words that say what to do.
func TestCommands_RefuseTheURLOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := rig.Finish(t, rig.Command(t, t.TempDir(), "serve", "--db", "mysql://ana:s3cr-hush@db/shop"))
	want := "dashboard: --db mysql://ana:***@db/shop is a URL of mysql, and Redrive keeps its jobs in a file or on PostgreSQL: name one of them."
	if code != 2 || stdout != "" || !strings.HasPrefix(stderr, want) {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}
