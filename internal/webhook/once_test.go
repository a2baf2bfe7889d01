package webhook_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"redrive/internal/webhook"
)

// A try is one request: a receiver that takes a dead letter and dies before it answers must
// not be given the dead letter again by each of the connections that are open to it.
func TestDeliver_ATryIsOneRequestAlthoughTheReceiverDies(t *testing.T) {
	const connections = 8
	var warm sync.WaitGroup
	warm.Add(connections)
	r := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n <= connections {
			warm.Done()
			warm.Wait()
			return
		}
		panic(http.ErrAbortHandler) // closes the connection
	})
	f := to(t, webhook.Webhook{URL: r.URL, Sending: tries(7*time.Second, 2)})
	j, deadLetter := failed()
	var deliveries sync.WaitGroup
	for range connections {
		deliveries.Go(func() {
			if d := f.Deliver(t.Context(), j, deadLetter); d.Problem != "" {
				t.Error(d.Problem)
			}
		})
	}
	deliveries.Wait()

	d := f.Deliver(t.Context(), j, deadLetter)
	want := "POST " + r.URL + ": 2 tries, the last failed: the connection was closed before an answer came"
	if n := r.got() - connections; n != 2 || d.Problem != want {
		t.Errorf("2 tries sent the letter %d times: %q, want %q", n, d.Problem, want)
	}
}
