package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"redrive/internal/operation"
)

const redactedPaths = `
redaction:
  paths: ["$.customer.email"]
  types: {"urn:mail:sent": ["$.to"]}
`

// silent fails when one of the pages tells the secret.
func (h *house) silent(secret string, paths ...string) {
	h.t.Helper()
	for _, path := range paths {
		said := h.get(path).want(h.t, http.StatusOK).body
		if at := strings.Index(said, secret); at >= 0 {
			h.t.Errorf("%s tells it: …%s…", path, said[max(0, at-80):min(len(said), at+80)])
		}
	}
}

// An envelope hides what its payload hides, whether it can be read or not, in a
// frame or without one.
func TestRedaction_LooksIntoEnvelopes(t *testing.T) {
	h := startWith(t, redactedPaths)
	data := `{"customer":{"email":"S3cr3t"},"to":"S3cr3t"}`
	good := `{"job":"urn:mail:sent","trace_id":"t","data":` + data + `,"meta":{"schema_version":1},"attempts":0}`
	framed := func(body string) string {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return `{"__bq_frame":1,"headers":{},"body":` + string(text) + `}`
	}
	poison := strings.Replace(good, `"trace_id":"t"`, `"trace_id":""`, 1)
	for name, envelope := range map[string]string{
		"good": good, "framed": framed(good), "poison": poison, "framed poison": framed(poison), "half": good[:len(good)-40], "framed half": framed(good[:len(good)-40]),
	} {
		id := h.send("mail", envelope).Jobs[0].ID
		h.t.Log(name)
		h.silent("S3cr3t", "/jobs/"+id, "/jobs/"+id+"/payload", "/api/v1/jobs/"+id, "/api/v1/jobs/"+id+"/envelope", "/api/v1/jobs/"+id+"/envelope?original=1",
			"/export.ndjson", "/export.csv", "/dead-letters")
	}
}

// What a search shows of a payload, however long, is a part of the redacted one.
func TestRedaction_HidesInWhatASearchShows(t *testing.T) {
	h := startWith(t, redactedPaths)
	for _, pad := range []int{0, 30_000, 60_000, 200_000} {
		id := h.enqueue(`{"type":"a","queue":"mail","payload":{"near":"haystack","customer":{"email":"S3cr3t"},"url":"amqp://u:S3cr3t@mq","pad":"` +
			strings.Repeat("x", pad) + `"}}`)
		h.fail("mail", "io", "broken", "")
		page := h.get("/jobs?q=haystack").want(t, http.StatusOK)
		if !strings.Contains(page.body, id) || strings.Count(page.body, "<mark>haystack</mark>") == 0 {
			t.Errorf("with %d bytes the search does not show where it found the job", pad)
		}
	}
	h.silent("S3cr3t", "/jobs?q=haystack", "/dead-letters?q=haystack", "/dead-letters?q=payload:customer", "/jobs?q=customer")
	if page := h.get("/jobs?q=S3cr3t").want(t, http.StatusOK); strings.Contains(page.body, "<mark>") {
		t.Error("a secret is found")
	}
}

// Where a list shows the beginning of a payload, it shows that of a redacted one.
func TestRedaction_LooksBeyondWhatListsShow(t *testing.T) {
	h := startWith(t, redactedPaths)
	for pad := range 120 {
		inner := fmt.Sprintf(`{"pad":"%s","customer":{"email":"S3cr3t"},"url":"amqp://u:S3cr3t%s@mq"}`, strings.Repeat("x", pad), strings.Repeat("x", 99))
		text, err := json.Marshal(inner)
		if err != nil {
			t.Fatal(err)
		}
		h.enqueue(`{"type":"a","queue":"mail","payload":` + string(text) + `}`)
	}
	for range 120 {
		h.fail("mail", "io", "broken", "")
	}
	h.silent("S3cr3t", "/dead-letters", "/failures")
}

func TestRedaction_HidesInWhatPeopleWrote(t *testing.T) {
	h := operated(t)
	h.post("/api/v1/jobs", `{"type":"a","queue":"mail","payload":1,"trace_id":"token=S3cr3t"}`).want(t, http.StatusCreated)
	h.fail("mail", "io", "broken password=S3cr3t", "")
	h.post("/api/v1/operations", `{"kind":"replay","filter":"error:\"password=S3cr3t now\" queue:mail"}`).want(t, http.StatusCreated)
	h.reaches(1, operation.Preview)
	h.silent("S3cr3t", "/operations/1", "/operations", "/", "/api/v1/operations/1", "/api/v1/operations", "/operations/1/items.csv", "/operations/1/items.ndjson", "/audit", "/audit.csv", "/audit.ndjson", "/export.ndjson", "/export.csv")
	if text := h.get("/api/v1/operations/1").body; !strings.Contains(text, `queue:mail error:\"password=•••••• now\"`) {
		t.Errorf("the rest of the filter is not shown: %s", text)
	}
}

// A filter that has got longer by what is hidden in it is shown like any other.
func TestRedaction_ShowsFiltersThatGrow(t *testing.T) {
	h := operated(t)
	long := strings.TrimSpace(strings.Repeat("pin=7 ", 33))
	h.post("/api/v1/operations", `{"kind":"replay","filter":"error:\"`+long+`\" queue:mail"}`).want(t, http.StatusCreated)
	h.reaches(1, operation.Preview)
	h.silent("pin=7", "/operations/1", "/operations", "/", "/api/v1/operations/1", "/api/v1/operations", "/audit")
	if text := h.get("/operations/1").want(t, http.StatusOK).dom(t).text(); !strings.Contains(text, "pin=•••••• pin=••••••") {
		t.Errorf("the filter is not shown: %s", text)
	}
}
