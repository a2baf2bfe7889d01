package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/engine"
	"redrive/internal/envelope"
	"redrive/internal/handler"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// run executes the jobs of a queue as the engine does, with no other handler
// than the one for envelopes.
func (h *house) run(queue string, handlers func(string) (engine.Handler, bool)) {
	h.t.Helper()
	var all []job.Settlement
	for _, j := range h.claim(queue) {
		e := job.Ending{Outcome: job.Succeeded, FinishedAt: time.Now()}
		work, ok := handler.Envelopes(handlers)(j.Type)
		if !ok {
			h.t.Fatalf("no handler for %s", j.Type)
		}
		var f *job.Failure
		if errors.As(work(h.t.Context(), j), &f) {
			e.Outcome, e.Error, e.Answer = job.Failed, f.ErrorInfo, f.Answer
		}
		all = append(all, j.Settle(e, func() float64 { return 0.5 }))
	}
	if _, _, err := h.store.Exchange(h.t.Context(), all, job.Claim{}); err != nil {
		h.t.Fatal(err)
	}
}

func TestEnvelopes_ReplayOfPoisonReadsItAgain(t *testing.T) {
	h := start(t)
	const poison = `{"trace_id":"t","data":{},"meta":{"schema_version":1},"attempts":"3"}`
	id := h.send("shop", poison).Jobs[0].ID
	h.replay(id, 1)
	h.run("shop", func(string) (engine.Handler, bool) { return nil, false })
	d := h.stored(id)
	if d.Job.Status() != job.StatusDeadLetter || d.Job.Reason != retry.MissingURN || len(d.DeadLetters) != 2 || d.Attempts[0].DecidedBy != "envelope:missing_urn" {
		t.Errorf("job %s for %s, attempts %+v", d.Job.Status(), d.Job.Reason, d.Attempts)
	}
	if h.download(id, "?original=1") != poison || !strings.HasPrefix(h.download(id, ""), strings.TrimSuffix(poison, "}")) {
		t.Error("its bytes have changed")
	}
}

// An envelope that this version can read may be stored in a database that an
// earlier version wrote: there it is poison.
func TestEnvelopes_ReplayOfWhatCanBeReadByNow(t *testing.T) {
	h := start(t)
	done, err := h.store.Enqueue(t.Context(), time.Now(), []job.Job{{
		Queue: "shop", Type: envelope.Unread, Payload: []byte(anEnvelope), Envelope: []byte(anEnvelope), Policy: retry.Default(),
		State: job.Discarded, Reason: retry.UnsupportedVersion, Error: job.ErrorInfo{Type: "envelope.unsupported_schema_version"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	id := done[0].Job.ID
	h.replay(id, 1)
	var got []job.Job
	h.run("shop", func(typ string) (engine.Handler, bool) {
		return func(_ context.Context, j job.Job) error { got = append(got, j); return nil }, typ == "urn:babel:orders:created"
	})
	if !slices.ContainsFunc(got, func(j job.Job) bool { return string(j.Payload) == `{ "n":12345678901234567890, "f":1.0, "e":{} }` }) {
		t.Errorf("its handler got %+v", got)
	}
	if j := h.stored(id).Job; j.State != job.Completed {
		t.Errorf("the job is %s", j.State)
	}
}
