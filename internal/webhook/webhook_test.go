package webhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/webhook"
)

const secret = "s3cr3t-of-the-queue"

// TestMain names a proxy that refuses every request: package net/http reads the
// environment once.
func TestMain(m *testing.M) {
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	if err := os.Setenv("HTTP_PROXY", "http://127.0.0.1:1"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// receiver is a webhook that remembers what it got and answers by a function.
type receiver struct {
	*testing.T
	*httptest.Server
	answer func(n int, w http.ResponseWriter, r *http.Request)

	mu     sync.Mutex
	bodies [][]byte
	heads  []http.Header
}

func receive(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	r := &receiver{T: t, answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := verify(request, secret)
	if err != nil {
		r.Errorf("the request cannot be verified: %v", err)
	}
	r.mu.Lock()
	r.bodies, r.heads = append(r.bodies, body), append(r.heads, request.Header)
	n := len(r.bodies)
	r.mu.Unlock()
	r.answer(n, w, request)
}

// got is how many requests came.
func (r *receiver) got() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.bodies)
}

// status answers always the same.
func status(code int) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func tries(timeout time.Duration, n int) webhook.Sending {
	return webhook.Sending{Timeout: timeout, Attempts: n}
}

// to builds a forwarder for the queue mail. Its pauses are the shortest.
func to(t *testing.T, w webhook.Webhook) *webhook.Forwarder {
	t.Helper()
	return toAtRandom(t, w, func() float64 { return 0 })
}

// toAtRandom builds a forwarder that asks random before each pause.
func toAtRandom(t *testing.T, w webhook.Webhook, random func() float64) *webhook.Forwarder {
	t.Helper()
	w.Secret = secret
	if w.Sending == (webhook.Sending{}) {
		w.Sending = webhook.DefaultSending()
	}
	f, err := webhook.New(webhook.Options{
		Hooks:  map[string]webhook.Webhook{"mail": w},
		Keeps:  func(queue string) bool { return queue == "kept" },
		Random: random,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func failed() (job.Job, job.DeadLetter) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	j := job.Job{
		Token: job.Token{ID: "01928d3e-0000-7000-8000-000000000001", Run: 2, Execution: 3}, Queue: "mail", Type: "email.send",
		Attempts: 2, Priority: 5, Payload: []byte(`{"big": 12345678901234567890, "e":{} , "h":"<b>"}`),
		Meta: json.RawMessage(`{"a":  1.0}`), EnqueuedAt: at, TraceID: "t-1",
	}
	return j, job.DeadLetter{
		JobID: j.ID, Run: 2, Reason: retry.AttemptsExhausted, Error: `no "luck" <3`, Exception: "smtp.421",
		FailedAt: at.Add(time.Minute), Queue: "mail", Attempts: 3, Cause: job.TimedOut,
	}
}

func TestDeliver_SendsTheDocumentedBody(t *testing.T) {
	r := receive(t, status(204))
	j, deadLetter := failed()
	begin := time.Now()
	d := to(t, webhook.Webhook{URL: r.URL + "/hook"}).Deliver(t.Context(), j, deadLetter)
	if d.Problem != "" || d.ForwardedTo != r.URL+"/hook" || d.ForwardedAt.Before(begin) || d.ForwardedAt.After(time.Now()) {
		t.Errorf("delivery = %+v", d)
	}
	want := `{"job":{"id":"01928d3e-0000-7000-8000-000000000001","type":"email.send","queue":"mail","run":2,"attempts":3,` +
		`"priority":5,"enqueued_at":"2026-01-02T03:04:05.000000Z","trace_id":"t-1",` +
		`"meta":{"a":  1.0},"payload":{"big": 12345678901234567890, "e":{} , "h":"<b>"}},` +
		`"dead_letter":{"reason":"attempts_exhausted","cause":"timed_out","error":"no \"luck\" <3","exception":"smtp.421",` +
		`"failed_at":"2026-01-02T03:05:05.000000Z","original_queue":"mail","attempts":3}}`
	if got := string(r.bodies[0]); got != want {
		t.Errorf("body\n%s\nwant\n%s", got, want)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "redrive", "Idempotency-Key": j.ID + "/2",
	} {
		if got := r.heads[0].Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestDeliver_SendsAnyPayload(t *testing.T) {
	for payload, want := range map[string]string{
		"not json":    `"payload_base64":"bm90IGpzb24="`,
		"":            `"payload_base64":""`,
		"\"\xff\"":    `"payload_base64":"Iv8i"`,
		" [1, 2.0]\n": `"payload": [1, 2.0]` + "\n}",
		`{"a":1}{}`:   `"payload_base64":"eyJhIjoxfXt9"`,
	} {
		t.Run(fmt.Sprintf("%q", payload), func(t *testing.T) {
			r := receive(t, status(200))
			j, deadLetter := failed()
			j.Payload, j.Meta = []byte(payload), nil
			if d := to(t, webhook.Webhook{URL: r.URL}).Deliver(t.Context(), j, deadLetter); d.Problem != "" {
				t.Error(d.Problem)
			}
			if body := string(r.bodies[0]); !strings.Contains(body, want) || !json.Valid(r.bodies[0]) || strings.Contains(body, "meta") {
				t.Errorf("body %s", body)
			}
		})
	}
}

// A job that came as an envelope goes out as one; one that cannot be marked
// goes out like any other job.
func TestDeliver_SendsEnvelopesAsEnvelopes(t *testing.T) {
	for envelope, want := range map[string]string{
		`{"job":"urn:a:b", "trace_id":"t","data":{"n":1.0},"meta":{"id":"x","schema_version":1},"attempts":0}`: `{"job":"urn:a:b", "trace_id":"t","data":{"n":1.0},"meta":{"id":"x","schema_version":1},"attempts":3,"dead_letter":{"reason":"failed"`,
		`no envelope`: `{"job":{"id":"01928d3e`,
	} {
		r := receive(t, status(200))
		j, deadLetter := failed()
		j.Envelope = []byte(envelope)
		to(t, webhook.Webhook{URL: r.URL}).Deliver(t.Context(), j, deadLetter)
		if body := string(r.bodies[0]); !strings.HasPrefix(body, want) {
			t.Errorf("body %s, want %s…", body, want)
		}
	}
}

func TestDeliver_KeepsWhatIsForwardedNowhere(t *testing.T) {
	f := to(t, webhook.Webhook{URL: "http://127.0.0.1:1"})
	j, deadLetter := failed()
	if j.Queue = "kept"; f.Deliver(t.Context(), j, deadLetter) != (job.Delivery{}) {
		t.Error("the letter of a queue without a webhook was not kept")
	}
	if j.Queue = "off"; f.Deliver(t.Context(), j, deadLetter).Problem != "the queue off has no dead-letter queue" {
		t.Error("the letter of a queue without a dead-letter queue was kept")
	}
	for queue, want := range map[string]bool{"mail": false, "kept": true, "off": true} {
		if _, ok := f.Kept(queue); ok != want {
			t.Errorf("the queue %s keeps its letters: %v, want %v", queue, ok, want)
		}
	}
}

func TestDeliver_JudgesAnswers(t *testing.T) {
	tests := []struct {
		code    int
		tries   int
		problem string
	}{
		{200, 1, ""},
		{202, 1, ""},
		{301, 1, "it was answered 301 Moved Permanently, a redirect, which is not followed"},
		{307, 1, "it was answered 307 Temporary Redirect, a redirect"},
		{400, 1, "it was answered 400 Bad Request"},
		{410, 1, "it was answered 410 Gone"},
		{429, 2, "2 tries, the last was answered 429 Too Many Requests"},
		{500, 2, "2 tries, the last was answered 500 Internal Server Error"},
		{503, 2, "2 tries, the last was answered 503"},
		{999, 2, "2 tries, the last was answered 999"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.code), func(t *testing.T) {
			t.Parallel()
			elsewhere := receive(t, status(200))
			r := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", elsewhere.URL)
				w.WriteHeader(test.code)
			})
			j, deadLetter := failed()
			d := to(t, webhook.Webhook{URL: r.URL, Sending: tries(7*time.Second, 2)}).Deliver(t.Context(), j, deadLetter)
			if test.problem != "" && !strings.HasPrefix(d.Problem, "POST "+r.URL+": "+test.problem) || (d.Problem == "") != (test.problem == "") {
				t.Errorf("problem = %q, want …%q", d.Problem, test.problem)
			}
			if r.got() != test.tries || elsewhere.got() != 0 {
				t.Errorf("%d tries, %d requests elsewhere", r.got(), elsewhere.got())
			}
		})
	}
}

// Neither the secret nor what an address holds beside its host and path is
// written anywhere.
func TestDeliver_TellsNoSecrets(t *testing.T) {
	r := receive(t, status(200))
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	var log bytes.Buffer
	for _, host := range []string{r.Listener.Addr().String(), strings.TrimPrefix(closed.URL, "http://")} {
		f, err := webhook.New(webhook.Options{
			Hooks: map[string]webhook.Webhook{"mail": {
				URL: "http://user:passw0rd@" + host + "/hook?token=t0ken", Secret: secret, Sending: tries(7*time.Second, 1),
			}},
			Keeps: func(string) bool { return true }, Random: func() float64 { return 0 },
			Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		j, deadLetter := failed()
		d := f.Deliver(t.Context(), j, deadLetter)
		f.Close()
		said := fmt.Sprintf("%+v %s", d, log.String())
		for _, hidden := range []string{secret, "passw0rd", "user", "t0ken"} {
			if strings.Contains(said, hidden) {
				t.Errorf("%q is told: %s", hidden, said)
			}
		}
	}
	if user, password, _ := (&http.Request{Header: r.heads[0]}).BasicAuth(); user != "user" || password != "passw0rd" {
		t.Errorf("the receiver got %q, %q", user, password)
	}
	if !strings.Contains(log.String(), "connection refused") {
		t.Errorf("log: %s", log.String())
	}
}

func TestNew_NamesTheField(t *testing.T) {
	for field, w := range map[string]webhook.Webhook{
		"url":      {URL: "ftp://user:passw0rd@host/", Secret: secret},
		"secret":   {URL: "https://host/"},
		"timeout":  {URL: "https://host/", Secret: secret, Sending: tries(0, 3)},
		"attempts": {URL: "https://host/", Secret: secret, Sending: tries(7*time.Second, 0)},
	} {
		_, err := webhook.New(webhook.Options{Hooks: map[string]webhook.Webhook{"mail": w}})
		var wrong *invalid.Error
		if !errors.As(err, &wrong) || wrong.Field != "queues.mail.dead_letter.webhook."+field || strings.Contains(err.Error(), "passw0rd") {
			t.Errorf("New = %v, want an error of the field %s", err, field)
		}
	}
}
