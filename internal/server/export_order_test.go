package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
)

// listed are the ids of a list, from its first page to its last.
func (h *house) listed(query string) (ids []string) {
	h.t.Helper()
	type page struct {
		Jobs []struct{ ID string }
		Next string
	}
	for next := ""; ; {
		p := decode[page](h.t, h.get("/api/v1/jobs?"+query+"&after="+url.QueryEscape(next)).want(h.t, http.StatusOK))
		for _, j := range p.Jobs {
			ids = append(ids, j.ID)
		}
		if next = p.Next; next == "" {
			return ids
		}
	}
}

// idsIn are the ids in a file of jobs.
func idsIn(t *testing.T, file string) (ids []string) {
	t.Helper()
	for line := range strings.Lines(file) {
		var j struct{ ID string }
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		ids = append(ids, j.ID)
	}
	return ids
}

// everyOrder makes jobs in many states, of which those that wait run in another order
// than that in which they were enqueued.
func (h *house) everyOrder(waiting int) {
	h.t.Helper()
	h.failed(60, "orders", []byte(`{"n":"canary"}`))
	for i := range waiting {
		h.enqueue(`{"type":"mail.send","queue":"mail"}`)
		h.enqueue(fmt.Sprintf(`{"type":"mail.send","queue":"late","delay":"%dm"}`, 100+i*37%waiting))
	}
	h.fail("mail", "smtp.451", "the canary sings", "")
	for i, id := range h.listed("state=retryable&sort=oldest") {
		h.post("/api/v1/jobs/"+id+"/reschedule", fmt.Sprintf(`{"run":1,"delay":"%dm"}`, 100+i*29%waiting)).want(h.t, http.StatusOK)
	}
	h.enqueue(`{"type":"order.ship","queue":"plain"}`)
	h.succeed("plain")
}

// An export is the list, in its order: of every state, sort and filter. Here a filter
// goes without a state, in TestLong with each.
func TestExport_IsTheListInItsOrder(t *testing.T) { isTheList(t, false) }

func TestLong_ExportIsTheListOfEveryStateAndFilter(t *testing.T) { isTheList(t, true) }

func isTheList(t *testing.T, together bool) {
	t.Helper()
	h := start(t)
	h.everyOrder(55)
	states := []string{""}
	for _, s := range job.Statuses() {
		states = append(states, string(s))
	}
	compared := 0
	for _, state := range states {
		for _, sort := range []filter.Sort{"", filter.Newest, filter.Oldest, filter.Next} {
			for _, also := range []string{"", "queue=mail", "type=mail.*", "q=canary"} {
				if state != "" && also != "" && !together {
					continue
				}

				query := "state=" + state + "&sort=" + string(sort) + "&" + also
				if a := h.get("/api/v1/jobs?" + query); a.StatusCode == http.StatusBadRequest {
					h.get("/export.ndjson?"+query).want(t, http.StatusBadRequest)
					continue
				}
				want := h.listed(query)
				if got := idsIn(t, h.get("/export.ndjson?"+query).want(t, http.StatusOK).body); !slices.Equal(got, want) {
					t.Errorf("%s: the export has %d jobs, the list %d, or in another order", query, len(got), len(want))
				}
				compared += len(want)
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d jobs were compared", compared)
	}
}

// meddling is a reader of an export during which something happens, once its first page
// is out.
type meddling struct {
	*httptest.ResponseRecorder
	meanwhile func()
}

func (w *meddling) SetWriteDeadline(time.Time) error { return nil }

func (w *meddling) Flush() {
	w.ResponseRecorder.Flush()
	if w.meanwhile != nil {
		w.meanwhile()
	}
	w.meanwhile = nil
}

// A job that moves ahead of the reader meanwhile is in the file once.
func TestExport_HasAJobOnceThatMovesMeanwhile(t *testing.T) {
	h := start(t)
	h.everyOrder(60)
	first := h.listed("state=retryable")[0]
	w := &meddling{httptest.NewRecorder(), func() {
		h.post("/api/v1/jobs/"+first+"/reschedule", `{"run":1,"delay":"90d"}`).want(t, http.StatusOK)
	}}
	h.http.Config.Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/export.ndjson?state=retryable", nil))
	ids := idsIn(t, w.Body.String())
	slices.Sort(ids)
	if w.meanwhile != nil || len(ids) != 60 || len(slices.Compact(ids)) != 60 {
		t.Errorf("moved %v; %d jobs, want each of 60 once", w.meanwhile == nil, len(ids))
	}
}
