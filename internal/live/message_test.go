package live

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"redrive/internal/filter"
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

func TestHub_CountsWhatCameBeforeTheSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		at := time.UnixMicro(1).UTC()
		came := func(id string, after time.Duration) job.Change {
			c := moved(id, job.Retryable, 1)
			c.ChangedAt = at.Add(after)
			return c
		}
		h.commit(h.hub, came(idA, 0), came(idB, time.Second))
		first := filter.Cursor{At: at, Seq: 1}.String()
		p := h.dial(t)
		p.send(`{"type":"subscribe","filter":{"state":"retryable"},"first":"` + first + `","newer":true}`)
		if m := p.nextOf("newer"); m.Count != 1 {
			t.Errorf("%d are newer than the page, want 1", m.Count)
		}
		h.commit(h.hub, came(idC, time.Minute))
		if m := p.nextOf("newer"); m.Count != 2 {
			t.Errorf("with one more %d are newer, want 2", m.Count)
		}
		list := List{filter.Filter{Status: "retryable"}, filter.Cursor{At: at, Seq: 1}}
		data, err := h.hub.Poll(t.Context(), nil, list)
		if err != nil || !strings.Contains(string(data), `"newer":{"type":"newer","count":2,"more":false}`) {
			t.Errorf("polling says %s, %v", data, err)
		}
	})
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

func TestHub_PollingSaysTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		h.commit(h.hub, moved(idA, job.Retryable, 1), moved(idB, job.Active, 1))
		data, err := h.hub.Poll(t.Context(), []string{idA, idC}, List{})
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Counters message
			Jobs     []row
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if answer.Counters.Seq != 1 || len(answer.Jobs) != 1 || answer.Jobs[0].ID != idA {
			t.Errorf("answer %+v, want the totals and A", answer)
		}
	})
}

func TestHub_PollingTellsThatRowsCannotBeRead(t *testing.T) {
	h := New(&totals{err: context.DeadlineExceeded}, Options{})
	defer h.Close()
	if data, err := h.Poll(t.Context(), []string{idA}, List{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s, %v; want the store's error", data, err)
	}
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
		if len(s.ids) > MaxIDs || s.list.Filter.Check() != nil {
			t.Errorf("accepted %+v", s)
		}
		for _, id := range s.ids {
			if canonical, err := job.ParseID(id); err != nil || canonical != id {
				t.Errorf("accepted the id %q", id)
			}
		}
	})
}
