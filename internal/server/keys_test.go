package server

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"redrive/internal/access"
)

// brought is the answer to a caller that brings a job.
type brought struct {
	Job   map[string]any
	Jobs  []map[string]any
	Error struct{ Code, Field, First string }
}

// keyed sends a request under a key, with a token or none.
func (h *house) keyed(path, body, key, token string) answer {
	h.t.Helper()
	headers := []string{"Idempotency-Key", key}
	if token != "" {
		headers = append(headers, "Authorization", "Bearer "+token)
	}
	return h.post(path, body, headers...)
}

// Two programs that choose the same key get a job each, and neither learns of the
// other's.
func TestKeys_BelongToTheirCaller(t *testing.T) {
	h := start(t)
	tokens := h.staff()
	other := h.token("another producer", access.Producer, time.Hour)
	first := decode[brought](t, h.keyed("/api/v1/jobs", `{"type":"pay","payload":{"card":"4711"}}`, "k", tokens[access.Operator]).want(t, http.StatusCreated))
	for _, token := range []string{tokens[access.Producer], other} {
		a := h.keyed("/api/v1/jobs", `{"type":"mail"}`, "k", token).want(t, http.StatusCreated)
		if strings.Contains(a.body, "4711") || decode[brought](t, a).Job["id"] == first.Job["id"] {
			t.Errorf("somebody else got %s", a.body)
		}
	}
	if n := h.store.Snapshot().Depths.Jobs(); n != 3 {
		t.Errorf("%d jobs, want 3", n)
	}
	h.keyed("/api/v1/operations", `{"kind":"replay","filter":"state:dead_letter"}`, "k", tokens[access.Operator]).want(t, http.StatusCreated)
	h.keyed("/api/v1/operations", `{"kind":"discard","filter":"queue:orders"}`, "k", tokens[access.Admin]).want(t, http.StatusCreated)
}

// A caller that may only bring jobs gets an id and a state, however often it asks.
func TestKeys_ProducerGetsIDAndStateOnly(t *testing.T) {
	h := start(t)
	token := h.staff()[access.Producer]
	for _, status := range []int{http.StatusCreated, http.StatusOK} {
		one := decode[brought](t, h.keyed("/api/v1/jobs", `{"type":"order.ship","queue":"orders","payload":1}`, "k", token).want(t, status))
		many := decode[brought](t, h.keyed("/api/v1/jobs/batch", `{"jobs":[{"type":"a"},{"type":"b"}]}`, "k", token).want(t, status))
		envelope := decode[brought](t, h.keyed("/api/v1/queues/mail/envelopes", anEnvelope, "", token).want(t, status))
		for _, j := range append(append(many.Jobs, envelope.Jobs...), one.Job) {
			delete(j, "repeat")
			if len(j) != 2 || j["id"] == nil || j["state"] == nil {
				t.Errorf("a producer got %v", j)
			}
		}
		h.fail("orders", "http.503", "the warehouse is closed", "")
	}
}

// The same key for something else is refused, with the first job to those who may
// see it, and nothing is enqueued.
func TestKeys_UsedForSomethingElse(t *testing.T) {
	h := start(t)
	tokens := h.staff()
	const job, batch, operation = "/api/v1/jobs", "/api/v1/jobs/batch", "/api/v1/operations"
	for name, c := range map[string]struct{ path, first, second string }{
		"type":       {job, `{"type":"a","payload":1}`, `{"type":"b","payload":1}`},
		"payload":    {job, `{"type":"a","payload":1}`, `{"type":"a","payload":2}`},
		"queue":      {job, `{"type":"a"}`, `{"type":"a","queue":"orders"}`},
		"meta":       {job, `{"type":"a"}`, `{"type":"a","meta":{"tenant":"x"}}`},
		"one job":    {batch, `{"jobs":[{"type":"a"},{"type":"a"}]}`, `{"jobs":[{"type":"a"},{"type":"b"}]}`},
		"a job more": {batch, `{"jobs":[{"type":"a"}]}`, `{"jobs":[{"type":"a"},{"type":"a"}]}`},
		"a job less": {batch, `{"jobs":[{"type":"a"},{"type":"a"}]}`, `{"jobs":[{"type":"a"}]}`},
		"kind":       {operation, `{"kind":"replay","filter":"queue:orders"}`, `{"kind":"discard","filter":"queue:orders"}`},
		"filter":     {operation, `{"kind":"replay","filter":"queue:orders"}`, `{"kind":"replay","filter":"queue:mail"}`},
		"rate":       {operation, `{"kind":"replay","filter":"queue:orders"}`, `{"kind":"replay","filter":"queue:orders","rate":1}`},
	} {
		for _, role := range []access.Role{access.Producer, access.Operator} {
			if role == access.Producer && c.path == operation {
				continue
			}
			a := h.keyed(c.path, c.first, name, tokens[role]).want(t, http.StatusCreated)
			before := h.store.Snapshot()
			f := decode[brought](t, h.keyed(c.path, c.second, name, tokens[role]).want(t, http.StatusConflict)).Error
			if f.Code != "key_reused" || f.Field != "Idempotency-Key" {
				t.Errorf("%s: %+v", name, f)
			}
			if role == access.Producer && f.First != "" {
				t.Errorf("%s: a producer learned of %s", name, f.First)
			}
			if role == access.Operator && (f.First == "" || !strings.Contains(a.body, f.First)) {
				t.Errorf("%s: the first is %q, which is not in %s", name, f.First, a.body)
			}
			if after := h.store.Snapshot(); !reflect.DeepEqual(after.Depths, before.Depths) {
				t.Errorf("%s: something was enqueued", name)
			}
		}
	}
}

// Values that programs compute again with each try do not make it another job,
// and neither does a rule that moved it.
func TestKeys_RetryIsARepeat(t *testing.T) {
	h := start(t)
	for name, c := range map[string]struct{ first, second string }{
		"trace id": {`{"type":"a","trace_id":"1"}`, `{"type":"a","trace_id":"2"}`},
		"time":     {`{"type":"a","run_at":"2999-01-01T00:00:00Z"}`, `{"type":"a","run_at":"2999-01-01T00:00:01Z"}`},
		"priority": {`{"type":"a"}`, `{"type":"a","priority":3}`},
	} {
		a := decode[brought](t, h.keyed("/api/v1/jobs", c.first, name, "").want(t, http.StatusCreated))
		b := decode[brought](t, h.keyed("/api/v1/jobs", c.second, name, "").want(t, http.StatusOK))
		if a.Job["id"] != b.Job["id"] {
			t.Errorf("%s: another job", name)
		}
	}
}

// A request with two keys is refused: it is not known which one counts.
func TestKeys_SentTwice(t *testing.T) {
	h := start(t)
	a := h.raw("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n" +
		"Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 12\r\n\r\n{\"type\":\"t\"}")
	if f := decode[brought](t, a.want(t, 422)).Error; f.Field != "Idempotency-Key" {
		t.Errorf("%+v", f)
	}
}

func TestKeys_EmptyIsNotNone(t *testing.T) {
	h := start(t)
	for _, key := range []string{"", "  "} {
		a := h.post("/api/v1/jobs", `{"type":"t"}`, "Idempotency-Key", key).want(t, 422)
		if f := decode[brought](t, a).Error; f.Field != "Idempotency-Key" {
			t.Errorf("%q: %+v", key, f)
		}
	}
}

// A caller that sends an envelope with the id of another one learns nothing of
// that job, and its own envelope becomes a job.
func TestKeys_MessageIDOfAnotherEnvelope(t *testing.T) {
	h := start(t)
	first := h.send("orders", anEnvelope)
	second := h.send("orders", strings.Replace(anEnvelope, `"f":1.0`, `"f":2.0`, 1))
	if second.Repeated != 0 || second.Jobs[0].ID == first.Jobs[0].ID {
		t.Errorf("another envelope is answered with %+v", second)
	}
	if third := h.send("orders", strings.Replace(anEnvelope, `"attempts":0`, `"attempts":1`, 1)); third.Jobs[0].ID != first.Jobs[0].ID {
		t.Errorf("an envelope that came once more is answered with %+v", third)
	}
}
