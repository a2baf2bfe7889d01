package server

import (
	"net/http"
	"strings"
	"testing"
)

func TestQueue_ShowsOneQueueOnly(t *testing.T) {
	h := start(t)
	h.dead()
	h.enqueue(`{"type":"other.thing","queue":"elsewhere"}`)
	text := h.get("/queues/orders").want(t, http.StatusOK).dom(t).text()
	for _, want := range []string{"warehouse is closed", "Attempts of the queue orders", "1 attempt in the last hour, 100 % failed", "Open causes", "0 succeeded, 0 requeued, 1 failed permanently"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(text, "other.thing") {
		t.Error("the page shows jobs of another queue")
	}
	if text := h.get("/queues/elsewhere").want(t, http.StatusOK).dom(t).text(); strings.Contains(text, "warehouse is closed") || !strings.Contains(text, "no worker") && !strings.Contains(text, "running") {
		t.Error("another queue shows its failures, or not how it stands")
	}
	h.get("/queues/plain").want(t, http.StatusOK) // only configured
	h.get("/queues/nobodys").want(t, http.StatusNotFound)
	h.get("/queues/%3Cb%3E").want(t, http.StatusBadRequest)
	a := h.form("/queues/orders/pause", "back=%2Fqueues%2Forders").want(t, http.StatusSeeOther)
	if to := a.Header.Get("Location"); to != "/queues/orders" {
		t.Errorf("a pause leads to %s", to)
	}
	if text := h.get("/queues/orders").dom(t).text(); !strings.Contains(text, "by local user (") {
		t.Error("the page does not say who paused the queue")
	}
}

func TestJobs_DrawsWhatTheFilterNames(t *testing.T) {
	h := start(t)
	h.dead()
	for path, want := range map[string]string{
		"/jobs?queue=orders":                 "Attempts of the queue orders",
		"/jobs?type=order.*":                 "Attempts of order.*",
		"/jobs?queue=orders&type=order.ship": "Attempts of order.ship in the queue orders",
	} {
		if text := h.get(path).want(t, http.StatusOK).dom(t).text(); !strings.Contains(text, want) || !strings.Contains(text, "1 failed permanently") {
			t.Errorf("%s does not draw %q", path, want)
		}
	}
	if text := h.get("/jobs").dom(t).text(); strings.Contains(text, "Attempts of") {
		t.Error("the list of all jobs has a chart")
	}
}
