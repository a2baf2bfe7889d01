package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/source"
)

// mirror takes records of a source over, and returns the first of its jobs.
func (h *house) mirror(name string, records ...source.Record) job.Job {
	h.t.Helper()
	if _, err := h.store.Mirror.Update(h.t.Context(), time.Now(), name, records); err != nil {
		h.t.Fatal(err)
	}
	list, err := h.store.Jobs(h.t.Context(), filter.Filter{Source: name}, filter.Cursor{}, 1)
	if err != nil || len(list.Jobs) == 0 {
		h.t.Fatalf("%d jobs, %v", len(list.Jobs), err)
	}
	return list.Jobs[0]
}

// member is a member of an answer, by its path; nil when it is left out.
func member(t *testing.T, a answer, path ...string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(a.body), &value); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

func TestSource_WhatItDoesNotSayIsLeftOutOfTheAPI(t *testing.T) {
	h := start(t)
	silent := h.mirror("shop", source.Record{Key: "1", Queue: "orders", Type: "charge", Payload: []byte(`{}`)})
	a := h.get("/api/v1/jobs/"+silent.ID).want(t, http.StatusOK)
	for _, name := range []string{"attempts", "max_attempts", "priority", "policy", "origins", "ttr", "enqueued_at", "run_at", "finished_at"} {
		if got := member(t, a, "job", name); got != nil {
			t.Errorf("the job has %s: %v", name, got)
		}
	}
	if got := member(t, a, "job", "reason"); got != "unknown" {
		t.Errorf("the reason is %v", got)
	}
	for _, part := range []string{"attempts", "dead_letters"} {
		first := member(t, a, part).([]any)[0].(map[string]any)
		for _, name := range []string{"number", "started_at", "finished_at", "attempts", "failed_at"} {
			if got := first[name]; got != nil {
				t.Errorf("%s have %s: %v", part, name, got)
			}
		}
	}
	csv := h.get("/export.csv?q=source:shop").want(t, http.StatusOK).body
	if row := strings.Split(csv, "\n")[1]; !strings.Contains(row, ",unknown,,,,1,,,") {
		t.Errorf("the row of the export is %q", row)
	}
	own := h.get("/api/v1/jobs/"+h.enqueue(`{"type":"other.thing","queue":"orders"}`)).want(t, http.StatusOK)
	for _, name := range []string{"attempts", "max_attempts", "priority", "policy", "ttr", "enqueued_at"} {
		if got := member(t, own, "job", name); got == nil {
			t.Errorf("a job of Redrive's own lacks %s", name)
		}
	}
}

func TestSource_WhatItDoesNotSayIsUnknownOnPages(t *testing.T) {
	h := start(t)
	j := h.mirror("shop", source.Record{Key: "1", Queue: "orders", Type: "charge", Payload: []byte(`{}`), Limit: 2})
	for path, wants := range map[string][]string{
		"/jobs/" + j.ID:       {"shop does not say when. Redrive saw it first", "Enqueuedunknown", "Last attempt failed", "unknown"},
		"/dead-letters":       {"unknownorders@shop", "unknownseen"},
		"/queues":             {"source shop", "of its source", "1 queue of sources"},
		"/queues/orders@shop": {"source shop", "by its own rules"},
		"/workers":            {"source shop"},
	} {
		d := h.get(path).want(t, http.StatusOK).dom(t)
		text := strings.Join(strings.Fields(d.text()), " ")
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", path, want)
			}
		}
		for _, no := range []string{"exhaustedorders", "attempts exhausted", "0/2", "after 0 s", "of 2 attempts", "no policy", "not configured here", "exponential"} {
			if strings.Contains(text, no) && !strings.HasPrefix(path, "/queues") {
				t.Errorf("%s says %q", path, no)
			}
		}
	}
}

func TestSource_ItsQueueCannotBePaused(t *testing.T) {
	h := start(t)
	h.mirror("shop", source.Record{Key: "1", Queue: "orders", Type: "charge"})
	for _, path := range []string{"/api/v1/queues/orders@shop", "/api/v1/queues/orders%40shop"} {
		a := h.post(path+"/pause", "").want(t, http.StatusConflict)
		if text, _ := member(t, a, "error", "message").(string); !strings.Contains(text, "the source shop") {
			t.Errorf("the reason is %q", text)
		}
		q := h.get(path).want(t, http.StatusOK)
		for _, name := range []string{"paused_at", "workers", "running", "dead_letter"} {
			if got := member(t, q, "queue", name); got != nil {
				t.Errorf("the queue has %s: %v", name, got)
			}
		}
		if got := member(t, q, "queue", "source"); got != "shop" {
			t.Errorf("the queue is of the source %v", got)
		}
	}
	if body := h.get("/queues").body; strings.Contains(body, "orders@shop/pause") {
		t.Error("the list of queues has a button that pauses the queue")
	}
	if body := h.get("/api/v1/workers").body; strings.Contains(body, "orders@shop") {
		t.Error("the worker has the queue")
	}
}

func TestAddress_NamesMayBePercentEncoded(t *testing.T) {
	h := start(t)
	h.mirror("bull", source.Record{Key: "1", Queue: "Mailers", Type: "charge"})
	h.enqueue(`{"type":"other.thing","queue":"orders"}`)
	for _, path := range []string{"/queues/Mailers@bull", "/queues/Mailers%40bull", "/queues/%4dailers%40bull", "/api/v1/queues/Mailers%40bull", "/queues/o%72ders"} {
		h.get(path).want(t, http.StatusOK)
	}
	for _, path := range []string{"/queues/Mailers%2540bull", "/queues/orders%2Fpause", "/queues/%00"} {
		h.get(path).want(t, http.StatusBadRequest)
	}
}

func TestSource_AnUnknownReplayIsUnknownInTheAPI(t *testing.T) {
	h := start(t)
	r := source.Record{Key: "1", Queue: "orders", Type: "charge", Payload: []byte(`{}`)}
	j := h.mirror("shop", r)
	h.post("/api/v1/jobs/"+j.ID+"/replay", `{"run":1}`).want(t, http.StatusOK)
	acts, err := h.store.Sources.Take(t.Context(), "shop", 1)
	if err != nil || len(acts) != 1 {
		t.Fatalf("%d acts, %v", len(acts), err)
	}
	why := "a copy may be in its queue"
	err = h.store.Mirror.SettleActs(t.Context(), time.Now(), []source.Result{{ID: acts[0].ID, State: source.Unknown, Why: why}})
	if err != nil {
		t.Fatal(err)
	}
	a := h.get("/api/v1/jobs/"+j.ID).want(t, http.StatusOK)
	if unknown, at := member(t, a, "job", "replay_unknown"), member(t, a, "job", "status"); unknown != true || at != "returned" {
		t.Errorf("while nothing is known, replay_unknown is %v and the status %v", unknown, at)
	}

	h.mirror("shop", r)
	a = h.get("/api/v1/jobs/"+j.ID).want(t, http.StatusOK)
	act := member(t, a, "acts").([]any)[0].(map[string]any)
	if at := member(t, a, "job", "status"); at != "dead_letter" || act["state"] != "unknown" || act["why"] != why {
		t.Errorf("the job is %v and its act %v", at, act)
	}
	if n := len(member(t, a, "attempts").([]any)); n != 1 {
		t.Errorf("the job has %d attempts", n)
	}
	text := h.get("/jobs/"+j.ID).want(t, http.StatusOK).dom(t).text()
	if !strings.Contains(text, "It is unknown whether shop took the replay") || !strings.Contains(text, "A copy may be in its queue.") {
		t.Error("the page does not say that the fate of the replay is unknown")
	}
}
