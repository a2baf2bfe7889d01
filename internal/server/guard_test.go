package server

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/server/problem"
	"redrive/web/static"
)

// everyRoute returns a request line for each route of the server.
func everyRoute(h *house, id string) [][2]string {
	var all [][2]string
	for _, r := range h.http.Config.Handler.(*Server).echo.Routes() {
		all = append(all, [2]string{r.Method, fillRoute(id, r.Path)})
	}
	return append(all, [2]string{"GET", "/nothing"}, [2]string{"PUT", "/jobs"}, [2]string{"OPTIONS", "/api/v1/jobs"}, [2]string{"GET", "/jobs?state=bad"})
}

// fillRoute is a path that matches a route.
func fillRoute(id, path string) string {
	return strings.NewReplacer(":id", id, ":name", "orders", ":file", strings.TrimPrefix(static.Script().Path, "/static/")).Replace(path)
}

func TestGuard_HeadersOnEveryAnswer(t *testing.T) {
	h := start(t, func(o *Options) { o.Demo = &theDemo{broken: map[string]bool{}} })
	id := h.dead()
	routes := everyRoute(h, id)
	if len(routes) < 30 {
		t.Fatalf("only %d routes were walked", len(routes))
	}
	for _, route := range routes {
		a := h.do(route[0], route[1], "")
		isStatic, policy := strings.HasPrefix(route[1], "/static/"), contentPolicy
		if isStatic {
			policy = "default-src 'none'; frame-ancestors 'none'"
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q", route[0], route[1], name, got)
			}
		}
		cache := a.Header.Get("Cache-Control")
		if isStatic != strings.Contains(cache, "immutable") || !isStatic && cache != "no-store" {
			t.Errorf("%s %s: Cache-Control %q", route[0], route[1], cache)
		}
		if a.Header.Get("X-Request-Id") == "" || a.Header.Get("Access-Control-Allow-Origin") != "" || a.StatusCode >= 500 {
			t.Errorf("%s %s: status %d, headers %v", route[0], route[1], a.StatusCode, a.Header)
		}
	}
}

func TestGuard_HostListOnEveryRoute(t *testing.T) {
	h := start(t)
	id := h.dead()
	before := h.store.Snapshot().Seq
	for _, route := range everyRoute(h, id) {
		a := h.do(route[0], route[1], "run=1", "Host", "evil.example", "Content-Type", "application/x-www-form-urlencoded")
		if a.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s %s for evil.example: %d, want 421", route[0], route[1], a.StatusCode)
		}
	}
	if after := h.store.Snapshot().Seq; after != before {
		t.Error("a request for another host changed something")
	}
}

func TestGuard_HostNames(t *testing.T) {
	h := start(t)
	port := h.http.Listener.Addr().(*net.TCPAddr).String()
	for host, status := range map[string]int{
		port: 200, "localhost": 200, "LOCALHOST:99": 200, "127.0.0.1": 200, "[::1]:8080": 200, "redrive.example": 200, "redrive.example:443": 200,
		"evil.example": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "10.1.2.3": 421, "redrive.example.evil": 421, "[::2]": 421, "127.0.0.2": 421,
	} {
		if a := h.get("/healthz", "Host", host); a.StatusCode != status {
			t.Errorf("Host %s: %d, want %d", host, a.StatusCode, status)
		}
	}
}

func TestGuard_CrossOriginWrites(t *testing.T) {
	h := start(t)
	own := h.http.URL
	tests := []struct {
		name    string
		headers []string
		allowed bool
	}{
		{"a program", nil, true},
		{"same origin", []string{"Sec-Fetch-Site", "same-origin", "Origin", own}, true},
		{"typed by hand", []string{"Sec-Fetch-Site", "none"}, true},
		{"same site", []string{"Sec-Fetch-Site", "same-site", "Origin", "http://localhost:3000"}, false},
		{"cross site", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, false},
		{"cross site without origin", []string{"Sec-Fetch-Site", "cross-site"}, false},
		{"old browser, same origin", []string{"Origin", own}, true},
		{"old browser, other origin", []string{"Origin", "https://evil.example"}, false},
		{"a sandboxed page", []string{"Origin", "null"}, false},
		{"behind the configured proxy", []string{"Origin", "https://redrive.example"}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := &house{t: t, http: h.http}
			for _, path := range []string{"/queues/orders/pause", "/api/v1/queues/orders/pause"} {
				kind := "application/json"
				if !strings.HasPrefix(path, "/api") {
					kind = "application/x-www-form-urlencoded"
				}
				a := h.do("POST", path, map[bool]string{true: "{}", false: ""}[kind == "application/json"], append([]string{"Content-Type", kind}, test.headers...)...)
				if (a.StatusCode == http.StatusForbidden) == test.allowed {
					t.Errorf("%s: status %d, allowed %v", path, a.StatusCode, test.allowed)
				}
				h.get("/", test.headers...).want(t, http.StatusOK)
			}
		})
	}
}

func TestGuard_WebsocketOrigins(t *testing.T) {
	h := start(t)
	address := "ws" + strings.TrimPrefix(h.http.URL, "http") + "/live"
	tests := []struct {
		origin, host string
		status       int
	}{
		{"", "", 101}, {h.http.URL, "", 101}, {"https://redrive.example", "", 101},
		{"https://evil.example", "", 403}, {"null", "", 403}, {"http://localhost:1", "", 403}, {"http://evil.example", "evil.example", 421},
	}
	for _, test := range tests {
		header := http.Header{}
		if test.origin != "" {
			header.Set("Origin", test.origin)
		}
		if test.host != "" {
			header.Set("Host", test.host)
		}
		conn, answer, err := websocket.DefaultDialer.Dial(address, header)
		if err == nil {
			conn.Close()
		}
		if answer == nil || answer.StatusCode != test.status {
			t.Errorf("origin %q, host %q: %v, %v; want %d", test.origin, test.host, answer, err, test.status)
		}
	}
}

func TestGuard_WebsocketTellsTheTotals(t *testing.T) {
	h := start(t)
	h.dead()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(h.http.URL, "http")+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var m struct {
		Failed int64 `json:"jobs_failed"`
	}
	for want := int64(1); want <= 2; want++ {
		if err := conn.ReadJSON(&m); err != nil || m.Failed != want {
			for err == nil && m.Failed < want { // the totals may move twice for one job
				err = conn.ReadJSON(&m)
			}
			if err != nil || m.Failed != want {
				t.Fatalf("totals %+v, %v; want %d failed", m, err, want)
			}
		}
		h.dead()
	}
}

func TestLive_PollingSaysTheSame(t *testing.T) {
	h := start(t)
	id := h.dead()
	a := h.get("/live?ids="+id+","+unknownID).want(t, http.StatusOK)
	got := decode[struct {
		Counters struct {
			Type   string
			Failed int64 `json:"jobs_failed"`
		}
		Jobs []struct{ ID, Status string }
	}](t, a)
	if got.Counters.Type != "counters" || got.Counters.Failed != 1 || len(got.Jobs) != 1 || got.Jobs[0].ID != id || got.Jobs[0].Status != "dead_letter" {
		t.Errorf("%s, want the totals and the one job", a.body)
	}
	if kind := a.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		t.Errorf("Content-Type %s", kind)
	}
}

func TestLive_PollingRefusesAsTheAPIDoes(t *testing.T) {
	h := start(t)
	for _, ids := range []string{"7", unknownID + ",", strings.Repeat(unknownID+",", 200) + unknownID} {
		f := decode[problemAnswer](t, h.get("/live?ids="+ids).want(t, http.StatusBadRequest))
		if f.Error.Code != "invalid_parameter" || f.Error.Field != "ids" || f.Error.Message == "" {
			t.Errorf("%.40s: %+v", ids, f.Error)
		}
	}
	if f := decode[problemAnswer](t, h.post("/live", "{}").want(t, http.StatusMethodNotAllowed)); f.Error.Code != "method_not_allowed" {
		t.Errorf("POST: %+v", f.Error)
	}
}

func TestNew_NamesTheOptionThatIsMissing(t *testing.T) {
	whole := start(t).opts
	for name, leaveOut := range map[string]func(*Options){
		"View": func(o *Options) { o.View = nil }, "Config": func(o *Options) { o.Config = nil }, "Hub": func(o *Options) { o.Hub = nil },
		"Metrics": func(o *Options) { o.Metrics = nil }, "Running": func(o *Options) { o.Engine.Running = nil },
		"Knows": func(o *Options) { o.Engine.Knows = nil }, "Ready": func(o *Options) { o.Engine.Ready = nil },
	} {
		o := whole
		leaveOut(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "the option "+name+" is missing") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// lines collects what is logged.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

func TestGuard_PanicsAnswerWithARequestID(t *testing.T) {
	var log lines
	h := start(t, func(o *Options) {
		o.Engine.Running = func() map[string]int { panic("secret detail") }
		o.Log = slog.New(slog.NewJSONHandler(&log, nil))
	})
	for _, path := range []string{"/queues", "/api/v1/queues"} {
		a := h.get(path).want(t, http.StatusInternalServerError)
		if strings.Contains(a.body, "secret") || strings.Contains(a.body, "goroutine") || !strings.Contains(a.body, a.Header.Get("X-Request-Id")) {
			t.Errorf("%s answered %s", path, clip.Text(a.body, 300))
		}
		if said := log.all(); !strings.Contains(said, a.Header.Get("X-Request-Id")) || !strings.Contains(said, "secret detail") {
			t.Errorf("the log does not tell: %s", said)
		}
	}
}

func TestGuard_LogLinesStayOneLine(t *testing.T) {
	var log lines
	h := start(t, func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	h.get("/x%0A%7B%22level%22%3A%22ERROR%22%7D%1B%5B2J%E2%80%AE%E2%80%A8")
	h.http.Close() // waits for the request's end
	for line := range strings.Lines(log.all()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("not one JSON object: %q", line)
		}
	}
	if said := log.all(); strings.ContainsAny(said, "\x1b\u202e\u2028") || !strings.Contains(said, "request") {
		t.Errorf("log %q", said)
	}
}

func TestErrors_EachKindHasItsStatus(t *testing.T) {
	tests := []struct {
		err    error
		status int
		code   string
	}{
		{fault.ErrBusy, 503, "busy"}, {fault.ErrStorageFull, 507, "storage_full"}, {fault.ErrReadOnly, 503, "read_only"},
		{fault.ErrBroken, 503, "storage_failed"}, {job.ErrNotFound, 404, "not_found"}, {&job.Conflict{Problem: "x"}, 409, "conflict"},
		{context.DeadlineExceeded, 503, "too_slow"}, {errNotReady, 500, "internal"}, {echo.ErrMethodNotAllowed, 405, "method_not_allowed"},
		{&http.MaxBytesError{Limit: 1}, 413, "too_large"},
	}
	for _, test := range tests {
		f := problem.Of(test.err)
		if f.Kind.Status != test.status || f.Kind.Code != test.code || f.Kind.Title == "" || f.Text == "" {
			t.Errorf("%v: %d %s %q, want %d %s", test.err, f.Kind.Status, f.Kind.Code, f.Text, test.status, test.code)
		}
	}
}

func TestErrors_BusySaysWhenToTryAgain(t *testing.T) {
	h := start(t)
	s := h.http.Config.Handler.(*Server)
	r := httptest.NewRequest("POST", "/api/v1/jobs", nil)
	w := httptest.NewRecorder()
	s.refuse(fault.ErrBusy, s.echo.NewContext(r, w))
	if w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestProbes(t *testing.T) {
	var problem error
	h := start(t, func(o *Options) { o.Engine.Ready = func() error { return problem } })
	h.get("/healthz").want(t, http.StatusOK)
	h.get("/readyz").want(t, http.StatusOK)
	problem = errNotReady
	h.get("/healthz").want(t, http.StatusOK)
	if a := h.get("/readyz").want(t, http.StatusServiceUnavailable); !strings.Contains(a.body, "has not started") {
		t.Errorf("readyz says %q", a.body)
	}
}

// What keeps the database from being written is told by the probe and on every page.
func TestProbes_NameWhatKeepsTheDatabaseFromBeingWritten(t *testing.T) {
	h := start(t)
	other, err := sql.Open("sqlite", "file:"+h.file())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Exec("DELETE FROM revision"); err != nil { // stands for any damage behind the store's back
		t.Fatal(err)
	}
	if a := h.get("/readyz").want(t, http.StatusServiceUnavailable); !strings.Contains(a.body, h.file()) {
		t.Errorf("readyz says %q", a.body)
	}
	if a := h.get("/queues").want(t, http.StatusOK); !strings.Contains(a.body, "Nothing can be changed right now.") || !strings.Contains(a.body, h.file()) {
		t.Error("the page does not name the file in a banner")
	}
}
