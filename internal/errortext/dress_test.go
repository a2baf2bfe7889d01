package errortext_test

import (
	"regexp"
	"strings"
	"testing"

	"redrive/internal/errortext"
)

var (
	lineStart = regexp.MustCompile(`(?m)^`)
	lineEnd   = regexp.MustCompile(`(?m)[ \t]+$`)
)

// dresses are what happens to a text on its way.
var dresses = map[string]func(text string) string{
	"as it is":             func(text string) string { return text },
	"line ends of Windows": func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") },
	"no spaces at the end": func(text string) string { return lineEnd.ReplaceAllString(text, "") },
	"behind a container":   func(text string) string { return lineStart.ReplaceAllString(text, "worker-1  | ") },
	"behind the time":      func(text string) string { return lineStart.ReplaceAllString(text, "2026-03-04T05:06:07.123456789Z ") },
	"behind the system's log": func(text string) string {
		return lineStart.ReplaceAllString(text, "Mar  4 05:06:07 web-1 shop[812]: ")
	},
	"below a warning": func(text string) string { return "starting\nWARNING: rates is deprecated\n" + text },
	"above make": func(text string) string {
		return strings.TrimRight(text, "\n") + "\nmake: *** [Makefile:3: run] Error 1\n"
	},
	"above a container": func(text string) string { return strings.TrimRight(text, "\n") + "\nworker-1 exited with code 1\n" },
	"above a line of log": func(text string) string {
		return strings.TrimRight(text, "\n") + "\n2026-03-04 05:06:08 INFO app: bye\n"
	},
}

func TestProgram_ReadsTheSameHoweverATextIsDressed(t *testing.T) {
	for _, language := range []string{"python", "ruby", "elixir", "php"} {
		for _, one := range readCorpus(t, "testdata/corpus/"+language+".txt") {
			want := errortext.Program(one.text, "")
			for name, dress := range dresses {
				e := errortext.Program(dress(one.text), "")
				if e.Class != want.Class || !sameWords(e.Message, want.Message) {
					t.Errorf("%s, %s: found %q, want %q", one.place, name, e, want)
				}
			}
		}
	}
}

// sameWords reports whether two texts differ in their spaces alone.
func sameWords(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

func TestProgram_TakesTheErrorThatEndedTheProgram(t *testing.T) {
	for name, c := range map[string]struct{ output, want string }{
		"Python: an aside follows": {
			"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: dead\n" +
				"Exception ignored in: <function F.__del__ at 0x7f>\nTraceback (most recent call last):\n  File \"a.py\", line 2, in g\nOSError: late\n",
			"ValueError: dead",
		},
		"Python: an aside alone": {
			"Task exception was never retrieved\nfuture: <Task>\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: lost\n",
			"ValueError: lost",
		},
		"Python: the end is missing": {
			"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: dead\n\n" +
				"During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", line 2, in",
			"ValueError: dead",
		},
		"Ruby: an error in a log": {
			"E, [2026-03-04T05:06:07.123456 #12] ERROR -- : skipped (IOError)\na.rb:2:in `f'\na.rb:9:in `<main>': dead (RuntimeError)\n",
			"RuntimeError: dead",
		},
		"Elixir: an error in a log": {
			"05:06:07.123 [error] GenServer A terminating\n** (RuntimeError) skipped\n    lib/a.ex:1: A.f/0\nLast message: :go\n** (KeyError) key :a not found in: %{}\n    a.exs:1: (file)\n",
			"KeyError: key :a not found in: %{}",
		},
		"PHP: a warning follows": {
			"PHP Fatal error:  Uncaught Error: dead in /a.php:1\nStack trace:\n#0 {main}\n  thrown in /a.php on line 1\nPHP Warning:  late in /a.php on line 2\n",
			"Error: dead",
		},
	} {
		e := errortext.Program(c.output, "")
		if e.String() != c.want {
			t.Errorf("%s: found %q, want %q", name, e, c.want)
		}
	}
}
