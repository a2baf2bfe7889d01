package handler_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redrive/internal/engine"
	"redrive/internal/handler"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/redact"
)

// TestMain is also the program that exec handlers run: see helper.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && helper(os.Args[1], os.Args[2:]) {
		return
	}
	goleak.VerifyTestMain(m)
}

func build(t *testing.T, c handler.Config) engine.Handler {
	t.Helper()
	set, err := handler.New(map[string]handler.Config{"t": c}, redact.Default().TextFrom)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	h, _ := set.Lookup("t")
	return h
}

const testID = "0198c0de-0000-7000-8000-0123456789ab"

func testJob() job.Job {
	return job.Job{
		Token: job.Token{ID: testID, Run: 2, Execution: 5},
		Type:  "email.send", Queue: "mail", Attempts: 2, Payload: []byte(`{"to":"anna"}`),
	}
}

// failed runs a handler that must fail, and returns the failure.
func failed(t *testing.T, h engine.Handler, j job.Job) *job.Failure {
	t.Helper()
	err := h(t.Context(), j)
	var f *job.Failure
	if !errors.As(err, &f) {
		t.Fatalf("the handler returned %v, want a *job.Failure", err)
	}
	return f
}

func TestNew_NamesTheField(t *testing.T) {
	web := func(url string) handler.Config { return handler.Config{HTTP: &handler.HTTP{URL: url}} }
	command := func(argv ...string) handler.Config { return handler.Config{Exec: &handler.Exec{Command: argv}} }
	good := web("http://127.0.0.1/")
	tests := []struct {
		pattern, field string
		config         handler.Config
	}{
		{"a", "handlers.a", handler.Config{}},
		{"a", "handlers.a", handler.Config{HTTP: good.HTTP, Exec: &handler.Exec{}}},
		{"a", "handlers.a.http.url", web("")},
		{"a", "handlers.a.http.url", web("127.0.0.1:9000/x")},
		{"a", "handlers.a.http.url", web("ftp://host/x")},
		{"a", "handlers.a.http.url", web("http:///x")},
		{"a", "handlers.a.http.timeout", handler.Config{HTTP: &handler.HTTP{URL: "http://h/", Timeout: -1}}},
		{"a", "handlers.a.exec.command", command()},
		{"a", "handlers.a.exec.command", command("ls")},
		{"a", "handlers.a.exec.command", command("./ls")},
		{"a", "handlers.a.exec.command", command("/bin/ls", "a\x00b")},
		{"a", "handlers.a.exec.timeout", handler.Config{Exec: &handler.Exec{Command: []string{"/bin/ls"}, Timeout: -time.Second}}},
		{"", "handlers.", good},
		{"*", "handlers.*", good},
		{".*", "handlers..*", good},
		{"a*", "handlers.a*", good},
		{"a.*.b", "handlers.a.*.b", good},
	}
	for _, test := range tests {
		var bad *invalid.Error
		_, err := handler.New(map[string]handler.Config{test.pattern: test.config}, redact.Default().TextFrom)
		if !errors.As(err, &bad) || bad.Field != test.field {
			t.Errorf("New(%q: %+v) = %v, want an error of field %s", test.pattern, test.config, err, test.field)
		}
	}
}

// Of several handlers that cannot be used, the same one is named each time.
func TestNew_NamesTheFirstHandler(t *testing.T) {
	configs := map[string]handler.Config{"c": {}, "a": {}, "d": {}, "b": {}}
	for range 50 {
		var bad *invalid.Error
		if _, err := handler.New(configs, redact.Default().TextFrom); !errors.As(err, &bad) || bad.Field != "handlers.a" {
			t.Fatalf("New = %v, want an error of field handlers.a", err)
		}
	}
}

func TestSetLookup_ExactThenLongestPrefix(t *testing.T) {
	configs := map[string]handler.Config{}
	for _, pattern := range []string{"report", "report.*", "report.daily.*", "report.daily.pdf", "email.send"} {
		configs[pattern] = handler.Config{HTTP: &handler.HTTP{URL: "http://127.0.0.1:1/" + pattern}}
	}
	set, err := handler.New(configs, redact.Default().TextFrom)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]string{
		"report": "report", "report.weekly": "report.*", "report.daily": "report.*", "report.daily.csv": "report.daily.*",
		"report.daily.pdf": "report.daily.pdf", "report.daily.pdf.x": "report.daily.*", "email.send": "email.send",
		"report.": "", "email": "", "email.send.x": "", "reports.weekly": "", "": "", ".": "",
	}
	for typ, want := range tests {
		h, ok := set.Lookup(typ)
		if ok != (want != "") {
			t.Errorf("Lookup(%q) found %v", typ, ok)
			continue
		}
		if !ok {
			continue
		}
		var f *job.Failure // a refused connection tells whose handler it is
		err := h(t.Context(), job.Job{Type: typ})
		if !errors.As(err, &f) || !contains(f.Message, fmt.Sprintf("/%s:", want)) {
			t.Errorf("Lookup(%q) is not the handler of %q: %v", typ, want, err)
		}
		if err := h(ended, job.Job{}); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	}
}
