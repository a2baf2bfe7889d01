package live

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"

	"redrive/internal/job"
)

func TestHub_ClosesOnBadMessages(t *testing.T) {
	tests := []struct {
		name, text string
		code       int
	}{
		{"no JSON", `{`, websocket.ClosePolicyViolation},
		{"wrong type", `{"type":"subscribe","ids":7}`, websocket.ClosePolicyViolation},
		{"id is no UUID", `{"type":"subscribe","ids":["7"]}`, websocket.ClosePolicyViolation},
		{"too many ids", `{"type":"subscribe","ids":["` + strings.Repeat(idA+`","`, 200) + idB + `"]}`, websocket.ClosePolicyViolation},
		{"unknown state", `{"type":"subscribe","filter":{"state":"dead"}}`, websocket.ClosePolicyViolation},
		{"malformed queue", `{"type":"subscribe","filter":{"queue":"a b"}}`, websocket.ClosePolicyViolation},
		{"oversized", `{"type":"` + strings.Repeat("x", readLimit) + `"}`, websocket.CloseMessageTooBig},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, Options{}).dial(t)
				p.send(test.text)
				if code := p.closeCode(); code != test.code {
					t.Errorf("closed with %d, want %d", code, test.code)
				}
			})
		})
	}
}

func TestHub_IgnoresUnknownMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		p := h.dial(t)
		p.send(`{"type":"hello"}`)
		p.next()
		h.commit(h.hub, moved(idA, job.Retryable, 1))
		p.next()
	})
}

func (h *house) get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: h.connect, DisableKeepAlives: true}}
	answer, err := client.Get("http://localhost" + url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestHub_PollingTwinSaysTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		h.commit(h.hub, moved(idA, job.Retryable, 1), moved(idB, job.Active, 1))
		status, body := h.get(t, "/live?ids="+idA+","+idC)
		var answer struct {
			Counters message
			Jobs     []row
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s: %v", status, body, err)
		}
		if answer.Counters.Seq != 1 || len(answer.Jobs) != 1 || answer.Jobs[0].ID != idA {
			t.Errorf("answer %+v, want the totals and A", answer)
		}
	})
}

func TestHub_PollingRefusesBadIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		for _, url := range []string{"/live?ids=7", "/live?ids=" + strings.Repeat(idA+",", 201)} {
			if status, body := h.get(t, url); status != http.StatusBadRequest || !strings.Contains(body, `"field":"ids"`) {
				t.Errorf("%.40s: %d %s, want 400 with the field", url, status, body)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"subscribe","ids":["` + idA + `"],"filter":{"state":"active","queue":"a","type":"b.*"},"newer":true}`))
	f.Add([]byte(`{"type":"hello"}`))
	f.Add([]byte(`[[[`))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decode(data)
		if err != nil {
			return
		}
		if len(s.ids) > maxIDs || s.filter.Check() != nil {
			t.Errorf("accepted %+v", s)
		}
		for _, id := range s.ids {
			if canonical, err := job.ParseID(id); err != nil || canonical != id {
				t.Errorf("accepted the id %q", id)
			}
		}
	})
}
