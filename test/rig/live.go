package rig

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// Totals is what the live connection says.
type Totals struct {
	Failed    int `json:"jobs_failed"`
	Succeeded int `json:"jobs_succeeded"`
	States    map[string]int
}

// Until follows the live totals until they are as wanted.
func (p *Process) Until(wanted func(Totals) bool) Totals {
	p.T.Helper()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(p.URL, "http")+"/live", nil)
	if err != nil {
		p.T.Fatal(err)
	}
	defer conn.Close()
	for {
		var now Totals
		if err := conn.ReadJSON(&now); err != nil {
			p.T.Fatalf("the totals ended: %v", err)
		}
		if wanted(now) {
			return now
		}
	}
}

// OpenLive opens the websocket of a page.
func OpenLive(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	page, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(url, "http")+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { page.Close() })
	return page
}

// UntilRedrawn waits until the server tells an open page that it has to be drawn again.
func UntilRedrawn(t *testing.T, page *websocket.Conn) {
	t.Helper()
	if err := page.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	for {
		var message struct{ Type string }
		if err := page.ReadJSON(&message); err != nil {
			t.Fatalf("the page was not told that it has changed: %v", err)
		}
		if message.Type == "page" {
			return
		}
	}
}
