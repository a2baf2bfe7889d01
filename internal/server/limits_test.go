package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/config"
	"redrive/internal/server/limit"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
)

// limited is a house whose configuration has these limits, on a listener that
// bounds connections.
func limited(t *testing.T, text string, change ...func(*Options)) *house {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: databasetest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("redrive.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, s, append([]func(*Options){func(o *Options) { o.Config = c }}, change...)...)
}

// visitor opens a connection from one of this machine's addresses.
func visitor(t *testing.T, h *house, address string) net.Conn {
	t.Helper()
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := from.DialContext(t.Context(), "tcp", h.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends a request on an open connection and returns the answer.
func ask(t *testing.T, conn net.Conn, request string) (*http.Response, error) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
	}
	return answer, err
}

const healthz = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

// half is a job whose last bytes do not come.
const half = "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"type\":"

// eventually waits until something that happens beside the test is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so after a minute: %s", what)
		}
	}
}

// refusals is how often a limit refused, as /metrics tells a caller who may see it.
func (h *house) refusals(name, of string) string {
	h.t.Helper()
	w := httptest.NewRecorder()
	h.opts.Metrics.handler(h.opts.Log).ServeHTTP(w, httptest.NewRequestWithContext(h.t.Context(), http.MethodGet, "/metrics", http.NoBody))
	prefix := fmt.Sprintf(`redrive_refused_total{limit="%s",of="%s"} `, name, of)
	for line := range strings.Lines(w.Body.String()) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			return n
		}
	}
	return ""
}

// An address that opens ever more connections ends its own idle ones, and others
// are served as before.
func TestLimits_IdleConnectionsMakeRoomForTheirOwnAddress(t *testing.T) {
	h := limited(t, "limits: {connections: 20}")
	var idle []net.Conn
	for range 100 {
		idle = append(idle, visitor(t, h, "127.0.0.2"))
	}
	for _, address := range []string{"127.0.0.2", "127.0.0.3"} {
		if answer, err := ask(t, visitor(t, h, address), healthz); err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("from %s: %v, %v; want an answer", address, answer, err)
		}
	}
	closed := 0
	for _, conn := range idle[:90] {
		if _, err := ask(t, conn, healthz); err != nil {
			closed++
		}
	}
	if closed != 90 {
		t.Errorf("%d of the oldest 90 idle connections were closed, want all", closed)
	}
	if n := h.refusals(limitConnections, "address"); n == "" || n == "0" {
		t.Errorf("the metric counts %q refused connections", n)
	}
}

// When no connection of an address is idle, a new one is told so.
func TestLimits_BusyConnectionsAreNotClosedForNewOnes(t *testing.T) {
	h := limited(t, "limits: {connections: 20}")
	for range 10 {
		if _, err := io.WriteString(visitor(t, h, "127.0.0.2"), half); err != nil {
			t.Fatal(err)
		}
	}
	server := h.http.Config.Handler.(*Server)
	eventually(t, "ten requests are under way", func() bool { return server.limits.requests.Used() == 10 })
	answer, err := ask(t, visitor(t, h, "127.0.0.2"), healthz)
	if err != nil || answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %v, %v; want 429", answer, err)
	}
	if answer, err := ask(t, visitor(t, h, "127.0.0.3"), healthz); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("another address: %v, %v; want an answer", answer, err)
	}
}

// A trusted proxy stands for many: its connections are bounded by the whole only,
// and what is under way counts for the addresses that it names.
func TestLimits_BehindAProxyAddressesAreCounted(t *testing.T) {
	h := limited(t, `
limits: {connections: 60, requests: 20}
access: {proxy: {networks: [127.0.0.2], user_header: X-User, role: admin}}`)
	server := h.http.Config.Handler.(*Server)
	for range 10 {
		forwarded := strings.Replace(half, "\r\nContent-Length", "\r\nX-User: ana\r\nX-Forwarded-For: 192.0.2.1\r\nOrigin: http://localhost\r\nContent-Length", 1)
		if _, err := io.WriteString(visitor(t, h, "127.0.0.2"), forwarded); err != nil {
			t.Fatal(err)
		}
	}
	readyz := strings.Replace(healthz, "/healthz", "/readyz", 1) // which counts as a request
	eventually(t, "ten requests are under way", func() bool { return server.limits.requests.Used() == 10 })
	for address, want := range map[string]int{"192.0.2.1": 429, "192.0.2.2": 200} {
		request := strings.Replace(readyz, "\r\n\r\n", "\r\nX-Forwarded-For: "+address+"\r\n\r\n", 1)
		if answer, err := ask(t, visitor(t, h, "127.0.0.2"), request); err != nil || answer.StatusCode != want {
			t.Errorf("%s: %v, %v; want %d", address, answer, err, want)
		}
	}
	// A client that is no proxy counts as itself, whatever its headers say.
	forged := strings.Replace(readyz, "\r\n\r\n", "\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n", 1)
	if answer, err := ask(t, visitor(t, h, "127.0.0.3"), forged); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("a forged address: %v, %v; want 200", answer, err)
	}
	for range 40 {
		visitor(t, h, "127.0.0.2")
	}
	if answer, err := ask(t, visitor(t, h, "127.0.0.2"), healthz); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("the proxy's 51st connection of 60: %v, %v", answer, err)
	}
}

// Bodies that have arrived in part take of the memory for all bodies.
func TestLimits_BytesUnderWay(t *testing.T) {
	h := limited(t, "limits: {request_bytes: 1MiB}")
	server := h.http.Config.Handler.(*Server)
	const sent = 500 << 10
	head := fmt.Sprintf("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", sent+1)
	if _, err := io.WriteString(visitor(t, h, "127.0.0.2"), head+strings.Repeat(" ", sent)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the body has arrived but for a byte", func() bool { return server.limits.bytes.Used() == sent })
	large := `{"type":"t","payload":"` + strings.Repeat("x", 700<<10) + `"}`
	h.post("/api/v1/jobs", large).want(t, http.StatusTooManyRequests) // the half that an address may have is 512 KiB
	h.post("/api/v1/jobs", `{"type":"t"}`).want(t, http.StatusCreated)
	if n := h.refusals(limitRequestBytes, "address"); n != "1" {
		t.Errorf("the metric counts %q refused bodies, want 1", n)
	}
	eventually(t, "what ended is given back", func() bool { return server.limits.bytes.Used() == sent })
}

// A body that stops arriving ends its request, one that goes on arriving does not.
func TestLimits_StalledBodiesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share := limit.NewShare(1<<20, 50)
		answers := make(chan error, 1)
		listener := pipes{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{ReadTimeout: readTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := limit.NewBody(w, r, time.Now().Add(readTimeout), share, limit.AddressOf(r.RemoteAddr), func(limit.Refusal) error { return io.EOF })
			_, err := io.Copy(io.Discard, body)
			answers <- err
			if err := body.Done(); err != nil {
				t.Error(err)
			}
		})}
		go func() { _ = server.Serve(listener) }()
		begin := time.Now()
		conn := listener.dial()
		for _, pause := range []time.Duration{0, 9 * time.Second, 9 * time.Second} { // each is progress
			time.Sleep(pause)
			text := "x"
			if pause == 0 {
				text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"
			}
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-answers; err == nil || time.Since(begin) != 28*time.Second {
			t.Errorf("the body ended after %v with %v, want 10 s after the last byte", time.Since(begin), err)
		}
		synctest.Wait()
		if n := share.Used(); n != 0 {
			t.Errorf("%d bytes are still held", n)
		}
		conn.Close()
		server.Close()
	})
}

// A large batch over a slow connection may take longer than other requests, and still
// gets an answer.
func TestLimits_LargeBatchesMayTakeLonger(t *testing.T) {
	h := start(t)
	synctest.Test(t, func(t *testing.T) {
		listener := pipes{make(chan net.Conn), make(chan struct{})}
		server := h.http.Config.Handler.(*Server).HTTP()
		go func() { _ = server.Serve(listener) }()
		conn := listener.dial()
		const pieces, size = 5, 4 << 20
		sent := make(chan struct{})
		go func() { // for 45 s
			defer close(sent)
			const batch = `{"jobs":[{"type":"t","queue":"no queue"}]}`
			fmt.Fprintf(conn, "POST /api/v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				len(batch)+pieces*size, batch)
			for range pieces {
				time.Sleep(9 * time.Second)
				if _, err := conn.Write(bytes.Repeat([]byte(" "), size)); err != nil {
					return // the answer says why
				}
			}
		}()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(answer.Body); answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(said), "jobs[0].queue") {
			t.Errorf("%s, %s, %v; want an answer about the job", answer.Status, said, err)
		}
		conn.Close()
		server.Close()
		<-sent
	})
}

// An answer that begins late, on a busy machine, is whole: what it tells was done.
func TestLimits_ALateAnswerIsWhole(t *testing.T) {
	server := start(t).http.Config.Handler.(*Server)
	synctest.Test(t, func(t *testing.T) {
		routes := echo.New()
		routes.Use(server.bound)
		routes.POST("/", func(c echo.Context) error {
			time.Sleep(2 * writeTimeout)
			return c.String(http.StatusCreated, strings.Repeat("x", 64<<10))
		})
		listener := pipes{make(chan net.Conn), make(chan struct{})}
		late := &http.Server{WriteTimeout: writeTimeout, Handler: routes}
		go func() { _ = late.Serve(listener) }()

		conn := listener.dial()
		go func() { _, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}") }()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusCreated || len(said) != 64<<10 || err != nil {
			t.Errorf("%s, %d bytes, %v; want 64 kB", answer.Status, len(said), err)
		}

		conn.Close()
		late.Close()
	})
}

// Only a large body makes a request longer, and what it declares counts up to what a
// batch can have.
func TestExtra(t *testing.T) {
	for _, test := range []struct {
		method string
		length int64
		want   time.Duration
	}{
		{"POST", -1, 0}, {"POST", 0, 0}, {"POST", 1 << 20, 2 * time.Second},
		{"POST", 64 << 20, 128 * time.Second}, {"POST", 1 << 62, 128 * time.Second}, {"GET", 64 << 20, 0},
	} {
		if got := extra(&http.Request{Method: test.method, ContentLength: test.length}); got != test.want {
			t.Errorf("%s with %d bytes: %v, want %v", test.method, test.length, got, test.want)
		}
	}
}

// pipes are connections within the process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A file goes on as long as its reader takes it.
func TestLimits_StalledReadersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		listener := pipes{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{WriteTimeout: 30 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := limit.NewWriter(w).Write(make([]byte, 1<<20))
			ended <- err
		})}
		go func() { _ = server.Serve(listener) }()
		conn := listener.dial()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		begin, piece := time.Now(), make([]byte, 64<<10)
		for range 12 { // slowly, for longer than any other answer may take
			time.Sleep(5 * time.Second)
			if _, err := io.ReadFull(conn, piece); err != nil {
				t.Fatalf("after %v: %v", time.Since(begin), err)
			}
		}
		last := time.Now()
		if err := <-ended; err == nil || time.Since(last) > limit.Stall {
			t.Errorf("the answer ended %v after the last byte was taken, with %v", time.Since(last), err)
		}
		conn.Close()
		server.Close()
	})
}

// What is beyond the limits is told in the form that the caller reads.
func TestLimits_AnswersSayWhatToDo(t *testing.T) {
	h := limited(t, "limits: {requests: 10}")
	server := h.http.Config.Handler.(*Server)
	for i := range 10 {
		server.limits.requests.Take(limit.AddressOf(fmt.Sprintf("192.0.2.%d", i)), 1)
	}
	for accept, kind := range map[string]string{"application/json": "application/json", "text/html": "text/html"} {
		r := httptest.NewRequestWithContext(context.Background(), "GET", "http://localhost/", http.NoBody)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) ||
			!strings.Contains(strings.ToLower(w.Body.String()), "too many requests are under way") {
			t.Errorf("%s: %d %v %s", accept, w.Code, w.Header(), clip.Text(w.Body.String(), 200))
		}
	}
	h.get("/healthz").want(t, http.StatusOK)
}

// Of many connections a quarter may be idle: each costs memory.
func TestLimits_AQuarterOfTheConnectionsMayBeIdle(t *testing.T) {
	h := limited(t, "limits: {connections: 800}")
	for i := range 300 {
		visitor(t, h, fmt.Sprintf("127.0.0.%d", 2+i%2))
	}
	eventually(t, "a hundred were closed", func() bool { return h.refusals(limitConnections, "all") == "100" })
}
