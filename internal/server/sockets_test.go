package server

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"redrive/internal/live"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
)

// sockets opens websockets until one is refused, and returns how many there are.
func sockets(t *testing.T, h *house, from string, header http.Header) (open int) {
	t.Helper()
	dialer := websocket.Dialer{NetDialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext}
	for {
		conn, answer, err := dialer.Dial("ws"+strings.TrimPrefix(h.http.URL, "http")+"/live", header)
		switch {
		case err == nil:
			t.Cleanup(func() { conn.Close() })
			open++
		case answer == nil || answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "":
			t.Fatalf("one more is answered with %+v, %v", answer, err)
		default:
			return open
		}
		if open > 300 {
			t.Fatalf("%d websockets were accepted from one address", open)
		}
	}
}

// One address has 100 websockets, this machine's as any other; its requests are
// answered as before, and other addresses are not concerned.
func TestLive_AnAddressHasSoManyWebsockets(t *testing.T) {
	h := start(t)
	if n := sockets(t, h, "127.0.0.1", nil); n != 100 {
		t.Errorf("%d websockets from one address, want 100", n)
	}
	h.get("/live").want(t, http.StatusOK)
	if n := sockets(t, h, "127.0.0.2", http.Header{"X-Forwarded-For": {"127.0.0.3"}}); n != 100 {
		t.Errorf("%d websockets from another address, want 100", n)
	}
}

// Behind the trusted proxy it is the browser's address that counts.
func TestLive_BehindAProxyBrowsersAreCounted(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Database: databasetest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	h := startOn(t, s, withProxy, func(o *Options) {
		o.Hub = live.New(s, live.Options{MaxPerIP: 3})
		t.Cleanup(o.Hub.Close)
	})
	for _, browser := range []string{"192.0.2.1", "192.0.2.2"} {
		header := http.Header{"Origin": {h.http.URL}, "X-Forwarded-For": {browser}, "X-Forwarded-User": {"ana"}, "X-Forwarded-Groups": {"all"}}
		if n := sockets(t, h, "127.0.0.1", header); n != 3 {
			t.Errorf("%d websockets of %s, want 3", n, browser)
		}
	}
}
