package handler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"redrive/internal/engine"
	"redrive/internal/handler"
	"redrive/internal/job"
	"redrive/internal/retry"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// serve starts a service and returns the handler that calls it.
func serve(t *testing.T, answer http.HandlerFunc) (engine.Handler, string) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return build(t, handler.Config{HTTP: &handler.HTTP{URL: server.URL + "/work"}}), server.URL
}

func TestHTTP_TellsTheServiceWhatItNeeds(t *testing.T) {
	var got *http.Request
	var body []byte
	h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
	})
	j := testJob()
	j.Type = "täst%\n"
	if err := h(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Accept":              "application/json, */*;q=0.5",
		"Content-Type":        "application/json",
		"Idempotency-Key":     testID + "/2",
		"Redrive-Job-Id":      testID,
		"Redrive-Job-Type":    "t%C3%A4st%25%0A",
		"Redrive-Job-Queue":   "mail",
		"Redrive-Job-Run":     "2",
		"Redrive-Job-Attempt": "3",
	}
	for name, value := range want {
		if got.Header.Get(name) != value {
			t.Errorf("header %s is %q, want %q", name, got.Header.Get(name), value)
		}
	}
	if string(body) != `{"to":"anna"}` || got.Method != "POST" || got.URL.Path != "/work" {
		t.Errorf("%s %s with body %s", got.Method, got.URL, body)
	}
}

func TestHTTP_TraceparentJoinsAllAttempts(t *testing.T) {
	var got string
	h, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Traceparent") })
	send := func(execution int, meta string) string {
		j := testJob()
		j.Execution, j.Meta = execution, []byte(meta)
		if err := h(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		return got
	}
	const given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if got := send(1, `{"traceparent":"`+given+`"}`); got != given {
		t.Errorf("traceparent = %q, want the job's own", got)
	}
	first, second := send(1, ``), send(2, `{"traceparent":"`+strings.Replace(given, "0af7651916cd43dd8448eb211c80319c", strings.Repeat("0", 32), 1)+`"}`)
	if len(first) != 55 || first[:36] != second[:36] || first == second {
		t.Errorf("traceparent = %q, then %q; want one trace and two spans", first, second)
	}
	for _, bad := range []string{`{"traceparent":5}`, `{"traceparent":"x\r\nEvil: 1"}`, `[]`, `{"traceparent":"ff-` + given[3:] + `"}`} {
		if got := send(1, bad); got != first {
			t.Errorf("traceparent = %q for %s, want %q", got, bad, first)
		}
	}
}

func TestHTTP_EveryOtherStatusIsAFailure(t *testing.T) {
	for status := 200; status < 600; status++ {
		if http.StatusText(status) == "" && status != 299 && status != 599 {
			continue
		}
		h, url := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		err := h(t.Context(), testJob())
		if status < 300 {
			if err != nil {
				t.Errorf("status %d: %v", status, err)
			}
			continue
		}
		var f *job.Failure
		want := strings.TrimSpace(fmt.Sprintf("POST %s/work: %d %s", url, status, http.StatusText(status)))
		if !errors.As(err, &f) || f.Type != fmt.Sprintf("http.%d", status) || !strings.HasPrefix(f.Message, want) {
			t.Errorf("status %d: %v, want %s", status, err, want)
		}
	}
}

// A service that switches to another protocol keeps the connection open until the client
// leaves it.
func TestHTTP_SwitchingProtocolsIsAFailureAtOnce(t *testing.T) {
	left := make(chan error, 1)
	h, url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute)) // so that the test ends when the client keeps it, too
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, err = io.Copy(io.Discard, conn)
		left <- err
	})
	err := h(t.Context(), testJob())
	var f *job.Failure
	if want := "POST " + url + "/work: 101 Switching Protocols"; !errors.As(err, &f) || f.Type != "http.101" || f.Message != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := <-left; err != nil {
		t.Errorf("the connection stays open: %v", err)
	}
}

func TestHTTP_HidesSecretsOfCodeThatWritesForPeople(t *testing.T) {
	for _, said := range []string{"\x1b[31mpassword\x1b[0m=hunter2", "\x1b[36mpin\x1b[0m\x1b[2m:\x1b[0m \x1b[32mhunter2\x1b[0m",
		"db.password.main=hunter2", "password.0: hunter2", "**password**: hunter2", "**password:** hunter2"} {
		h, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "cannot log in: "+said)
		})
		var f *job.Failure
		if err := h(t.Context(), testJob()); !errors.As(err, &f) || contains(f.Message+f.Trace, "hunter2") || !contains(f.Message, "cannot log in") {
			t.Errorf("%q: %v", said, err)
		}
	}
}

func TestHTTP_ReadsTheAnswersBody(t *testing.T) {
	yes, no := true, false
	tests := []struct {
		name, body string
		typ, text  string // text: "+" is appended to the status, anything else is the message
		trace      string
		code       retry.Code
		retryable  *bool
	}{
		{"nothing", ``, "http.503", "+", "", "", nil},
		{"text", "gateway\n  is\tdown", "http.503", "+: gateway is down", "", "", nil},
		{"binary", "\xff\xfe\x00", "http.503", "+", "", "", nil},
		{"everything", `{"error":{"type":"mail.bounced","message":"no such box","code":"DEAD_LETTER","retryable":true,"details":{"box":[1]}}}`,
			"mail.bounced", "no such box", "{\n  \"box\": [\n    1\n  ]\n}", retry.CodeDeadLetter, &yes},
		{"not retryable", `{"error":{"retryable":false}}`, "http.503", "+", "", "", &no},
		{"an unknown code", `{"error":{"code":"EXPLODE","message":"m"}}`, "http.503", `m (code "EXPLODE")`, "", "", nil},
		{"fields of wrong types", `{"error":{"type":5,"message":["x"],"code":{},"retryable":"no","details":7}}`, "http.503", "+", "7", "", nil},
		{"a trace", `{"error":{"message":"m","trace":"at f (a.js:1:1)\n","details":7}}`, "http.503", "m", "at f (a.js:1:1)\n7", "", nil},
		{"a stack", `{"error":{"message":"m","stack":"at f (a.js:1:1)"}}`, "http.503", "m", "at f (a.js:1:1)\n", "", nil},
		{"an error that is a text", `{"error":"it broke"}`, "http.503", "it broke", "", "", nil},
		{"a class", `{"message":"boom","exception":"App\\Denied","file":"/app/a.php","line":3,"trace":[]}`, "http.503", `App\Denied: boom`, "/app/a.php:3", "", nil},
		{"a page", `<html><head><title>502 Bad Gateway</title></head></html>`, "http.503", "502 Bad Gateway", "", "", nil},
		{"malformed", `{"error":{"type":"x"`, "http.503", `+: {"error":{"type":"x"`, "", "", nil},
		{"too deep", strings.Repeat(`[`, 20_000), "http.503", "+: [[[", "", "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(503)
				io.WriteString(w, test.body)
			})
			f := failed(t, h, testJob())
			status := "POST " + url + "/work: 503 Service Unavailable"
			text := test.text
			if rest, ok := strings.CutPrefix(text, "+"); ok {
				text = status + rest
			}
			if f.Type != test.typ || !strings.HasPrefix(f.Message, text) || !strings.HasSuffix(f.Trace, test.trace) {
				t.Errorf("failure = %s: %s\n%s\nwant %s: %s\n%s", f.Type, f.Message, f.Trace, test.typ, text, test.trace)
			}
			if f.Answer.Code != test.code || (f.Answer.Retryable == nil) != (test.retryable == nil) ||
				test.retryable != nil && *f.Answer.Retryable != *test.retryable {
				t.Errorf("answer = %+v", f.Answer)
			}
			if !contains(f.Message+f.Trace, status) {
				t.Errorf("neither message nor trace tell the address and the status")
			}
		})
	}
}

func TestHTTP_HonoursRetryAfter(t *testing.T) {
	tests := []struct {
		name, header string
		want         time.Duration // -1: none
	}{
		{"seconds", "120", 120 * time.Second},
		{"zero", "0", 0},
		{"with spaces", " 7 ", 7 * time.Second},
		{"a date in the past", "Mon, 02 Jan 2006 15:04:05 GMT", 0},
		{"more than a duration holds", "99999999999999999", math.MaxInt64 / time.Second * time.Second},
		{"more than a number holds", "99999999999999999999999", math.MaxInt64 / time.Second * time.Second},
		{"a plus sign", "+5", -1},
		{"negative", "-5", -1},
		{"fractional", "1.5", -1},
		{"words", "soon", -1},
		{"absent", "", -1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", test.header)
				w.WriteHeader(429)
			})
			got := failed(t, h, testJob()).Answer.RetryAfter
			if (got == nil) != (test.want < 0) {
				t.Fatalf("retry after %v, want %v", got, test.want)
			}
			if got != nil && *got != test.want {
				t.Errorf("retry after %v, want %v", *got, test.want)
			}
		})
	}
}

// A wait until a date ends at that date, from whichever moment of the call it was counted.
func TestHTTP_HonoursTheDateOfRetryAfter(t *testing.T) {
	date := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for name, format := range map[string]string{"a date": http.TimeFormat, "a date of RFC 850": "Monday, 02-Jan-06 15:04:05 GMT"} {
		h, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", date.Format(format))
			w.WriteHeader(429)
		})
		begin := time.Now()
		got := failed(t, h, testJob()).Answer.RetryAfter
		if got == nil || begin.Add(*got).After(date) || time.Now().Add(*got).Before(date) {
			t.Errorf("%s: retry after %v, want an hour", name, got)
		}
	}
}

func TestHTTP_LongAnswerLosesItsConnection(t *testing.T) {
	sent := make(chan int64, 1)
	h, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		var n int64
		defer func() { sent <- n }()
		for chunk := []byte(strings.Repeat("x", 64<<10)); n < 1<<30; n += int64(len(chunk)) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	f := failed(t, h, testJob())
	if n := <-sent; n > 64<<20 || len(f.Message) > 2000 {
		t.Errorf("%d bytes were sent, the message has %d", n, len(f.Message))
	}
}

func TestHTTP_FollowsNoRedirect(t *testing.T) {
	var elsewhere bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere = true }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.Replace(other.URL, "http://", "http://user:secret@", 1)+"/x?key=secret", status)
		})
		f := failed(t, h, testJob())
		if f.Type != fmt.Sprintf("http.%d", status) || elsewhere || contains(f.Message, "secret") {
			t.Errorf("status %d: %s: %s", status, f.Type, f.Message)
		}
	}
}

func TestHTTP_KeepsSecretsOfTheAddressToItself(t *testing.T) {
	var user, password, query string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ = r.BasicAuth()
		query = r.URL.RawQuery
		w.WriteHeader(500)
	}))
	address := strings.Replace(server.URL, "//", "//anna:secret1@", 1) + "/work?key=secret2#secret3"
	h := build(t, handler.Config{HTTP: &handler.HTTP{URL: address}})
	answered := failed(t, h, testJob())
	server.Close()
	refused := failed(t, h, testJob())
	if user != "anna" || password != "secret1" || query != "key=secret2" {
		t.Errorf("the service saw %q %q %q", user, password, query)
	}
	for _, f := range []*job.Failure{answered, refused} {
		if contains(f.Message, "secret") || contains(f.Message, "anna") || !contains(f.Message, "/work: ") {
			t.Errorf("message = %q", f.Message)
		}
	}
	if refused.Type != "http.connection" {
		t.Errorf("a refused connection is %s: %s", refused.Type, refused.Message)
	}
}

func TestHTTP_ConnectionThatIsCut(t *testing.T) {
	h, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	})
	if f := failed(t, h, testJob()); f.Type != "http.connection" {
		t.Errorf("failure = %v", f)
	}
}

// silence accepts connections and never answers.
func silence(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}

func TestHTTP_TimeoutOfItsOwn(t *testing.T) {
	h := build(t, handler.Config{HTTP: &handler.HTTP{URL: silence(t), Timeout: 20 * time.Millisecond}})
	if f := failed(t, h, testJob()); f.Type != "http.timeout" || !contains(f.Message, "within 20ms") {
		t.Errorf("failure = %v", f)
	}
}

func TestHTTP_EndOfTheExecutionIsNotItsOwnTimeout(t *testing.T) {
	h := build(t, handler.Config{HTTP: &handler.HTTP{URL: silence(t), Timeout: time.Hour}})
	stopping := errors.New("stopping")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(stopping) })
	if err := h(ctx, testJob()); !errors.Is(err, stopping) {
		t.Errorf("the handler returned %v, want the cause", err)
	}
}

func TestHTTP_IgnoresProxiesOfTheEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	h := build(t, handler.Config{HTTP: &handler.HTTP{URL: "http://redrive.invalid/"}})
	if f := failed(t, h, testJob()); contains(f.Message, "127.0.0.1:1") || contains(f.Message, "proxy") {
		t.Errorf("failure = %v", f)
	}
}
