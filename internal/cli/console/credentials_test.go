package console

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

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
		c := Console{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}.Hiding(args)
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
	c := Console{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &out}.Hiding(args)
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
		c := Console{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &out}.Hiding(args)
		log, err := c.Log("info", format)
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
