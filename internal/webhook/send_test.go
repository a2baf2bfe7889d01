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

// All tries of a dead letter carry the same key and body, and each but the first comes after a
// pause.
func TestDeliver_TriesAgain(t *testing.T) {
	r := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n < 3 {
			w.WriteHeader(502)
		}
	})
	pauses := 0
	f := toAtRandom(t, webhook.Webhook{URL: r.URL}, func() float64 {
		if pauses++; r.got() != pauses {
			t.Errorf("pause %d comes after %d tries", pauses, r.got())
		}
		return 0
	})
	j, deadLetter := failed()
	if d := f.Deliver(t.Context(), j, deadLetter); d.Problem != "" || r.got() != 3 || pauses != 2 {
		t.Fatalf("delivery = %+v after %d tries and %d pauses", d, r.got(), pauses)
	}
	for i := range r.bodies {
		if !bytes.Equal(r.bodies[i], r.bodies[0]) || r.heads[i].Get("Idempotency-Key") != r.heads[0].Get("Idempotency-Key") {
			t.Errorf("try %d differs", i+1)
		}
	}
}

// closing is a context whose end is an hour away until a pause is asked for, and then has
// come so near that none fits. It never ends on its own.
type closing struct {
	context.Context
	near *bool
}

func (c closing) Deadline() (time.Time, bool) {
	if *c.near {
		return time.Now(), true
	}
	return time.Now().Add(time.Hour), true
}

func TestDeliver_BeginsNoPauseThatWouldOutlastItsContext(t *testing.T) {
	asks := func(value string) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(429)
		}
	}
	const answered = "it was answered 429 Too Many Requests; the next try would come after "
	tests := []struct {
		name    string
		answer  func(int, http.ResponseWriter, *http.Request)
		timeout time.Duration
		problem string
	}{
		{"of a second", asks("1"), time.Hour, answered + "1s, too late for this delivery"},
		{"of an hour", asks("3600"), time.Hour, answered + "1h0m0s, too late for this delivery"},
		{"forever", asks("99999999999999999999999"), time.Hour, "too late for this delivery"},
		{"nonsense", asks("soon"), time.Hour, answered + "250ms, too late for this delivery"},
		{"until a date that is over", asks("Mon, 02 Jan 2006 15:04:05 GMT"), time.Hour, answered + "250ms, too late for this delivery"},
		{"of its own, after silence", silent, time.Second, "got no answer within 1s; the next try would come after "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, test.answer)
			pauses, near := 0, false
			f := toAtRandom(t, webhook.Webhook{URL: r.URL, Sending: tries(test.timeout, 10)}, func() float64 {
				pauses++
				near = true
				return 0
			})
			j, deadLetter := failed()
			d := f.Deliver(closing{t.Context(), &near}, j, deadLetter)
			if !strings.Contains(d.Problem, test.problem) || pauses != 1 {
				t.Errorf("problem = %q after %d pauses were asked for, want %q", d.Problem, pauses, test.problem)
			}
		})
	}
}

// silent answers only when the other side has given up.
func silent(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func TestDeliver_TriesAgainAfterTheWaitThatIsAskedFor(t *testing.T) {
	r := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(429)
		}
	})
	j, deadLetter := failed()
	if d := to(t, webhook.Webhook{URL: r.URL}).Deliver(t.Context(), j, deadLetter); d.Problem != "" || r.got() != 2 {
		t.Errorf("problem = %q after %d tries", d.Problem, r.got())
	}
}

// A receiver that never answers keeps a delivery no longer than a try, and no longer than
// its context.
func TestDeliver_BoundsTime(t *testing.T) {
	errBudget := errors.New("the budget is used up")
	tests := []struct {
		name    string
		timeout time.Duration
		ends    int // the context ends with that try; -1: before all tries, 0: never
		problem string
	}{
		{"one try", time.Second, 0, "2 tries, the last got no answer within 1s"},
		{"all tries", time.Hour, 1, "it got no answer: the budget is used up"},
		{"nothing", time.Hour, -1, "nothing was sent: the budget is used up"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			if test.ends < 0 {
				end(errBudget)
			}
			r := receive(t, func(n int, w http.ResponseWriter, request *http.Request) {
				if n == test.ends {
					end(errBudget)
				}
				silent(n, w, request)
			})
			j, deadLetter := failed()
			d := to(t, webhook.Webhook{URL: r.URL, Sending: tries(test.timeout, 2)}).Deliver(ctx, j, deadLetter)
			if !strings.Contains(d.Problem, test.problem) {
				t.Errorf("problem = %q, want %q", d.Problem, test.problem)
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
	j, deadLetter := failed()
	d := to(t, webhook.Webhook{URL: url, Sending: tries(7*time.Second, 1)}).Deliver(t.Context(), j, deadLetter)
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
	ctx, cancel := context.WithCancelCause(t.Context())
	var stop sync.WaitGroup
	f := toAtRandom(t, webhook.Webhook{URL: r.URL}, func() float64 { // the pause begins
		stop.Go(func() { cancel(errors.New("the engine is stopping")) })
		return 0
	})
	j, deadLetter := failed()
	problem := f.Deliver(ctx, j, deadLetter).Problem
	stop.Wait()
	if want := "it was answered 503 Service Unavailable; it was not tried again: the engine is stopping"; !strings.HasSuffix(problem, want) {
		t.Errorf("problem = %q", problem)
	}
}

// A receiver that has accepted a dead letter cannot keep us by never ending its
// answer: it would be given up after the hour of a try.
func TestDeliver_BelievesTheStatusOfASlowDrip(t *testing.T) {
	r := receive(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		for pause := time.Tick(50 * time.Millisecond); r.Context().Err() == nil; {
			fmt.Fprint(w, ".")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-pause:
			}
		}
	})
	j, deadLetter := failed()
	d := to(t, webhook.Webhook{URL: r.URL, Sending: tries(time.Hour, 3)}).Deliver(t.Context(), j, deadLetter)
	if d.Problem != "" || r.got() != 1 {
		t.Errorf("delivery = %+v after %d tries", d, r.got())
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
	j, deadLetter := failed()
	if d := to(t, webhook.Webhook{URL: r.URL}).Deliver(t.Context(), j, deadLetter); d.Problem != "" {
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
		j, deadLetter := failed()
		d := to(t, webhook.Webhook{URL: url, Sending: tries(7*time.Second, 2)}).Deliver(t.Context(), j, deadLetter)
		if !strings.HasPrefix(d.Problem, "POST "+url+": 2 tries, the last failed: ") || !strings.Contains(d.Problem, want) {
			t.Errorf("problem = %q, want …%q", d.Problem, want)
		}
		d = to(t, webhook.Webhook{URL: url, Sending: tries(7*time.Second, 1)}).Deliver(t.Context(), j, deadLetter)
		if !strings.HasPrefix(d.Problem, "POST "+url+": ") || strings.Contains(d.Problem, "failed") || !strings.Contains(d.Problem, want) {
			t.Errorf("of one try: problem = %q, want …%q", d.Problem, want)
		}
	}
}
