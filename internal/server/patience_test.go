package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/bulk"
	"redrive/internal/clip"
	"redrive/internal/operation"
	"redrive/internal/store"
	"redrive/internal/store/search"
	"redrive/internal/store/sqlite"
	"redrive/web/static"
)

// late is a context whose time is over.
func late(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	t.Cleanup(cancel)
	return ctx
}

// serve hands the server a request with a context of its own.
func (h *house) serve(ctx context.Context, method, path, body string) *httptest.ResponseRecorder {
	h.t.Helper()
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.http.Config.Handler.ServeHTTP(w, r)
	return w
}

func TestErrors_SlowSaysWhetherSomethingMayHaveChanged(t *testing.T) {
	h := start(t)
	id := h.dead()
	for _, test := range []struct {
		method, path, body string
		mayChange          bool
	}{
		{"GET", "/api/v1/jobs/" + id, "", false},
		{"GET", "/jobs/" + id, "", false},
		{"POST", "/api/v1/jobs/" + id + "/replay", `{"run":1}`, true},
	} {
		w := h.serve(late(t), test.method, test.path, test.body)
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "change may still take effect") != test.mayChange {
			t.Errorf("%s %s: %d %s", test.method, test.path, w.Code, clip.Text(w.Body.String(), 2000))
		}
	}
}

func TestAPI_SlowListIsIncomplete(t *testing.T) {
	h := start(t)
	h.enqueue(`{"type":"t"}`)
	type page struct {
		Jobs       []map[string]any
		Incomplete bool
	}
	w := h.serve(late(t), "GET", "/api/v1/jobs", "")
	if p := decode[page](t, answer{body: w.Body.String()}); w.Code != http.StatusOK || !p.Incomplete || p.Jobs == nil {
		t.Errorf("%d %s, want what was found, marked incomplete", w.Code, w.Body)
	}
	if p := decode[page](t, h.get("/api/v1/jobs")); p.Incomplete || len(p.Jobs) != 1 {
		t.Errorf("%+v, want a complete list", p)
	}
}

// cut is a connection that breaks off in the middle of an answer.
type cut struct {
	*httptest.ResponseRecorder
	after int // bytes
}

func (w *cut) Write(p []byte) (int, error) {
	if w.after -= len(p); w.after < 0 {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}
	}
	return w.ResponseRecorder.Write(p)
}

// The log tells of failures of the server, not of visitors who leave while their answer
// is on its way.
func TestErrors_AClientThatLeavesInMidAnswerIsNoFailure(t *testing.T) {
	var log lines
	h := start(t, func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	id := h.dead()
	for _, path := range []string{
		"/", "/jobs", "/jobs/" + id, "/jobs/" + id + "/payload", "/api/v1/jobs", "/api/v1/jobs/" + id, "/metrics",
		"/live?ids=" + id, "/healthz", "/nowhere", "/api/v1/nowhere", static.Script().Path,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, http.NoBody)
		h.http.Config.Handler.ServeHTTP(&cut{httptest.NewRecorder(), 1}, r)
	}
	if said := log.all(); said != "" {
		t.Errorf("logged: %s", said)
	}
}

func TestErrors_AClientThatLeavesIsNoFailure(t *testing.T) {
	var log lines
	h := start(t, func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	id := h.dead()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	for _, path := range []string{"/", "/jobs", "/jobs/" + id, "/api/v1/jobs", "/live?ids=" + id} {
		if w := h.serve(ctx, "GET", path, ""); w.Body.Len() > 0 {
			t.Errorf("%s: %s for nobody", path, clip.Text(w.Body.String(), 200))
		}
	}
	if said := log.all(); said != "" {
		t.Errorf("logged: %s", said)
	}
}

// Rules may work long on many jobs; a request ends with its time, not with its last job.
func TestAPI_ABatchEndsWithItsTime(t *testing.T) {
	h := start(t)
	for path, body := range map[string]string{
		"/api/v1/jobs/batch":              `{"jobs":[{"type":"t"},{"type":"t","queue":"no queue"}]}`,
		"/api/v1/queues/orders/envelopes": anEnvelope,
	} {
		w := h.serve(late(t), "POST", path, body)
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "only 0 of the jobs in time") || !strings.Contains(w.Body.String(), "nothing was enqueued; send fewer in a request\"") {
			t.Errorf("%s: %d %s", path, w.Code, clip.Text(w.Body.String(), 500))
		}
	}
	if names := h.store.Counters.QueueNames(); len(names) != 0 {
		t.Errorf("enqueued to %q", names)
	}
}

func TestAPI_EveryListThatRanOutOfTimeIsIncomplete(t *testing.T) {
	h := start(t)
	h.dead()
	for _, path := range []string{"/api/v1/jobs", "/api/v1/dead-letters", "/api/v1/trash", "/api/v1/audit", "/api/v1/failures"} {
		w := h.serve(late(t), http.MethodGet, path, "")
		if p := decode[struct{ Incomplete bool }](t, answer{body: w.Body.String()}); w.Code != http.StatusOK || !p.Incomplete {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// While the index of texts is being rebuilt, nothing takes the jobs that can be
// found for all that match, and every answer says so.
func TestSearch_SaysThatTheIndexIsRebuilt(t *testing.T) {
	refilled, err := store.Open(t.Context(), store.Options{Database: sqlite.File{Path: filepath.Join(t.TempDir(), "redrive.db")}, Redact: search.Redaction{Fingerprint: "other"}})
	if err != nil {
		t.Fatal(err)
	}
	var runner *bulk.Runner
	h := startOn(t, refilled, func(o *Options) { o.Engine.Notify = func() { runner.Notify() } })
	runner = bulk.Start(refilled.Operations, nil)
	t.Cleanup(runner.Close)
	h.failed(1, "orders", []byte("{}"))
	const q = "?q=error:type"
	for path, words := range map[string]string{
		"/api/v1/jobs" + q: `"incomplete":true`, "/api/v1/jobs/count" + q: `{"incomplete":true}`, "/api/v1/dead-letters" + q: `"not_searchable_yet":`,
		"/export.ndjson" + q: `{"incomplete":"the search index is being rebuilt`,
		"/jobs" + q:          "The search index is being rebuilt", "/dead-letters" + q: "The search index is being rebuilt", "/trash" + q: "The search index is being rebuilt",
	} {
		if got := h.get(path).want(t, http.StatusOK).body; !strings.Contains(got, words) || strings.Contains(got, "newest failure") || strings.Contains(got, "2 s") {
			t.Errorf("%s: %s", path, clip.Text(got, 3000))
		}
	}
	h.form("/operations", "kind=replay&q=error:type").want(t, http.StatusSeeOther)
	if got := h.get("/operations/1").want(t, http.StatusOK).body; !strings.Contains(got, "Waiting for the search index") {
		t.Errorf("the operation waits for %s", clip.Text(got, 3000))
	}
	if _, err := refilled.Search.Update(t.Context()); err != nil {
		t.Error(err)
	}
	if o := h.reaches(1, operation.Preview); o.Total != 1 {
		t.Errorf("the scope has %d jobs", o.Total)
	}
	h.failed(1, "orders", []byte("{}"))
	if got := h.get("/operations/1").want(t, http.StatusOK).body; !strings.Contains(got, "1 newest failure is not searchable yet.") {
		t.Errorf("the preview says %s", clip.Text(got, 3000))
	}
	if got := h.get("/jobs"+q).want(t, http.StatusOK).body; strings.Contains(got, "filled anew") {
		t.Error("the index is filled, and the list does not say so")
	}
}
