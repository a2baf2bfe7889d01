package server

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"redrive/internal/audit"
)

// raw sends bytes as they are, ends its side and returns the answer.
func (h *house) raw(request string) answer {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.http.Listener.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		h.t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		h.t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{response, string(data)}
}

func rawPost(path, headers, body string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers + "\r\n\r\n" + body
}

// A proxy and this server may disagree about where a request with two lengths ends, so
// that its connection is closed. All others stay open.
func TestBody_WithTwoLengthsClosesItsConnection(t *testing.T) {
	h := start(t)
	const coded, chunk = "Transfer-Encoding: chunked", "2\r\n{}\r\n0\r\n\r\n"
	for name, test := range map[string]struct {
		headers, body string
		closed        bool
	}{
		"length":               {"Content-Length: 2", "{}", false},
		"chunks":               {coded, chunk, false},
		"both":                 {"Content-Length: 2\r\n" + coded, chunk, true},
		"both, the other way":  {coded + "\r\ncontent-length:2", chunk, true},
		"both, far apart":      {"CONTENT-LENGTH: 2\r\nX-Far: " + strings.Repeat("x", 9000) + "\r\nTRANSFER-ENCODING: chunked", chunk, true},
		"both, with no value":  {"Content-Length: \r\n" + coded, chunk, true},
		"names within a value": {"Content-Length: 2\r\nX-Note: transfer-encoding: chunked", "{}", false},
	} {
		for _, path := range []string{"/api/v1/jobs", "/queues/orders/pause", "/nowhere"} {
			request := rawPost(path, test.headers, test.body)
			if a := h.raw(request); a.Close != test.closed {
				t.Errorf("%s: %s is answered with %d, and its connection is closed: %v, want %v", name, path, a.StatusCode, a.Close, test.closed)
			}
		}
	}
}

// A client that says where its bodies end in one way, and then in the other, keeps its
// connection.
func TestBody_OfEitherLengthInTurnKeepsItsConnection(t *testing.T) {
	h := start(t)
	conn, err := net.Dial("tcp", h.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	answers := bufio.NewReader(conn)
	plain := rawPost("/api/v1/jobs", "Content-Length: 12", `{"type":"t"}`)
	chunked := rawPost("/api/v1/jobs", "Transfer-Encoding: chunked", "c\r\n{\"type\":\"t\"}\r\n0\r\n\r\n")
	for i, request := range []string{plain, chunked, plain, chunked} {
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusCreated || response.Close {
			t.Errorf("request %d is answered with %d, and its connection is closed: %v", i+1, response.StatusCode, response.Close)
		}
	}
}

func TestBody_EndsEarlyOrIsBadlyChunked(t *testing.T) {
	var log lines
	h := start(t, func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	const chunked = "Transfer-Encoding: chunked"
	for _, test := range []struct{ name, headers, body, says string }{
		{"short", "Content-Length: 50", `{"type":"t"}`, "ended early"},
		{"no chunk at the end", chunked, "5\r\n{\"typ\r\n", "ended early"},
		{"a chunk of no size", chunked, "zz\r\n{}\r\n0\r\n\r\n", "cannot be read"},
	} {
		for _, path := range []string{"/api/v1/jobs", "/api/v1/jobs/batch"} {
			a := h.raw(rawPost(path, test.headers, test.body)).want(t, http.StatusBadRequest)
			if f := decode[problemAnswer](t, a); f.Error.Code != "malformed" || !strings.Contains(f.Error.Message, test.says) {
				t.Errorf("%s: %+v, want malformed and %q", test.name, f, test.says)
			}
		}
	}
	if said := log.all(); said != "" {
		t.Errorf("logged: %s", said)
	}
}

func TestBody_EncodedIsRefused(t *testing.T) {
	h := start(t)
	for encoding, status := range map[string]int{"gzip": 415, "br, identity": 415, "identity": 201, "Identity": 201} {
		h.post("/api/v1/jobs", `{"type":"t"}`, "Content-Encoding", encoding).want(t, status)
	}
	h.form("/queues/orders/pause", "", "Content-Encoding", "gzip").want(t, 415)
}

func TestAPI_HalfACharacterIsRefused(t *testing.T) {
	h := start(t)
	for _, test := range []struct{ body, field string }{
		{`{"type":"\ud800"}`, "type"},
		{`{"type":"a\uDFFF\ud83d\ude00"}`, "type"},
		{`{"type":"\ud83d\u0041"}`, "type"},
		{`{"type":"t","queue":"\udc00"}`, "queue"},
		{`{"type":"t","policy":{"non_retryable_errors":["auth","\ud800"]}}`, "policy.non_retryable_errors"},
	} {
		a := h.post("/api/v1/jobs", test.body).want(t, 422)
		if f := decode[problemAnswer](t, a); f.Error.Field != test.field || !strings.Contains(f.Error.Message, "surrogate") {
			t.Errorf("%s: %+v, want the field %s", test.body, f, test.field)
		}
	}
	for _, body := range []string{
		`{"type":"\ud83d\ude00"}`, `{"type":"\\ud800"}`, `{"type":"t","payload":"\ud800","meta":{"\ud800":"\udc00"}}`,
	} {
		h.post("/api/v1/jobs", body).want(t, http.StatusCreated)
	}
}

func TestAPI_RunAtIsStrict(t *testing.T) {
	h := start(t)
	for _, text := range []string{
		"9999-12-31T23:59:59-23:59", "2030-01-01T00:00:00+24:00", "2030-01-01T00:00:00,5Z", "2030-01-01T00:00:00+01:60",
		"2030-01-01T1:00:00Z", "0000-01-01T00:00:00+23:59",
	} {
		a := h.post("/api/v1/jobs", fmt.Sprintf(`{"type":"t","run_at":%q}`, text)).want(t, 422)
		if f := decode[problemAnswer](t, a); f.Error.Field != "run_at" {
			t.Errorf("%s: %+v", text, f)
		}
	}
	for _, text := range []string{"9999-12-31T23:59:59Z", "2030-01-01T00:00:00.25+23:59"} {
		h.post("/api/v1/jobs", fmt.Sprintf(`{"type":"t","run_at":%q}`, text)).want(t, http.StatusCreated)
	}
}

func TestQuery_ThatCannotBeReadIsRefused(t *testing.T) {
	h := start(t)
	for _, path := range []string{"/api/v1/jobs", "/jobs", "/dead-letters", "/live", "/"} {
		for _, query := range []string{"state=active;x=1", "state=%zz", "state=%"} {
			h.get(path+"?"+query).want(t, http.StatusBadRequest)
		}
	}
	if f := decode[problemAnswer](t, h.get("/api/v1/jobs?state=%zz")); f.Error.Code != "invalid_parameter" {
		t.Errorf("%+v", f)
	}
}

func TestQueues_UnknownOnesAreNotMade(t *testing.T) {
	h := start(t)
	for _, act := range []string{"pause", "resume"} {
		h.post("/api/v1/queues/ordres/"+act, `{}`).want(t, http.StatusNotFound)
		h.form("/queues/ordres/"+act, "").want(t, http.StatusNotFound)
	}
	if names := h.store.Counters.QueueNames(); len(names) > 0 {
		t.Errorf("queues %q were made", names)
	}
	h.post("/api/v1/queues/orders/resume", `{}`).want(t, http.StatusOK) // configured, and it runs
	h.enqueue(`{"type":"t","queue":"fresh"}`)
	h.post("/api/v1/queues/fresh/pause", `{}`).want(t, http.StatusOK)
}

func TestPages_ManyQueuesAreBounded(t *testing.T) {
	h := start(t)
	var jobs strings.Builder
	for i := range 300 {
		fmt.Fprintf(&jobs, `{"type":"t","queue":"q%03d"},`, i)
	}
	h.post("/api/v1/jobs/batch", `{"jobs":[`+jobs.String()+`{"type":"t","queue":"q150"}]}`).want(t, http.StatusCreated)
	if err := h.store.Pause(t.Context(), time.Now(), "q299", audit.Actor{Name: "ana"}); err != nil {
		t.Fatal(err)
	}
	page := h.get("/queues").want(t, http.StatusOK)
	if n := strings.Count(page.body, `<th scope="row" class="key at-lead">`); n != 100 || !strings.Contains(page.body, "202 more queues") {
		t.Errorf("%d rows, want 100 and a note", n)
	}
	if !strings.Contains(page.body, ">q299<") {
		t.Error("the queue that is paused is not shown")
	}
	page = h.get("/queues?name=Q29").want(t, http.StatusOK)
	if n := strings.Count(page.body, `<th scope="row" class="key at-lead">`); n != 10 || !strings.Contains(page.body, ">q290<") {
		t.Errorf("%d queues have q29 in their name, want 10", n)
	}
	page = h.get("/").want(t, http.StatusOK)
	if n := strings.Count(page.body, `href="/jobs?queue=q`); !strings.Contains(page.body, ">q150<") || !strings.Contains(page.body, "280 more queues") {
		t.Errorf("the overview does not say that it is cut, or leaves the fullest queue out (%d links)", n)
	}
	if n := strings.Count(h.get("/api/v1/queues").body, `"name"`); n != 300 {
		t.Errorf("the API lists %d queues, want all 300", n)
	}
}
