package errortext_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redrive/internal/errortext"
)

const (
	javaStack = "java.lang.IllegalStateException: job failed\n\tat shop.Job.run(Job.java:8)\n" +
		"Caused by: java.net.ConnectException: Connection refused\n\tat shop.Job.charge(Job.java:4)\n"
	pythonText = "Traceback (most recent call last):\n  File \"/app/a.py\", line 1, in f\nValueError: no rate\n"
	withCause  = "job failed; caused by java.net.ConnectException: Connection refused"
)

// What comes in parts is read as a whole, and what a part says itself is kept.
func TestFields_ReadsWhatComesInParts(t *testing.T) {
	for name, c := range map[string]struct{ in, want errortext.Error }{
		"a message of one line": {
			errortext.Error{Class: "Refused", Message: "ValueError: no rate"}, errortext.Error{Class: "Refused", Message: "ValueError: no rate"},
		},
		"a trace that names the cause": {
			errortext.Error{Class: "java.lang.IllegalStateException", Message: "job failed", Trace: javaStack},
			errortext.Error{Class: "java.lang.IllegalStateException", Message: withCause},
		},
		"a trace of another error": {
			errortext.Error{Message: "the worker ended", Trace: javaStack}, errortext.Error{Message: "the worker ended"},
		},
		"a message that is everything": {
			errortext.Error{Message: javaStack}, errortext.Error{Class: "java.lang.IllegalStateException", Message: withCause},
		},
		"a class beside a message that is everything": {
			errortext.Error{Class: "shop.Failed", Message: pythonText}, errortext.Error{Class: "shop.Failed", Message: "no rate"},
		},
		"a trace alone":                {errortext.Error{Trace: pythonText}, errortext.Error{Class: "ValueError", Message: "no rate"}},
		"a trace that no form knows":   {errortext.Error{Trace: "one\ntwo\n"}, errortext.Error{Message: "two"}},
		"a message of unlike lines":    {errortext.Error{Message: "one\ntwo"}, errortext.Error{Message: "one\ntwo"}},
		"colours, and a class in them": {errortext.Error{Class: "\x1b[31mE\x1b[0m", Message: "\x1b[1mno\x1b[0m"}, errortext.Error{Class: "E", Message: "no"}},
		"nothing":                      {errortext.Error{}, errortext.Error{}},
	} {
		got := errortext.Fields(c.in.Class, c.in.Message, c.in.Trace)
		if got.Class != c.want.Class || got.Message != c.want.Message {
			t.Errorf("%s: class %q, message %q; want %q, %q", name, got.Class, got.Message, c.want.Class, c.want.Message)
		}
		if strings.Contains(c.in.Message, "\n\t") && !strings.Contains(got.Trace, "Job.java:4") {
			t.Errorf("%s: the trace is %q, want the message", name, got.Trace)
		}

		again := errortext.Fields(got.Class, got.Message, got.Trace)
		if again.Class != got.Class || again.Message != got.Message {
			t.Errorf("%s: read again it is %q, %q", name, again.Class, again.Message)
		}
	}
}

// A text of one line is its message; what has more lines is the trace as well.
func TestText_IsTheMessageOrHoldsIt(t *testing.T) {
	for text, want := range map[string]errortext.Error{
		"no rate":                {Message: "no rate"},
		"App\\Declined: no card": {Class: `App\Declined`, Message: "no card"},
		"Net::ReadTimeout: late": {Class: "Net::ReadTimeout", Message: "late"},
		"Mail: no such box":      {Message: "Mail: no such box"},
		"App\\Declined: no card in /srv/app/jobs.php:10": {Class: `App\Declined`, Message: "no card"},
		pythonText:               {Class: "ValueError", Message: "no rate", Trace: strings.TrimSuffix(pythonText, "\n")},
		"starting\nit is late\n": {Message: "it is late", Trace: "starting\nit is late"},
	} {
		if got := errortext.Text(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// Of a text that is too long, its beginning and its end are read.
func TestOutput_ReadsTheEndsOfALongText(t *testing.T) {
	filler := strings.Repeat("still at work\n", 1<<16)
	for name, text := range map[string]string{"the beginning": pythonText + "\n" + filler, "the end": filler + pythonText} {
		e, found := errortext.Output(text)
		if !found || e.String() != "ValueError: no rate" {
			t.Errorf("%s: %+v, %t", name, e, found)
		}
	}
}

// What a program prints as it ends, a logger writes into a field: its class is the same.
func TestOutput_ReadsWhatALoggerWroteInAField(t *testing.T) {
	for _, language := range []string{"elixir", "go", "ruby", "ruby_3_4", "rust", "python", "java", "node", "dotnet"} {
		text, err := os.ReadFile(filepath.Join("testdata", "outputs", language+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := errortext.Output(string(text))
		for _, field := range []string{"error", "exception", "stack_trace"} {
			line, err := json.Marshal(map[string]string{"level": "error", "msg": "the job failed", field: string(text)})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := errortext.Output(string(line))
			if got.Class != want.Class || !strings.Contains(got.Message, want.Message) {
				t.Errorf("%s in %s is %+v, want class %s and %q", language, field, got, want.Class, want.Message)
			}
		}
	}
}
