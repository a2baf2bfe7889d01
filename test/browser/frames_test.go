package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"redrive/test/mill"
	"redrive/test/rig"
)

// frames are the messages that reach the browser over websockets.
type frames struct {
	mu  sync.Mutex
	all []string
}

func (f *frames) listen(event any) {
	if e, ok := event.(*network.EventWebSocketFrameReceived); ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all = append(f.all, string(e.Response.PayloadData))
	}
}

// take returns what came since it was asked last.
func (f *frames) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.all
	f.all = nil
	return all
}

// Rule 8: whatever page is open while jobs are enqueued, fail and are replayed,
// no message to it says anything of payloads, meta or errors.
func TestLive_MessagesCarryNoPayloadsAndNoErrors(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	id := m.DeadLetters(1)[0]
	operation := m.Operate(0)
	m.Starts(operation)
	m.Leaves(operation, "running")
	m.Settles(1)
	secrets := []string{"marked-payload", "marked-meta", "mill.Jammed", "the stone does not turn"}
	b := openBrowser(t)
	var came frames
	if err := chromedp.Listen(b.tab, came.listen); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	dead, kinds := 1, map[string]bool{}
	for run, path := range []string{"/", "/jobs", "/jobs?state=dead_letter", "/dead-letters", "/failures", "/jobs/" + id, "/queues", operation} {
		b.open(m.URL + path)
		response, err := http.Post(m.URL+"/api/v1/jobs", "application/json",
			strings.NewReader(`{"type":"corn.ground","queue":"sieve","payload":{"note":"marked-payload"},"meta":{"note":"marked-meta"}}`))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		dead++
		says := fmt.Sprintf(`document.querySelector('.side [data-state-count="dead_letter"]').textContent === "%d"`, dead)
		b.wait("the page tells of the failure", says)
		m.Act(id, "replay", fmt.Sprintf(`{"run":%d}`, run+2))
		m.Settles(dead)
		if strings.HasPrefix(path, "/dead-letters") {
			b.wait("its row says that it ran again", fmt.Sprintf(`document.querySelector('tr[data-job="%s"]').dataset.run === "%d"`, id, run+3))
		}
		got := came.take()
		if len(got) == 0 {
			t.Errorf("nothing was told to %s", path)
		}
		for _, frame := range got {
			var message struct{ Type string }
			if err := json.Unmarshal([]byte(frame), &message); err != nil {
				t.Errorf("%s is told %s: %v", path, frame, err)
			}
			kinds[message.Type] = true
			if i := slices.IndexFunc(secrets, func(secret string) bool { return strings.Contains(frame, secret) }); i >= 0 {
				t.Errorf("%s is told of %q: %s", path, secrets[i], frame)
			}
		}
	}
	for _, kind := range []string{"counters", "job", "newer"} {
		if !kinds[kind] {
			t.Errorf("no message of the kind %q was seen, only %v", kind, kinds)
		}
	}
	if detail := rig.Get[json.RawMessage](t, m.URL+"/api/v1/jobs?state=dead_letter&q=marked-payload"); !strings.Contains(string(detail), "mill.Jammed") {
		t.Errorf("the jobs that were looked for have not failed so: %s", detail)
	}
	b.calm()
}
