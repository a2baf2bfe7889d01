package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"redrive/internal/job"
)

// formOf is what the form that posts to an address sends, or nil without one.
func (d dom) formOf(action string) url.Values {
	for form := range d.Descendants() {
		if !slices.Contains(form.Attr, html.Attribute{Key: "action", Val: action}) {
			continue
		}
		sent := url.Values{}
		for n := range form.Descendants() {
			of := map[string]string{}
			for _, a := range n.Attr {
				of[a.Key] = a.Val
			}
			if n.Data == "input" {
				sent.Set(of["name"], of["value"])
			}
		}
		return sent
	}
	return nil
}

// Without scripts a discard leads back to its list, which offers to undo it;
// that leads back there too, and the dead letter is open again.
func TestTrash_UndoIsAForm(t *testing.T) {
	h := start(t)
	id := h.dead()
	to := h.form("/jobs/"+id+"/discard", "run=1&back="+url.QueryEscape("/jobs?state=discarded")).want(t, http.StatusSeeOther).Header.Get("Location")
	page := h.get(to).want(t, http.StatusOK)
	form := page.dom(t).formOf("/jobs/" + id + "/restore")
	if form.Get("run") != "1" || form.Get("back") != to {
		t.Errorf("the form holds %v, want the run and %s", form, to)
	}
	to = h.form("/jobs/"+id+"/restore", form.Encode()).want(t, http.StatusSeeOther).Header.Get("Location")
	after := h.get(to).want(t, http.StatusOK).dom(t)
	if !strings.Contains(after.text(), "is in run 1: dead letter") || after.formOf("/jobs/"+id+"/restore") != nil {
		t.Error("the list does not say that it is restored, or offers to undo that")
	}
	if j := h.stored(id).Job; j.Status() != job.StatusDeadLetter {
		t.Errorf("it is %s", j.Status())
	}
	h.form("/jobs/"+id+"/restore", form.Encode()).want(t, http.StatusConflict)
}

// What is in the trash says who put it there and from where, in the page and in
// the API, and is found by the same filters.
func TestTrash_ListsWhatWasDiscarded(t *testing.T) {
	h := start(t)
	id, other := h.dead(), h.dead()
	h.post("/api/v1/jobs/"+id+"/discard", `{"run":1}`).want(t, http.StatusOK)
	type row struct {
		ID       string `json:"job_id"`
		Run      int
		Was      job.Status
		By       string `json:"discarded_by"`
		PurgedAt string `json:"purged_at"`
	}
	list := decode[struct{ Trash []row }](t, h.get("/api/v1/trash").want(t, http.StatusOK)).Trash
	if len(list) != 1 || list[0].ID != id || list[0].Run != 1 || list[0].Was != job.StatusDeadLetter || list[0].By != "API client (127.0.0.1)" || list[0].PurgedAt == "" {
		t.Errorf("the trash is %+v", list)
	}
	text := h.get("/trash").want(t, http.StatusOK).dom(t).text()
	for _, want := range []string{"purged in", "API client (127.0.0.1)", "order.ship"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if page := h.get("/trash").body; strings.Contains(page, other) || !strings.Contains(page, `value="`+id+`:1"`) {
		t.Error("it shows a job that is not in the trash, or has no box for the one that is")
	}
	if page := h.get("/trash?type=email.*").want(t, http.StatusOK).body; strings.Contains(page, id) {
		t.Error("the filter does not hold")
	}
	h.get("/trash?q=state:active").want(t, http.StatusBadRequest)
	h.get("/api/v1/trash?after=nowhere").want(t, http.StatusBadRequest)
}

// A restore names the run, happens once, and leaves what is not in the trash
// alone.
func TestTrash_RestoresOnce(t *testing.T) {
	h := start(t)
	id := h.dead()
	path := "/api/v1/jobs/" + id + "/restore"
	h.post(path, `{"run":1}`).want(t, http.StatusConflict)
	h.post("/api/v1/jobs/"+id+"/discard", `{"run":1}`).want(t, http.StatusOK)
	h.post(path, `{}`).want(t, http.StatusUnprocessableEntity)
	h.post(path, `{"run":2}`).want(t, http.StatusConflict)
	h.form("/jobs/"+id+"/restore", "run=x").want(t, http.StatusUnprocessableEntity)
	h.post(path, `{"run":1}`).want(t, http.StatusOK)
	h.post(path, `{"run":1}`).want(t, http.StatusConflict)
	h.post("/api/v1/jobs/"+unknownID+"/restore", `{"run":1}`).want(t, http.StatusNotFound)
	if list := h.get("/api/v1/trash").want(t, http.StatusOK).body; strings.Contains(list, id) {
		t.Errorf("the trash still has %s", list)
	}
}
