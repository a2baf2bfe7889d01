package cli

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

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

// runWithPassword runs commands that must fail without a word of the password.
func runWithPassword(t *testing.T, commands [][]string) {
	t.Helper()
	for _, args := range commands {
		var out bytes.Buffer
		code := Run(args, Console{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Signals: noSignals})
		if code == 0 || strings.Contains(out.String(), "s3cr") || strings.Contains(out.String(), "hush") {
			t.Errorf("%q: exit %d\n%s", args, code, &out)
		}
	}
}

// noSignals is a process that gets no signal.
func noSignals(...os.Signal) (<-chan os.Signal, func()) { return nil, func() {} }

// The environment stands for flags, so its passwords are not printed either.
func TestCommands_PrintNoCredentialsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"REDRIVE_DB", "REDRIVE_SERVER", "REDRIVE_CONFIG", "REDRIVE_LISTEN", "REDRIVE_BASE_PATH"} {
		for _, name := range []string{"serve", "list"} {
			cmd := rig.Command(t, t.TempDir(), name)
			cmd.Env = append(cmd.Env, variable+"=postgres://ana:s3cr-hush@127.0.0.1:1/db", "REDRIVE_TOKEN=x")
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

// What is only a part of another word is left alone. What a command was asked for, a list or
// an export, has only forms replaced that say of themselves that they hold a password.
func TestCredentials_HideNoMoreThanTheyMust(t *testing.T) {
	args := []string{
		"--db=amqp://guest:guest@host/", "redis://:abc@host", "error:x@y", "error:timeout", "a=b", "http://h/x",
		"auth=failed", "type=x token=orders", `{"url":"https://h/?token=payments","password":"password=completed"}`,
		"mysql://ana:12345678@h/db", "--db=postgres://ana:discarded@h/db?password=retryable", "host=h port=1 password=available",
	}
	tests := []struct{ text, stdout, stderr string }{
		{text: "a guest asks amqp://guest:guest@host/", stdout: "a guest asks amqp://guest:***@host/"},
		{text: "abc of redis://:abc@host", stdout: "abc of redis://:***@host"},
		{text: "error:x@y and error:timeout", stdout: "error:x@y and error:timeout"},
		{text: "0 failed of auth=failed", stdout: "0 failed of auth=failed"},
		{text: "the queues orders and payments, completed", stdout: "the queues orders and payments, completed"},
		{text: "type=x token=orders", stdout: "type=x token=orders"},
		{text: "12345678 were discarded", stdout: "12345678 were discarded", stderr: "*** were ***"},
		{text: "mysql://ana:12345678@h", stdout: "mysql://ana:***@h"},
		{text: "?password=retryable of retryable", stdout: "?password=*** of retryable", stderr: "?password=*** of ***"},
		{text: "password=available of available", stdout: "password=*** of available", stderr: "password=*** of ***"},
	}
	for _, test := range tests {
		var stdout, stderr bytes.Buffer
		c := Console{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}.hiding(args)
		io.WriteString(c.Stdout, test.text)
		io.WriteString(c.Stderr, test.text)
		if got := stdout.String(); got != test.stdout {
			t.Errorf("in the output %q became %q, want %q", test.text, got, test.stdout)
		}
		if got, want := stderr.String(), cmp.Or(test.stderr, test.stdout); got != want {
			t.Errorf("in messages %q became %q, want %q", test.text, got, want)
		}
	}
}

// One password can be the beginning of another one.
func TestCredentials_HideTheLongerOneWhole(t *testing.T) {
	args := []string{"redis://:secret-one@h", "postgres://ana:secret-one-and-more@h/db", "amqp://ana:more-secret-one@h"}
	var out bytes.Buffer
	c := Console{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &out}.hiding(args)
	io.WriteString(c.Stderr, "secret-one, secret-one-and-more and more-secret-one are wrong")
	if got, want := out.String(), "***, *** and *** are wrong"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A password can be a number, the name of an attribute, or have the syntax of JSON in it.
// Lines of the log stay what a reader of logs understands.
func TestCredentials_HideInTheValuesOfTheLogOnly(t *testing.T) {
	args := []string{
		"mysql://ana:12345678@h/db", "redis://:source@h", `amqp://ana:lost","x@h`, "postgres://ana:n0000000@h/db", "redis://:ab%07cdef@h",
	}
	about := []any{
		"seq", 12345678, "took", 12345678 * time.Second, "since", time.Date(2026, 1, 2, 3, 4, 5, 12345678, time.UTC), "source", "shop",
		"error", errors.New("12345678 is wrong"), "queues", []string{"orders", "12345678"}, "queue", "lost", "x", "\n0000000 n0000000",
		"url", "mysql://ana:12345678@h", "bell", "ab\acdef", "fine", errors.New("no password"), "panic", []int{12345678},
	}
	json := `"level":"INFO","msg":"The *** of ***.","seq":12345678,"took":12345678000000000,"since":"2026-01-02T03:04:05.012345678Z","source":"shop",` +
		`"error":"*** is wrong","queues":["orders","***"],"queue":"lost","x":"\n0000000 ***","url":"mysql://ana:***@h","bell":"***",` +
		`"fine":"no password","panic":"[***]"`
	text := `level=INFO msg="The *** of ***." seq=12345678 took=3429h21m18s since=2026-01-02T03:04:05.012Z source=shop ` +
		`error="*** is wrong" queues="[orders ***]" queue=lost x="\n0000000 ***" url=mysql://ana:***@h bell=*** fine="no password" panic=[***]`

	for format, want := range map[string]string{"json": json, "text": text} {
		var out bytes.Buffer
		c := Console{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &out}.hiding(args)
		log, err := newLog(c.Stderr, "info", format)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("The source of 12345678.", about...)

		_, got, _ := strings.Cut(strings.Trim(strings.TrimSpace(out.String()), "{}"), map[string]string{"json": ",", "text": " "}[format])
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", format, got, want)
		}
	}
}
