package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

type attemptsPage struct {
	Attempts []struct{ Execution int }
	Total    int `json:"attempts_total"`
	Next     int `json:"attempts_next"`
}

// failOften is a job with so many failed attempts, each with a trace of so many bytes.
func (h *house) failOften(attempts, trace int) (id string) {
	id = h.enqueue(`{"type":"t","queue":"mail","policy":{"max_attempts":10000,"strategy":"immediate"}}`)
	for i := range attempts {
		h.fail("mail", "http.503", fmt.Sprint("failure ", i+1), strings.Repeat("x", trace))
	}
	return id
}

func TestAPI_AttemptsOfAJobComeInPages(t *testing.T) {
	const attempts = 40 // more bytes than a page has
	h := start(t)
	id := h.failOften(attempts, 120_000)
	seen, query := attempts, ""
	for seen > 0 {
		a := h.get("/api/v1/jobs/"+id+query).want(t, http.StatusOK)
		if limit := 4 << 20; len(a.body) > limit {
			t.Fatalf("%d bytes, more than %d", len(a.body), limit)
		}
		p := decode[attemptsPage](t, a)
		if p.Total != attempts || len(p.Attempts) == 0 {
			t.Fatalf("%d attempts of %d", len(p.Attempts), p.Total)
		}
		for i := len(p.Attempts) - 1; i >= 0; i-- {
			if p.Attempts[i].Execution != seen {
				t.Fatalf("execution %d, want %d", p.Attempts[i].Execution, seen)
			}
			seen--
		}
		if (p.Next == 0) != (seen == 0) {
			t.Fatalf("next %d with %d left", p.Next, seen)
		}
		query = fmt.Sprint("?attempts_after=", p.Next)
	}
	h.get("/api/v1/jobs/"+id+"?attempts_after=x").want(t, http.StatusBadRequest)
	h.get("/api/v1/jobs/"+id+"?attempts_after=0").want(t, http.StatusBadRequest)
}

// Each attempt says what followed it, the newest one of an older page too.
func TestPages_EarlierAttemptsLeadBackToTheFirst(t *testing.T) {
	h := start(t)
	id := h.failOften(250, 100)
	path, left := "/jobs/"+id, 250
	for pages := 1; path != ""; pages++ {
		body := h.get(path).want(t, http.StatusOK).body
		shown, retried := strings.Count(body, `<li class="attempt `), strings.Count(body, ">retried at ")
		if pages == 1 {
			retried++ // the newest one
		}
		if shown == 0 || retried != shown || !strings.Contains(body, fmt.Sprintf(`id="run-1-attempt-%d"`, left)) {
			t.Fatalf("page %d shows %d attempts, of which %d say when they were retried; want those up to %d", pages, shown, retried, left)
		}
		left -= shown
		_, rest, found := strings.Cut(body, `href="/jobs/`+id+`/attempts?after=`)
		if path = ""; found {
			cursor, _, _ := strings.Cut(rest, `"`)
			path = "/jobs/" + id + "/attempts?after=" + cursor
		}
	}
	if left != 0 {
		t.Errorf("%d attempts are on no page", left)
	}
}
