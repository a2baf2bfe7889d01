package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"redrive/internal/cli/console"
)

// What a command prints about an argument, a file or an answer has no character that a terminal
// obeys.
func TestRun_PrintsNoControlCharacters(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error": {"code": "x", "message": "said \u001b[2J\u0007\u202eand more"}}`)
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "redrive.yaml")
	if err := os.WriteFile(file, []byte("handlers: {\"a\\e[2Jb\": {}}\n\"c\\e[2Jd\": 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	for name, args := range map[string][]string{
		"a server's message":   {"list", "--server", s.URL},
		"a refused job":        {"enqueue", "email.send", "{}", "--server", s.URL},
		"a name of a command":  {"\x1b[2Jx"},
		"a flag":               {"list", "--\x1b[2Jx"},
		"an argument too many": {"health", "\x1b[2Jx"},
		"a file":               {"check", "\x1b[2Jx"},
		"what a file says":     {"check", file},
	} {
		var out bytes.Buffer
		code := Execute(args, console.Console{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Signals: noSignals})
		text := strings.ReplaceAll(out.String(), "\n", "")
		if code == 0 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.Contains(text, "[2J") {
			t.Errorf("%s: exit %d, %q", name, code, out.String())
		}
	}
}

func TestSeed_DrawsOnTerminalsOnly(t *testing.T) {
	var stdout, stderr bytes.Buffer
	args := []string{"seed", "--db", filepath.Join(t.TempDir(), "a.db"), "--jobs", "10", "--dead", "1"}
	code := Execute(args, console.Console{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Signals: noSignals})
	if code != 0 || stderr.Len() > 0 {
		t.Errorf("exit %d, %q", code, stderr.String())
	}
}

// What begins with a dash is taken for a flag. The advice is given where that was the error.
func TestMisused_AdvisesOnWhatWasWrong(t *testing.T) {
	const dash, help, negative = "goes after --, for example: dashboard enqueue TYPE -- ", "run dashboard --help", "must not be negative"
	for line, want := range map[string]string{
		"enqueue t -5":                         dash + "-5",
		"enqueue t -5.25":                      dash + "-5.25",
		"enqueue -5":                           dash + "-5",
		"enqueue t --json -5":                  dash + "-5",
		"enqueue t --delay=5s -5":              dash + "-5",
		"enqueue t --delay 5s -5":              dash + "-5",
		"enqueue t --bogus -5":                 help,
		"enqueue t --priority x -5":            help,
		"enqueue t --ndjson --batch-size x -5": help,
		"enqueue t --priority -5":              help,
		"enqueue t --queue -5 -6":              help,
		"enqueue t -- -5 --bogus":              help,
		"list -5":                              help,
		"-5":                                   help,
		"enqueue t --delay -5s":                "--delay: \"-5s\" " + negative,
		"enqueue t --ttr -PT5S":                "--ttr: \"-PT5S\" " + negative,
		"enqueue t --bogus --delay -5s":        help,
	} {
		var out bytes.Buffer
		code := Execute(strings.Fields(line), console.Console{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Signals: noSignals})
		if code != 2 || !strings.Contains(out.String(), want) || want == help && strings.Contains(out.String(), dash) {
			t.Errorf("%s: exit %d, %s, want %s", line, code, &out, want)
		}
	}
}
