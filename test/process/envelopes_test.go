package process_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"redrive/test/rig"
)

// TestServe_EnvelopesFromEndToEnd hands two envelopes over: one is done by the
// handler of its URN, the other cannot be read, neither then nor when a person
// replays it.
func TestServe_EnvelopesFromEndToEnd(t *testing.T) {
	type call struct{ body, trace, parent, kind string }
	calls := make(chan call, 1)
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- call{string(body), r.Header.Get("Redrive-Trace-Id"), r.Header.Get("Traceparent"), r.Header.Get("Redrive-Job-Type")}
	}))
	defer web.Close()
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", fmt.Sprintf("handlers: {'urn:babel:orders:created': {http: {url: %q}}}\n", web.URL))
	p := rig.Start(t, dir)
	const trace = "7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b"
	body := `{"job":"urn:babel:orders:created","trace_id":"` + trace + `","data":{ "n":1.0 },"meta":{"id":"m","schema_version":1},"attempts":0}
{"trace_id":"t","data":{},"attempts":0}
`
	p.Send(t, "/api/v1/queues/orders/envelopes", "application/x-ndjson", body, http.StatusCreated)
	p.Until(func(now rig.Totals) bool { return now.Succeeded == 1 })
	got := <-calls
	if got.body != `{ "n":1.0 }` || got.trace != trace || got.kind != "urn:babel:orders:created" || !strings.HasPrefix(got.parent, "00-"+strings.ReplaceAll(trace, "-", "")+"-") {
		t.Errorf("the service got %+v", got)
	}
	answer := rig.Get[struct{ Jobs []struct{ ID, Reason string } }](t, p.URL+"/api/v1/jobs?state=dead_letter")
	if len(answer.Jobs) != 1 || answer.Jobs[0].Reason != "missing_urn" {
		t.Fatalf("dead letters %+v", answer.Jobs)
	}
	at := p.URL + "/api/v1/jobs/" + answer.Jobs[0].ID
	p.Send(t, "/api/v1/jobs/"+answer.Jobs[0].ID+"/replay", "application/json", `{"run":1}`, http.StatusOK)
	p.Until(func(now rig.Totals) bool { return now.Failed == 1 })
	again := rig.Get[struct {
		Job      struct{ State, Reason string }
		Attempts []struct {
			DecidedBy string `json:"decided_by"`
		}
	}](t, at)
	if again.Job.Reason != "missing_urn" || len(again.Attempts) != 1 || again.Attempts[0].DecidedBy != "envelope:missing_urn" {
		t.Errorf("after the replay %+v", again)
	}
}
