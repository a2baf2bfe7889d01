package pages_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"redrive/internal/redact/redacttest"
	"redrive/test/rig"
	"redrive/test/site"
)

// shapesConfig is that of a dashboard whose service and program answer with the
// shape of whose number the payload speaks.
const shapesConfig = `
policy: {max_attempts: 1}
handlers:
  "http.*": {http: {url: %[1]q}}
  "urn:babel:http:sent": {http: {url: %[1]q}}
  "exec.*": {exec: {command: ["/bin/sh", %[2]q]}}
`

// shapesScript writes a shape to both outputs and fails.
const shapesScript = `n=$(sed 's/^{"n":\([0-9]*\).*/\1/')
cat "$(dirname "$0")/shape.$n" >&2
cat "$(dirname "$0")/shape.$n"
exit 1
`

// aviaryOfShapes is a running dashboard whose jobs, service and program bring along
// secrets in every shape.
type aviaryOfShapes struct {
	*aviary
	shapes []redacttest.Shape
}

func openShapes(t *testing.T, shapes []redacttest.Shape) *aviaryOfShapes {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var payload struct{ N int }
		if err := json.NewDecoder(r.Body).Decode(&payload); err != nil {
			t.Error(err)
		}
		said := shapes[payload.N].Text
		w.WriteHeader(http.StatusUnprocessableEntity)
		if r.Header.Get("Redrive-Job-Type") == "http.refused" {
			said = site.AsJSON(map[string]any{"error": map[string]any{"message": said, "details": map[string]string{"said": said}}})
		}
		io.WriteString(w, said)
	}))
	t.Cleanup(web.Close)
	dir := t.TempDir()
	for i, s := range shapes {
		rig.Write(t, dir, fmt.Sprintf("shape.%d", i), s.Text)
	}
	rig.Write(t, dir, "work.sh", shapesScript)
	rig.Write(t, dir, "redrive.yaml", fmt.Sprintf(shapesConfig, web.URL, filepath.Join(dir, "work.sh")))
	return &aviaryOfShapes{&aviary{Process: rig.Start(t, dir, "--log-level", "debug"), t: t}, shapes}
}

// fill enqueues a job of each kind for each shape, and lets them fail.
func (a *aviaryOfShapes) fill() {
	a.t.Helper()
	const batch = 40 // shapes
	for from := 0; from < len(a.shapes); from += batch {
		var jobs []string
		for i := from; i < min(from+batch, len(a.shapes)); i++ {
			text := a.shapes[i].Text
			payload := site.AsJSON(struct {
				N   int    `json:"n"`
				Log string `json:"log"`
			}{i, text})
			meta := site.AsJSON(map[string]string{"note": text})
			for _, typ := range []string{"http.answered", "http.refused", "exec.failed"} {
				jobs = append(jobs, fmt.Sprintf(`{"type": %q, "queue": "orders", "payload": %s, "meta": %s}`, typ, payload, meta))
			}
			envelope := `{"job": "urn:babel:http:sent", "trace_id": "7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b", "data": ` + payload +
				`, "meta": {"id": "m-` + strconv.Itoa(i) + `", "schema_version": 1, "note": ` + site.AsJSON(text) + `}, "attempts": 0}`
			a.tell("/api/v1/queues/orders/envelopes", envelope, http.StatusCreated)
		}
		a.tell("/api/v1/jobs/batch", `{"jobs": [`+strings.Join(jobs, ", ")+`]}`, http.StatusCreated)
	}
	a.dead(4 * len(a.shapes))
	a.note()
}

// note writes each shape into the note of a group, and as the trace id of a job
// where that takes it.
func (a *aviaryOfShapes) note() {
	a.t.Helper()
	group := rig.Get[struct {
		Groups []struct{ Fingerprint string }
	}](a.t, a.URL+"/api/v1/failures").Groups[0].Fingerprint
	for i, s := range a.shapes {
		a.tell("/api/v1/failures/"+group+"/note", site.AsJSON(map[string]string{"note": s.Text}), http.StatusOK)
		body := fmt.Sprintf(`{"type": "held.%d", "queue": "orders", "payload": {}, "trace_id": %s}`, i, site.AsJSON(s.Text))
		response, err := http.Post(a.URL+"/api/v1/jobs", "application/json", strings.NewReader(body))
		if err != nil {
			a.t.Fatal(err)
		}
		a.keeps("a job with a trace id", a.read(response))
	}
}

// keeps fails when a text has a secret, as itself or as it is in the shape.
func (a *aviaryOfShapes) keeps(where, said string) {
	a.t.Helper()
	if i := strings.Index(said, redacttest.Canary); i >= 0 {
		a.t.Errorf("%s tells %.200q", where, said[max(0, i-100):])
		return
	}
	for _, s := range a.shapes {
		if !strings.Contains(s.Leak, redacttest.Canary) && strings.Contains(said, s.Leak) {
			a.t.Errorf("%s tells %s: %s", where, s.Name, s.Leak)
			return
		}
	}
}

// open opens an address and looks for secrets in the answer.
func (a *aviaryOfShapes) open(path string) string {
	a.t.Helper()
	response, err := http.Get(a.URL + path)
	if err != nil {
		a.t.Fatal(err)
	}
	said := a.read(response)
	if response.StatusCode != http.StatusOK {
		a.t.Errorf("%s answers %s", path, response.Status)
	}
	a.keeps(path, said)
	return said
}

// look opens all that shows jobs, failures, notes and figures, and each job.
func (a *aviaryOfShapes) look() {
	a.t.Helper()
	for _, path := range []string{
		"/", "/failures", "/jobs", "/dead-letters", "/jobs?state=dead_letter", "/audit", "/workers", "/queues", "/metrics", "/export.csv", "/export.ndjson", "/audit.csv", "/audit.ndjson",
		"/api/v1/failures?limit=200", "/api/v1/dead-letters?limit=200", "/api/v1/jobs?limit=200",
	} {
		a.open(path)
	}
	for _, typ := range []string{"http.answered", "http.refused", "exec.failed", "urn:babel:http:sent"} {
		after := ""
		for more := true; more; more = after != "" {
			page := rig.Get[struct {
				Jobs []struct{ ID string }
				Next string
			}](a.t, a.URL+"/api/v1/jobs?limit=200&type="+url.QueryEscape(typ)+"&after="+after)
			for _, j := range page.Jobs {
				a.open("/jobs/" + j.ID)
				a.open("/api/v1/jobs/" + j.ID)
				a.ids = append(a.ids, j.ID)
			}
			after = url.QueryEscape(page.Next)
		}
	}
}

// A secret in any of more than 300 shapes, wherever it comes in, is on no page, in
// no answer, export or live frame, in no log line and no figure, and no search finds
// it. Here with one shape in 16.
func TestRedaction_NoShapeSings(t *testing.T) {
	t.Parallel()
	var some []redacttest.Shape
	for i, s := range redacttest.Shapes(seedOfShapes) {
		if i%16 == 0 {
			some = append(some, s)
		}
	}
	noShapeSings(t, some)
}

// Nor do the others.
func TestLong_RedactionNoShapeSings(t *testing.T) {
	t.Parallel()
	noShapeSings(t, redacttest.Shapes(seedOfShapes))
}

const seedOfShapes = 1

func noShapeSings(t *testing.T, shapes []redacttest.Shape) {
	a := openShapes(t, shapes)
	a.fill()
	a.look()
	if len(a.ids) != 4*len(a.shapes) {
		t.Errorf("%d jobs were looked at, want %d", len(a.ids), 4*len(a.shapes))
	}
	a.searchable("payload:log")
	for _, s := range a.shapes {
		if len(s.Leak) > 200 {
			continue // longer than what can be looked for
		}
		if found := rig.Get[struct{ Jobs []any }](t, a.URL+"/api/v1/jobs?q="+url.QueryEscape(`"`+s.Leak+`"`)).Jobs; len(found) > 0 {
			t.Errorf("%s is found by searching for %s", s.Name, s.Leak)
		}
	}
	id := a.ids[0]
	a.ids = a.ids[:50]
	a.keeps("the live connection", a.follow(id))
	a.keeps("the log", a.Stop(os.Interrupt).Stderr.String())
}
