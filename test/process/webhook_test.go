package process_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"redrive/test/rig"
)

// TestServe_ForwardsDeadLetters lets a webhook refuse a dead letter: its job is
// kept, a person sends it again, and the receiver can tell that it is the same.
func TestServe_ForwardsDeadLetters(t *testing.T) {
	keys := make(chan string, 2)
	var seen atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Idempotency-Key") + " " + r.Header.Get("Redrive-Signature")[:7]
		if !seen.Swap(true) {
			w.WriteHeader(http.StatusGone)
		}
	}))
	defer web.Close()
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", fmt.Sprintf(
		"unknown_type: dead_letter\nqueues: {mail: {dead_letter: {webhook: {url: %q, secret: s3cr3t}}}}\n",
		strings.Replace(web.URL, "//", "//user:passw0rd@", 1)+"/hook?token=t0ken"))
	p := rig.Start(t, dir)
	p.Send(t, "/api/v1/jobs", "application/json", `{"type":"email.send","queue":"mail","payload":{}}`, http.StatusCreated)
	p.Until(func(now rig.Totals) bool { return now.Failed == 1 })
	jobs := rig.Get[struct{ Jobs []struct{ ID, Status string } }](t, p.URL+"/api/v1/jobs?state=dlq_failed").Jobs
	if len(jobs) != 1 {
		t.Fatalf("jobs: %+v", jobs)
	}
	p.Send(t, "/api/v1/jobs/"+jobs[0].ID+"/forward", "application/json", `{"run":1}`, http.StatusOK)
	if one, two := <-keys, <-keys; one != two || one != jobs[0].ID+"/1 sha256=" {
		t.Errorf("the receiver got %q, then %q", one, two)
	}
	again := rig.Get[struct {
		Job         struct{ Status string }
		DeadLetters []struct {
			ForwardedTo string `json:"forwarded_to"`
		} `json:"dead_letters"`
	}](t, p.URL+"/api/v1/jobs/"+jobs[0].ID)
	if again.Job.Status != "dead_letter" || len(again.DeadLetters) != 1 || again.DeadLetters[0].ForwardedTo != web.URL+"/hook" {
		t.Errorf("in the end %+v", again)
	}
}
