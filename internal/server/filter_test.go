package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"redrive/internal/apitype/work"
	"redrive/internal/job"
)

func TestLists_SpeakTheLanguageOfFilters(t *testing.T) {
	h := start(t)
	shipped := h.dead()
	h.enqueue(`{"type":"email.send","queue":"orders","payload":{"order":1042}}`)
	h.fail("orders", "smtp.451", "greylisted, try again", "")
	for q, want := range map[string]bool{
		"warehouse": true, "error:WAREHOUSE": true, `"the warehouse is"`: true, "type:order.*": true, "class:http.* state:dead_letter": true,
		"payload:1042": false, "since:1h attempts:1": true, "before:1h": false, shipped[:13]: true,
	} {
		for _, path := range []string{"/jobs?q=", "/dead-letters?q=", "/api/v1/jobs?q=", "/api/v1/dead-letters?q=", "/export.ndjson?q="} {
			a := h.get(path+url.QueryEscape(q)).want(t, http.StatusOK)
			if got := strings.Contains(a.body, shipped); got != want {
				t.Errorf("%s%s lists the job: %v, want %v", path, q, got, want)
			}
		}
	}
}

func TestLists_CombineTheLanguageWithParameters(t *testing.T) {
	h := start(t)
	id := h.dead()
	if a := h.get("/api/v1/jobs?q=warehouse&queue=orders&since=1h&type=order.*").want(t, http.StatusOK); !strings.Contains(a.body, id) {
		t.Errorf("the job is missing: %s", a.body)
	}
	if a := h.get("/api/v1/jobs?q=warehouse&queue=mail").want(t, http.StatusOK); strings.Contains(a.body, id) {
		t.Errorf("the job of another queue is listed: %s", a.body)
	}
	for query, field := range map[string]string{
		"q=queue:orders&queue=mail": "queue", "q=queu:orders": "q", "q=ab": "q", "error=ab": "error", "since=soon": "since", "sort=best": "sort",
		"from=2026-03-12&to=2026-03-11": "to",
	} {
		f := decode[problemAnswer](t, h.get("/api/v1/jobs?"+query).want(t, http.StatusBadRequest))
		if f.Error.Field != field {
			t.Errorf("%s: %+v, want the field %s", query, f.Error, field)
		}
	}
	if a := h.get("/dead-letters?q=state:retryable").want(t, http.StatusBadRequest); !strings.Contains(a.body, "this list has only dead letters") {
		t.Error("the list of dead letters does not say that it has no other state")
	}
}

func TestLists_OldestFirst(t *testing.T) {
	h := start(t)
	first, last := h.dead(), h.dead()
	for path, want := range map[string]bool{
		"/api/v1/jobs?": false, "/api/v1/jobs?sort=oldest&": true, "/api/v1/dead-letters?": false, "/api/v1/dead-letters?q=sort:oldest&": true,
	} {
		a := h.get(path+"limit=1").want(t, http.StatusOK)
		if got := strings.Contains(a.body, first); got != want || strings.Contains(a.body, last) == want {
			t.Errorf("%s begins with the oldest: %v, want %v", path, got, want)
		}
	}
}

func TestFacets_AreCountedOnPagesAndForPrograms(t *testing.T) {
	h := start(t)
	h.dead()
	h.dead()
	type shape struct{ Reasons, Queues, Types []work.Facet }
	got := decode[shape](t, h.get("/api/v1/facets?state=dead_letter&queue=orders").want(t, http.StatusOK))
	if len(got.Reasons) != 1 || got.Reasons[0] != (work.Facet{Value: "attempts_exhausted", Count: 2}) || got.Queues[0] != (work.Facet{Value: "orders", Count: 2}) ||
		got.Types[0] != (work.Facet{Value: "order.ship", Count: 2}) {
		t.Errorf("the facets are %+v", got)
	}
	page := h.get("/dead-letters?queue=orders").want(t, http.StatusOK)
	for _, link := range []string{"/dead-letters?queue=orders&amp;type=order.ship", "/dead-letters?queue=orders&amp;reason=attempts_exhausted", `href="/dead-letters"`} {
		if !strings.Contains(page.body, link) {
			t.Errorf("no facet leads to %s", link)
		}
	}
}

func TestLists_SayWhatIsNotSearchableYet(t *testing.T) {
	h := start(t)
	h.failed(2, "orders", []byte(`{}`))
	if a := h.get("/jobs?q=warehouse").want(t, http.StatusOK); !strings.Contains(a.body, "2 newest failures are not searchable yet.") {
		t.Error("the page does not say so")
	}
	if a := h.get("/metrics").want(t, http.StatusOK); !strings.Contains(a.body, "redrive_search_lag_jobs 2\n") {
		t.Error("the metrics do not say so")
	}
	if a := h.get("/api/v1/jobs?q=warehouse").want(t, http.StatusOK); !strings.Contains(a.body, `"not_searchable_yet":2`) {
		t.Errorf("the API does not say so: %s", a.body)
	}
}

func TestPages_ShowAndCountWhatASearchFinds(t *testing.T) {
	h := start(t)
	h.dead()
	id := h.dead()
	h.post("/api/v1/jobs/"+id+"/replay", `{"run":1}`).want(t, http.StatusOK)
	h.end("orders", job.Ending{Outcome: job.Succeeded})
	page := h.get("/jobs?q=warehouse").want(t, http.StatusOK)
	said := strings.Join(strings.Fields(page.dom(t).text()), " ")
	for _, want := range []string{"2 jobs", "completed 1", "dead letter 1", "cancelled 0"} {
		if !strings.Contains(said, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if n := strings.Count(page.body, "<mark>warehouse</mark>"); n != 2 {
		t.Errorf("%d rows show the text, want 2", n)
	}
	if page := h.get("/dead-letters?q=warehouse").want(t, http.StatusOK); !strings.Contains(page.dom(t).text(), "1 of 1 dead job") {
		t.Error("the dead letters that were found are not counted")
	}
	if page := h.get("/jobs?q=lighthouse").want(t, http.StatusOK); !strings.Contains(page.dom(t).text(), "0 jobs") {
		t.Error("a search that finds nothing does not say so")
	}
}

func TestCount_SaysHowManyMatch(t *testing.T) {
	h := start(t)
	h.dead()
	h.dead()
	type answer struct {
		Count int
		More  bool
	}
	for query, want := range map[string]int{"": 2, "?q=state:dead_letter+attempts:1": 2, "?state=available": 0} {
		if got := decode[answer](t, h.get("/api/v1/jobs/count"+query).want(t, http.StatusOK)); got != (answer{Count: want}) {
			t.Errorf("%q: %+v, want %d", query, got, want)
		}
	}
	h.get("/api/v1/jobs/count?q=color:red").want(t, http.StatusBadRequest)
	for path, want := range map[string]string{
		"/dead-letters": "Select all 2 matching", "/dead-letters?queue=orders": "Select all 2 matching", "/dead-letters?type=nobody": "",
		"/jobs?state=dead_letter&queue=orders": "Select all 2 matching", "/jobs?queue=orders&error=jam": "",
	} {
		text := h.get(path).want(t, http.StatusOK).dom(t).text()
		if want != "" && !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", path, want)
		}
	}
}
