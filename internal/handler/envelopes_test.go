package handler_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"redrive/internal/engine"
	"redrive/internal/envelope"
	"redrive/internal/handler"
	"redrive/internal/job"
	"redrive/internal/retry"
)

const readable = `{"job":"urn:babel:orders:created","trace_id":"t-1","data":{"n":1.0},"meta":{"id":"m","schema_version":1},"attempts":0}`

// reread gives an envelope to the handler that reads it again. What reaches the
// handler of the URN is kept in reached.
func reread(t *testing.T, payload string, reached *job.Job) error {
	t.Helper()
	lookup := handler.Envelopes(func(typ string) (engine.Handler, bool) {
		return func(_ context.Context, j job.Job) error { *reached = j; return nil }, typ == "urn:babel:orders:created"
	})
	h, ok := lookup(envelope.Unread)
	if !ok {
		t.Fatal("envelopes are not read again")
	}
	return h(t.Context(), job.Job{Token: job.Token{ID: testID, Run: 2}, Type: envelope.Unread, Payload: []byte(payload)})
}

func TestEnvelopes_ReadableOneReachesItsHandler(t *testing.T) {
	var got job.Job
	if err := reread(t, readable, &got); err != nil {
		t.Fatal(err)
	}
	if got.Type != "urn:babel:orders:created" || string(got.Payload) != `{"n":1.0}` || got.TraceID != "t-1" ||
		string(got.Meta) != `{"id":"m","schema_version":1}` || got.ID != testID || got.Run != 2 {
		t.Errorf("the handler got %+v", got)
	}
}

func TestEnvelopes_PoisonStaysPoison(t *testing.T) {
	var got job.Job
	err := reread(t, strings.Replace(readable, `"attempts":0`, `"attempts":"3"`, 1), &got)
	var f *job.Failure
	if !errors.As(err, &f) || f.Answer.Poison != retry.InvalidAttempts || f.Type != "envelope.invalid_attempts" || f.Message == "" || got.ID != "" {
		t.Fatalf("failure %+v", f)
	}
	d := retry.Default().Decide(retry.Failure{Attempt: 1, Type: f.Type, Answer: f.Answer}, func() float64 { return 0.5 })
	if d.Action != retry.DeadLetter || d.By != "envelope:invalid_attempts" || d.Reason != retry.InvalidAttempts {
		t.Errorf("decision %+v", d)
	}
}

func TestEnvelopes_WithoutAHandlerAPersonShallLook(t *testing.T) {
	var f *job.Failure
	err := reread(t, strings.Replace(readable, "created", "lost", 1), new(job.Job))
	if !errors.As(err, &f) || f.Answer.Code != retry.CodeDeadLetter || !contains(f.Message, "urn:babel:orders:lost") {
		t.Errorf("failure %+v", f)
	}
}

func TestEnvelopes_OtherTypesPass(t *testing.T) {
	lookup := handler.Envelopes(func(typ string) (engine.Handler, bool) { return nil, typ == "known" })
	_, known := lookup("known")
	if _, unknown := lookup("unknown"); !known || unknown {
		t.Errorf("known %v, unknown %v", known, unknown)
	}
}

func TestHTTP_TraceIDOfTheProducer(t *testing.T) {
	var got http.Header
	h, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	own := func(j job.Job) string {
		if err := h(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		return got.Get("Traceparent")[3:35]
	}
	plain := own(testJob())
	if _, ok := got["Redrive-Trace-Id"]; ok {
		t.Error("a trace id that was not given")
	}
	const trace = "7b3f9c2ae41d4f889b2a1c0d5e6f7a8b"
	tests := []struct{ id, trace, header string }{
		{"7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b", trace, "7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b"},
		{strings.ToUpper(trace), trace, strings.ToUpper(trace)},
		{"7b3f9c2ae41d-4f88-9b2a-1c0d5e6f7a8b", plain, "7b3f9c2ae41d-4f88-9b2a-1c0d5e6f7a8b"},
		{strings.Repeat("0", 32), plain, strings.Repeat("0", 32)},
		{"my trace\r\nEvil: 1", plain, "my%20trace%0D%0AEvil:%201"},
	}
	for _, test := range tests {
		j := testJob()
		j.TraceID = test.id
		if trace := own(j); trace != test.trace || got.Get("Redrive-Trace-Id") != test.header || got.Get("Evil") != "" {
			t.Errorf("%q: trace %s, header %q, want %s, %q", test.id, trace, got.Get("Redrive-Trace-Id"), test.trace, test.header)
		}
	}
}
