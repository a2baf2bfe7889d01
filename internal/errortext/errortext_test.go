package errortext_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"redrive/internal/errortext"
)

var update = flag.Bool("update", false, "write testdata/bodies.golden and testdata/outputs.golden")

// golden compares what read finds in the files of a folder with the folder's golden file.
func golden(t *testing.T, folder string, read func(string) (errortext.Error, bool)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", folder, "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in testdata/%s: %v", folder, err)
	}
	var b strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		e, found := read(string(text))
		fmt.Fprintf(&b, "== %s\n", filepath.Base(name))
		if !found {
			b.WriteString("nothing\n\n")
			continue
		}
		fmt.Fprintf(&b, "class: %s\nmessage: %s\n", e.Class, e.Message)
		if e.Trace != "" {
			fmt.Fprintf(&b, "trace:\n%s\n", e.Trace)
		}
		b.WriteByte('\n')
	}
	file := filepath.Join("testdata", folder+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("testdata/%s.golden is not what is found; run with -update and read the diff. Found:\n%s", folder, got)
	}
}

// The bodies are as the frameworks write them.
func TestBody_ReadsWhatFrameworksWrite(t *testing.T) { golden(t, "bodies", errortext.Body) }

// The outputs are as the languages write them.
func TestOutput_ReadsWhatLanguagesWrite(t *testing.T) { golden(t, "outputs", errortext.Output) }

func TestBody_FindsNothingWhereNothingIs(t *testing.T) {
	for _, body := range []string{
		"", " ", "gateway is down", "\xff\xfe{}", "{", `{"error":`, "[]", "{}", `{"a":{"b":["c"]}}`, `{"message":5}`, `{"errors":[]}`,
		"<", "<html></html>", "<title>", strings.Repeat("[", 20_000), `{"status":500}`, "null", `"text"`,
	} {
		if e, found := errortext.Body(body); found {
			t.Errorf("%.40q holds %+v", body, e)
		}
	}
}

func TestBody_LeavesOutSettingsAndHeaders(t *testing.T) {
	for _, name := range []string{"django_debug.txt", "aspnet_development.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", "bodies", name))
		if err != nil {
			t.Fatal(err)
		}
		if e, _ := errortext.Body(string(text)); strings.Contains(e.Trace, "k3v9") || e.Trace == "" {
			t.Errorf("%s: the trace is %q, want one without the session", name, e.Trace)
		}
	}
}

// A program that logs an error, goes on and dies of another one died of the other one.
func TestOutput_TakesTheErrorThatEndedTheProgram(t *testing.T) {
	for name, output := range map[string]string{
		"python": "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'a'\nretrying\n" +
			"Traceback (most recent call last):\n  File \"a.py\", line 2, in g\nValueError: dead\n",
		"javascript": "TypeError: a\n    at f (/app/a.js:1:1)\nretrying\nValueError: dead\n    at g (/app/a.js:2:1)\n",
	} {
		if e, _ := errortext.Output(output); e.String() != "ValueError: dead" {
			t.Errorf("%s: found %q", name, e)
		}
	}
}

func seed(f *testing.F, folder string) {
	names, err := filepath.Glob(filepath.Join("testdata", folder, "*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
}

func FuzzBody(f *testing.F) {
	seed(f, "bodies")
	f.Fuzz(func(t *testing.T, body string) {
		e, found := errortext.Body(body)
		if found != (e.String() != "") {
			t.Errorf("found is %t of %+v", found, e)
		}
		if !utf8.ValidString(e.Class + e.Message + e.Trace) {
			t.Errorf("%q holds %+q", body, e)
		}
	})
}

func FuzzOutput(f *testing.F) {
	seed(f, "outputs")
	f.Fuzz(func(t *testing.T, output string) {
		e, found := errortext.Output(output)
		if found != (e.String() != "") || len(e.String()) > len(output)+len(": ; caused by : ") || e.Trace != "" {
			t.Errorf("found is %t of %+v", found, e)
		}
	})
}
