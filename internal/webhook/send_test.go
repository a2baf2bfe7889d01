package webhook_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/internal/webhook"
)

// All tries of a letter carry the same key and body; pauses grow.
func TestDeliver_TriesAgain(t *testing.T) {
	r := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n < 3 {
			w.WriteHeader(502)
		}
	})
	j, letter := failed()
	if d := to(t, webhook.Webhook{URL: r.URL}).Deliver(t.Context(), j, letter); d.Problem != "" || r.got() != 3 {
		t.Fatalf("delivery = %+v after %d tries", d, r.got())
	}
	for i := range r.bodies {
		if !bytes.Equal(r.bodies[i], r.bodies[0]) || r.heads[i].Get("Idempotency-Key") != r.heads[0].Get("Idempotency-Key") {
			t.Errorf("try %d differs", i+1)
		}
	}
	if first, second := r.at[1].Sub(r.at[0]), r.at[2].Sub(r.at[1]); first < 250*time.Millisecond || second < 500*time.Millisecond {
		t.Errorf("pauses of %v and %v", first, second)
	}
}

func TestDeliver_HonoursRetryAfter(t *testing.T) {
	asks := func(value string) func(int, http.ResponseWriter, *http.Request) {
		return func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				w.Header().Set("Retry-After", value)
				w.WriteHeader(429)
			}
		}
	}
	tests := []struct {
		name, value string
		least       time.Duration
		problem     string
	}{
		{"a second", "1", time.Second, ""},
		{"nonsense", "soon", 250 * time.Millisecond, ""},
		{"a date that is over", "Mon, 02 Jan 2006 15:04:05 GMT", 250 * time.Millisecond, ""},
		{"an hour", "3600", 0, "the next try would come after 1h0m0s, too late for this delivery"},
		{"for ever", "99999999999999999999999", 0, "too late for this delivery"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, asks(test.value))
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			j, letter := failed()
			d := to(t, webhook.Webhook{URL: r.URL}).Deliver(ctx, j, letter)
			switch {
			case test.problem != "":
				if !strings.Contains(d.Problem, test.problem) || r.got() != 1 {
					t.Errorf("problem = %q after %d tries", d.Problem, r.got())
				}
			case d.Problem != "" || r.got() != 2:
				t.Errorf("problem = %q after %d tries", d.Problem, r.got())
			case r.at[1].Sub(r.at[0]) < test.least:
				t.Errorf("tried again after %v", r.at[1].Sub(r.at[0]))
			}
		})
	}
}

func TestDeliver_BoundsTime(t *testing.T) {
	hang := func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	errBudget := errors.New("the budget is used up")
	tests := []struct {
		name            string
		timeout, budget time.Duration
		tries           int
		problem         string
	}{
		{"one try", time.Second, time.Minute, 2, "2 tries, the last got no answer within 1s"},
		{"all tries", time.Minute, time.Second, 1, "it got no answer: the budget is used up"},
		{"the pause", 2 * time.Second, 2240 * time.Millisecond, 1, "it got no answer within 2s; the next try would come after 250ms, too late"},
		{"nothing", time.Minute, -time.Second, 0, "nothing was sent; it was not tried again: the budget is used up"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, hang)
			ctx, cancel := context.WithTimeoutCause(t.Context(), test.budget, errBudget)
			defer cancel()
			j, letter := failed()
			begin := time.Now()
			d := to(t, webhook.Webhook{URL: r.URL, Sending: tries(test.timeout, 2)}).Deliver(ctx, j, letter)
			if !strings.Contains(d.Problem, test.problem) || time.Since(begin) > 50*time.Second {
				t.Errorf("problem = %q after %v", d.Problem, time.Since(begin))
			}
			if r.got() != test.tries {
				t.Errorf("%d tries", r.got())
			}
		})
	}
}

// The receiver is the one that the configuration names, whatever the
// environment says. No proxy is ever used for a loopback address, so it is
// called by another one that leads to this machine.
func TestDeliver_ObeysNoProxy(t *testing.T) {
	r := receive(t, status(200))
	url := strings.Replace(r.URL, "127.0.0.1", "0.0.0.0", 1)
	j, letter := failed()
	d := to(t, webhook.Webhook{URL: url, Sending: tries(7*time.Second, 1)}).Deliver(t.Context(), j, letter)
	if d.Problem != "" || r.got() != 1 {
		t.Errorf("delivery = %+v after %d requests", d, r.got())
	}
}

// A stop ends a pause, too.
func TestDeliver_EndsAPauseWithItsContext(t *testing.T) {
	r := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(503)
	})
	const want = "it was answered 503 Service Unavailable; it was not tried again: the engine is stopping"
	problem := ""
	for wait := 100 * time.Millisecond; wait < time.Minute && !strings.HasSuffix(problem, want); wait *= 2 { // for the answer
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(wait, func() { cancel(errors.New("the engine is stopping")) })
		j, letter := failed()
		problem = to(t, webhook.Webhook{URL: r.URL}).Deliver(ctx, j, letter).Problem
	}
	if !strings.HasSuffix(problem, want) {
		t.Errorf("problem = %q", problem)
	}
}

// A receiver that has accepted a letter cannot keep us by never ending its
// answer.
func TestDeliver_BelievesTheStatusOfASlowDrip(t *testing.T) {
	r := receive(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(w, ".")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	j, letter := failed()
	begin := time.Now()
	d := to(t, webhook.Webhook{URL: r.URL, Sending: tries(time.Minute, 3)}).Deliver(t.Context(), j, letter)
	if d.Problem != "" || time.Since(begin) > 50*time.Second {
		t.Errorf("delivery = %+v after %v", d, time.Since(begin))
	}
}

func TestDeliver_ReadsLittleOfALongAnswer(t *testing.T) {
	r := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		chunk := bytes.Repeat([]byte("x"), 32<<10)
		for range 32 << 10 { // 1 GiB
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	j, letter := failed()
	if d := to(t, webhook.Webhook{URL: r.URL}).Deliver(t.Context(), j, letter); d.Problem != "" {
		t.Error(d.Problem)
	}
}

func TestDeliver_SaysWhatTheNetworkSaid(t *testing.T) {
	garbage, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := garbage.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
				t.Error(err)
			}
			fmt.Fprint(c, "\x00\x01 this is no HTTP\r\n\r\n")
			c.Close()
		}
	})
	defer serving.Wait()
	defer garbage.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for url, want := range map[string]string{
		"http://" + garbage.Addr().String(): "malformed HTTP",
		closed.URL:                          "connection refused",
	} {
		j, letter := failed()
		d := to(t, webhook.Webhook{URL: url, Sending: tries(7*time.Second, 2)}).Deliver(t.Context(), j, letter)
		if !strings.HasPrefix(d.Problem, "POST "+url+": 2 tries, the last failed: ") || !strings.Contains(d.Problem, want) {
			t.Errorf("problem = %q, want …%q", d.Problem, want)
		}
		d = to(t, webhook.Webhook{URL: url, Sending: tries(7*time.Second, 1)}).Deliver(t.Context(), j, letter)
		if !strings.HasPrefix(d.Problem, "POST "+url+": ") || strings.Contains(d.Problem, "failed") || !strings.Contains(d.Problem, want) {
			t.Errorf("of one try: problem = %q, want …%q", d.Problem, want)
		}
	}
}
