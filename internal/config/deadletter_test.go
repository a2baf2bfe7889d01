package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"redrive/internal/retention"
	"redrive/internal/webhook"
)

func hook(fields string) string {
	return "queues:\n  a:\n    dead_letter:\n      webhook: {" + fields + "}"
}

func TestParse_DeadLettersThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "\n", "blank": " \t\n", "long": strings.Repeat("a", maxSecret+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("REDRIVE_EMPTY", "")
	t.Setenv("REDRIVE_BLANK", " \t")
	const place = "redrive.yaml:4: queues.a.dead_letter.webhook"
	tests := []struct{ name, text, want string }{
		{"no url", hook(`secret: s3cret`), place + ": needs a url"},
		{"no secret", hook(`url: "https://h/"`), place + ": needs exactly one of secret, secret_env and secret_file"},
		{"two secrets", hook(`url: "https://h/", secret: s3cret, secret_env: PATH`), place + ": needs exactly one of"},
		{"empty secret", hook(`url: "https://h/", secret: ""`), place + ".secret: the secret is empty"},
		{"blank secret", hook(`url: "https://h/", secret: "  \t "`), place + ".secret: the secret is empty or blank"},
		{"blank variable", hook(`url: "https://h/", secret_env: REDRIVE_BLANK`), place + ".secret_env: the secret is empty or blank"},
		{"blank file", hook(`url: "https://h/", secret_file: "` + dir + `/blank"`), place + ".secret_file: the secret is empty or blank"},
		{"a secret that is a number", hook(`url: "https://h/", secret: 31337`), place + ".secret: must be a string; put it in quotes"},
		{"a secret in a list", hook(`url: "https://h/", secret: [s3cret]`), place + ".secret: must be a string; put it in quotes"},
		{"no such variable", hook(`url: "https://h/", secret_env: REDRIVE_NOTHING`), place + `.secret_env: the environment variable "REDRIVE_NOTHING" is missing or empty`},
		{"empty variable", hook(`url: "https://h/", secret_env: REDRIVE_EMPTY`), place + `.secret_env: the environment variable "REDRIVE_EMPTY" is missing or empty`},
		{"no such file", hook(`url: "https://h/", secret_file: "` + dir + `/none"`), place + ".secret_file: "},
		{"empty file", hook(`url: "https://h/", secret_file: "` + dir + `/empty"`), place + ".secret_file: the secret is empty"},
		{"long file", hook(`url: "https://h/", secret_file: "` + dir + `/long"`), place + ".secret_file: "},
		{"a device", hook(`url: "https://h/", secret_file: /dev/zero`), place + `.secret_file: "/dev/zero" is not a readable file`},
		{"address", hook(`url: "ftp://user:s3cret@h/", secret: s3cret`), place + ".url: is not an address"},
		{"address of nobody", hook(`url: "https:///x", secret: s3cret`), place + ".url: is not an address"},
		{"the whole is an address", "queues:\n  a:\n    dead_letter:\n      webhook: https://user:s3cret@h/", place + ": must be a mapping (name: value)"},
		{"timeout", hook(`url: "https://h/", secret: s3cret, timeout: 0s`), place + ".timeout: must be longer than zero"},
		{"attempts", hook(`url: "https://h/", secret: s3cret, attempts: 11`), place + ".attempts: 11 is not a valid number of requests; use 1 to 10"},
		{"tries that take too long", hook(`url: "https://h/", secret: s3cret, timeout: 10s`), place + ".timeout: 3 attempts of 10s each and the pauses between them, up to 2.25s, take longer than the 24s allowed for a dead letter"},
		{"tries that are too many", hook(`url: "https://h/", secret: s3cret, attempts: 5`), place + ".attempts: 5 attempts of 7s each and the pauses between them, up to 11.25s, take longer"},
		{"a try without end", hook(`url: "https://h/", secret: s3cret, timeout: 87600h, attempts: 2`), place + ".attempts: 2 attempts of 87600h0m0s each"},
		{"switched off", "queues:\n  a:\n    dead_letter: {enabled: false, webhook: {url: 'https://h/', secret: s3cret}}", "redrive.yaml:3: queues.a.dead_letter: is not enabled"},
		{"short age", "dead_letter: {retention: {age: 59s}}", "redrive.yaml:1: dead_letter.retention.age: 59s is shorter than a minute"},
		{"count", "dead_letter: {retention: {count: 0}}", "redrive.yaml:1: dead_letter.retention.count: 0 is less than 1; leave the field out"},
		{"unknown", "dead_letter: {enabled: false}", "redrive.yaml:1: dead_letter.enabled: no such field; the fields are retention"},
		{"expired", "queues: {a: {expired: retry}}", "redrive.yaml:1: queues.a.expired: \"retry\" is unknown; use dead_letter or discard"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("redrive.yaml", []byte(test.text))
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Fatalf("error %v\nwant %s…", err, test.want)
			}
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "31337") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

func TestWebhook_TakesItsSecretFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(" s3cret \r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, ok := parse(t, hook(`url: "http://127.0.0.1:9000/", secret_file: "`+path+`"`)).Webhook("a")
	if !ok || w.Secret.Reveal() != " s3cret " || w.Sending != webhook.DefaultSending() {
		t.Errorf("webhook to %s with %q, %v, %d", w.URL, w.Secret.Reveal(), w.Timeout, w.Attempts)
	}
}

func TestSecret_IsShownByNothing(t *testing.T) {
	w, _ := parse(t, hook(`url: "http://127.0.0.1:9000/", secret: s3cret`)).Webhook("a")
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "webhook", w, "secret", w.Secret)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "webhook", w, "secret", w.Secret)
	data, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprintf("%v %+v %#v %s %q %x %d %v %v", w, w, w, w.Secret, w.Secret, w.Secret, w.Secret, &w.Secret, []Secret{w.Secret}) + log.String() + string(data)
	if strings.Contains(all, "s3cret") || strings.Contains(all, "733363726574") {
		t.Errorf("shown: %s", all)
	}
}

func TestDefault_KeepsDeadLettersForHalfAYearWhateverTheirNumber(t *testing.T) {
	c := Default()
	want := retention.Limits{
		Ages:   retention.Ages{retention.Completed: 7 * day, retention.Cancelled: 30 * day, retention.Discarded: 30 * day, retention.DeadLetters: 180 * day},
		Queues: map[string]retention.Ages{}, Types: map[string]retention.Ages{}, Trash: 7 * day, Said: map[retention.Kind]bool{},
	}
	if !reflect.DeepEqual(c.Retention(), want) || c.Expired("any") != "dead_letter" {
		t.Errorf("retention %+v, expired %s", c.Retention(), c.Expired("any"))
	}
	c = parse(t, "expired: discard\nqueues: {a: {expired: dead_letter}}")
	if c.Expired("any") != "discard" || c.Expired("a") != "dead_letter" {
		t.Errorf("expired %s and %s", c.Expired("any"), c.Expired("a"))
	}
}

func TestRetention_IsSaidForAllForAQueueAndForAType(t *testing.T) {
	r := parse(t, `
retention: {completed: P1D, cancelled: 0, discarded: 0s, max_dead_letters: 5000}
queues: {orders: {retention: {completed: 12h, dead_letters: 0}}}
types: {report.*: {retention: {completed: 90d}}}
`).Retention()
	for _, test := range []struct {
		kind       retention.Kind
		queue, typ string
		want       time.Duration
	}{
		{retention.Completed, "mail", "a", day}, {retention.Completed, "orders", "a", 12 * time.Hour}, {retention.Completed, "orders", "report.daily", 90 * day},
		{retention.Cancelled, "mail", "a", 0}, {retention.Discarded, "mail", "a", 0},
		{retention.DeadLetters, "mail", "a", 180 * day}, {retention.DeadLetters, "orders", "a", 0},
	} {
		if got := r.Age(test.kind, test.queue, test.typ); got != test.want {
			t.Errorf("%s of %s in %s are kept for %v, want %v", test.kind, test.typ, test.queue, got, test.want)
		}
	}
	if r.Count != 5000 {
		t.Errorf("%d dead letters are kept, want 5000", r.Count)
	}
}

func TestRetention_OfDeadLettersCanBeWrittenInTheirSection(t *testing.T) {
	r := parse(t, "dead_letter: {retention: {age: P7D, count: 300}}").Retention()
	if r.Ages[retention.DeadLetters] != 7*day || r.Ages[retention.Completed] != 7*day || r.Count != 300 {
		t.Errorf("retention %+v", r)
	}
}

func TestParse_RetentionThatCannotBe(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"retention: {completed: 59s}", "redrive.yaml:1: retention.completed: 59s is shorter than a minute"},
		{"retention: {completed: 7}", "redrive.yaml:1: retention.completed: must be a duration with its unit, for example 7d, not 7"},
		{"retention: {completed: -1d}", "redrive.yaml:1: retention.completed: "},
		{"retention: {done: 7d}", "redrive.yaml:1: retention.done: no such field; the fields are cancelled, completed, dead_letters, discarded, max_dead_letters"},
		{"retention: {max_dead_letters: 0}", "redrive.yaml:1: retention.max_dead_letters: 0 is less than 1; leave the field out"},
		{"queues:\n  a:\n    retention: {max_dead_letters: 9}", "redrive.yaml:3: queues.a.retention.max_dead_letters: no such field"},
		{"types:\n  a.*:\n    retention: {completed: 1s}", "redrive.yaml:3: types.a.*.retention.completed: 1s is shorter"},
		{"retention: {dead_letters: 7d}\ndead_letter: {retention: {age: 8d}}", "redrive.yaml:2: dead_letter.retention.age: is also set as retention.dead_letters"},
		{"dead_letter: {retention: {count: 8}}\nretention: {max_dead_letters: 9}", "redrive.yaml:2: retention.max_dead_letters: is also set as dead_letter.retention.count"},
	} {
		if _, err := Parse("redrive.yaml", []byte(test.text)); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s\n%v, want\n%s…", test.text, err, test.want)
		}
	}
}
