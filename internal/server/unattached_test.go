package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
)

// attached reports whether the store's sources are attached: all but one.
func attached(name string) bool { return name != "closed" }

// A source that was taken out of the configuration leaves dead letters behind, which a person
// finds and can give up.
func TestSource_TheDeadLettersOfAnUnattachedOneCanBeGivenUp(t *testing.T) {
	h := start(t)
	j := h.mirror("closed", source.Record{Key: "1", Queue: "orders", Type: "charge", Payload: []byte(`{}`)})

	page := h.get("/sources").want(t, http.StatusOK).dom(t).text()
	if text := strings.Join(strings.Fields(page), " "); !strings.Contains(text, "No longer attached") || !strings.Contains(text, "closed10") {
		t.Errorf("the page of sources does not count the dead letter: %s", text)
	}
	listed := member(t, h.get("/api/v1/sources").want(t, http.StatusOK), "unattached")
	if got := fmt.Sprint(listed); got != "[map[dead_letters:1 name:closed waiting:0]]" {
		t.Errorf("the API lists %s", got)
	}

	d := h.get("/jobs/"+j.ID).want(t, http.StatusOK).dom(t)
	if text := d.text(); !strings.Contains(text, "Discard in Redrive only") {
		t.Error("the page of the job does not say that a discard is Redrive's alone")
	}
	h.post("/api/v1/jobs/"+j.ID+"/discard", `{"run":1}`).want(t, http.StatusOK)

	got, err := h.store.Job(t.Context(), j.ID)
	if err != nil || got.Job.Status() != job.StatusTrashed {
		t.Errorf("the job is %s, %v", got.Job.Status(), err)
	}
	d = h.get("/jobs/"+j.ID).want(t, http.StatusOK).dom(t)
	if text := strings.Join(strings.Fields(d.text()), " "); !strings.Contains(text, "was not attached, so it was not told") {
		t.Errorf("the page of the job does not say what its source knows: %s", text)
	}
}

// What was requested of a source before it was taken out waits for it, and is counted even if
// no dead letter is left.
func TestSource_WhatWaitsForAnUnattachedOneIsCounted(t *testing.T) {
	var now atomic.Pointer[[]source.Health]
	now.Store(&[]source.Health{{Name: "shop"}, {Name: "outlet"}})
	h := start(t, func(o *Options) {
		o.Engine.Sources = func() []source.Health { return *now.Load() }
	})
	for key, act := range map[string]string{"1": "replay", "2": "discard"} {
		j := h.mirror("shop", source.Record{Key: key, Queue: "orders", Type: "charge", Payload: []byte(`{}`)})
		h.post("/api/v1/jobs/"+j.ID+"/"+act, `{"run":1}`).want(t, http.StatusOK)
	}
	h.mirror("outlet", source.Record{Key: "1", Queue: "orders", Type: "charge", Payload: []byte(`{}`)})
	look := func(wantListed, wantPage string) {
		t.Helper()
		listed := member(t, h.get("/api/v1/sources").want(t, http.StatusOK), "unattached")
		if got := fmt.Sprint(listed); got != wantListed {
			t.Errorf("the API lists %s, want %s", got, wantListed)
		}
		page := strings.Join(strings.Fields(h.get("/sources").want(t, http.StatusOK).dom(t).text()), " ")
		if !strings.Contains(page, wantPage) {
			t.Errorf("the page does not say %q: %s", wantPage, page)
		}
	}
	look("[]", "Sources")

	now.Store(&[]source.Health{{Name: "outlet"}})
	look("[map[dead_letters:0 name:shop waiting:2]]", "shop02")
	look("[map[dead_letters:0 name:shop waiting:2]]", "carried out when the source is attached again")

	now.Store(&[]source.Health{})
	look("[map[dead_letters:1 name:outlet waiting:0] map[dead_letters:0 name:shop waiting:2]]", "outlet10shop02")
}

// The preview of a discard of many says what becomes of the jobs at their sources. That of a
// replay does not speak of it.
func TestOperations_APreviewOfADiscardSaysWhatItDoesAtSources(t *testing.T) {
	h := operated(t, func(o *Options) {
		o.Engine.Sources = func() []source.Health { return []source.Health{{Name: "shop"}} }
	})
	for _, name := range []string{"shop", "closed"} {
		h.mirror(name, source.Record{Key: "1", Queue: "orders", Type: "charge", Payload: []byte(`{}`)})
	}

	text := func(id int64, kind string) string {
		h.post("/api/v1/operations", `{"kind":"`+kind+`","filter":"state:dead_letter"}`).want(t, http.StatusCreated)
		h.reaches(id, operation.Preview)
		page := h.get(fmt.Sprint("/operations/", id)).want(t, http.StatusOK).dom(t).text()
		return strings.Join(strings.Fields(page), " ")
	}
	says := []string{
		"1 job is deleted at the source shop and cannot be restored.", "1 job is discarded in Redrive only: the source closed is not attached",
	}
	discard, replay := text(1, "discard"), text(2, "replay")
	for _, want := range says {
		if !strings.Contains(discard, want) || strings.Contains(replay, want) {
			t.Errorf("%q is not said of a discard, or said of a replay: %s", want, discard)
		}
	}
	listed := member(t, h.get("/api/v1/operations/1").want(t, http.StatusOK), "breakdown", "sources")
	if got := fmt.Sprint(listed); got != "[map[attached:false count:1 name:closed] map[attached:true count:1 name:shop]]" {
		t.Errorf("the API lists %s", got)
	}
}

// Without scripts, too, a discard that cannot be undone offers no way back, and says why it is
// none.
func TestSource_ADiscardOffersNoUndo(t *testing.T) {
	h := start(t)
	j := h.mirror("shop", source.Record{Key: "1", Queue: "orders", Type: "charge", Payload: []byte(`{}`)})

	to := h.form("/jobs/"+j.ID+"/discard", "run=1&back="+url.QueryEscape("/jobs?state=discarded")).want(t, http.StatusSeeOther).Header.Get("Location")
	d := h.get(to).want(t, http.StatusOK).dom(t)
	if !strings.Contains(d.text(), "Done.") || d.formOf("/jobs/"+j.ID+"/restore") != nil {
		t.Error("the list does not say that the job is discarded, or offers to undo that")
	}

	a := h.post("/api/v1/jobs/"+j.ID+"/restore", `{"run":1}`).want(t, http.StatusConflict)
	if !strings.Contains(a.body, "a job of a source cannot be restored") {
		t.Errorf("a restore is answered with %s", a.body)
	}
}
