package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"redrive/internal/operation"
)

// filled is the address of a route, with something at each place that a name goes.
func filled(path, id, fingerprint string) string {
	if strings.Contains(path, "/operations/") {
		id = "1"
	}
	return strings.NewReplacer(":id", id, ":fingerprint", fingerprint, ":hash", "h", "*", "f", "/users/:name", "/users/ana",
		"/faults/:name", "/faults/upstream", ":name", "orders").Replace(path)
}

// free are the routes that heed no parameter, and that others may call as they like.
var free = map[string]bool{"/metrics": true, "/healthz": true, "/readyz": true, "/static/:file": true}

// A misspelt parameter is refused by every route: half of a filter would be a
// wider one.
func TestAddresses_EveryRouteRefusesAnUnknownParameter(t *testing.T) {
	h := start(t, func(o *Options) { o.Demo = &theDemo{broken: map[string]bool{}} })
	fingerprint, id := h.failing()
	walked := 0
	for _, r := range h.server().echo.Routes() {
		if free[r.Path] {
			continue
		}
		walked++
		a := h.do(r.Method, filled(r.Path, id, fingerprint)+"?quue=zzz", "", "Accept", "application/json")
		if a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s %s answers %d", r.Method, r.Path, a.StatusCode)
		}
		if r.Method == http.MethodHead || a.StatusCode != http.StatusBadRequest {
			continue
		}
		if f := decode[problemAnswer](t, a).Error; f.Code != "invalid_parameter" || f.Field != "quue" {
			t.Errorf("%s %s says %+v", r.Method, r.Path, f)
		}
	}
	if walked < 100 {
		t.Errorf("only %d routes were walked", walked)
	}
}

func TestAddresses_ParametersAreReadOrRefused(t *testing.T) {
	h := start(t)
	h.dead()
	for path, want := range map[string]string{
		"/export.ndjson?quue=zzz":                   "quue",
		"/export.csv?queue=a&queue=b":               "queue",
		"/export.csv?limit=5":                       "limit",
		"/api/v1/jobs?queue=a&queue=a":              "queue",
		"/api/v1/jobs?Queue=a":                      "Queue",
		"/api/v1/jobs/count?after=x":                "after",
		"/api/v1/failures?reason=x":                 "reason",
		"/api/v1/audit?actr=eve":                    "actr",
		"/audit.ndjson?actr=eve":                    "actr",
		"/api/v1/queues?name=orders":                "name",
		"/api/v1/jobs?queue=%zz":                    "",
		"/export.ndjson?queue=a;type=b":             "",
		"/live?qeue=orders":                         "qeue",
		"/jobs?quue=zzz":                            "quue",
		"/dead-letters?queue=orders&queue=payments": "queue",
	} {
		a := h.get(path, "Accept", "application/json").want(t, http.StatusBadRequest)
		if f := decode[problemAnswer](t, a).Error; f.Field != want || f.Message == "" {
			t.Errorf("%s says %+v", path, f)
		}
	}
	for _, path := range []string{
		"/jobs?queue=orders&utm_source=mail&fbclid=x", "/?acted=x&utm_campaign=a&utm_campaign=b", "/jobs?queue=&type=&state=", "/healthz?verbose",
	} {
		h.get(path).want(t, http.StatusOK)
	}
	page := h.get("/jobs?quue=zzz").want(t, http.StatusBadRequest)
	if !strings.Contains(page.body, "“quue”: this address has no such parameter; it takes q, state, queue") {
		t.Errorf("the page does not name the parameter: %s", page.body[strings.Index(page.body, "<main"):])
	}
}

// Every link and every form of the pages leads to an address that is understood.
func TestAddresses_LinksOfPagesAreUnderstood(t *testing.T) {
	h := operated(t)
	fingerprint, id := h.failing()
	h.post("/api/v1/operations", `{"kind":"replay","filter":"state:dead_letter"}`).want(t, http.StatusCreated)
	h.reaches(1, operation.Preview)
	todo := []string{"/", "/jobs", "/jobs?state=dead_letter&queue=orders&type=order.*&from=2020-01-01&sort=oldest", "/jobs/" + id, "/dead-letters", "/trash",
		"/failures", "/failures?state=open&sort=seen", "/failures/" + fingerprint, "/operations", "/operations/1?state=pending", "/queues", "/queues/orders",
		"/workers", "/retention", "/policies", "/audit?action=job.replay", "/access"}
	seen := map[string]bool{}
	for _, path := range todo {
		page := h.get(path)
		if page.StatusCode == http.StatusBadRequest {
			t.Errorf("%s is not understood", path)
			continue
		}
		for _, link := range links(t, page.body) {
			if seen[link] || !strings.Contains(link, "?") {
				continue
			}
			if seen[link] = true; h.get(link, "Accept", "application/json").StatusCode == http.StatusBadRequest {
				t.Errorf("%s leads to %s, which is not understood", path, link)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d links were followed", len(seen))
	}
}

// links are the addresses on a page, and those to which its search forms lead.
func links(t *testing.T, page string) (all []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		of := map[string]string{}
		for _, a := range n.Attr {
			of[a.Key] = a.Val
		}
		if n.Data == "a" && strings.HasPrefix(of["href"], "/") {
			all = append(all, of["href"])
		}
		if n.Data == "form" && !strings.EqualFold(of["method"], "post") && of["action"] != "" {
			values := url.Values{}
			for field := range n.Descendants() {
				for _, a := range field.Attr {
					if a.Key == "name" {
						values.Set(a.Val, "")
					}
				}
			}
			all = append(all, of["action"]+"?"+values.Encode())
		}
	}
	return all
}

// The answer to a request without a body says what is missing; a body of another
// kind, or with an unknown member, is refused, whatever the route.
func TestAddresses_EveryActNamesWhatIsMissing(t *testing.T) {
	h := operated(t)
	fingerprint, id := h.failing()
	h.post("/api/v1/operations", `{"kind":"replay","filter":"state:dead_letter"}`).want(t, http.StatusCreated)
	h.reaches(1, operation.Preview)
	missing := map[string]string{
		"/jobs": "type", "/jobs/batch": "jobs", "/jobs/:id/replay": "run", "/jobs/:id/discard": "run", "/jobs/:id/cancel": "run",
		"/jobs/:id/restore": "run", "/jobs/:id/forward": "run", "/jobs/:id/reschedule": "run", "/operations": "filter", "/operations/:id/rate": "rate",
		"/failures/:fingerprint/note": "note", "/users": "name", "/users/:name/role": "role", "/users/:name/password": "password", "/tokens": "name",
	}
	for _, r := range h.server().echo.Routes() {
		path, isAPI := strings.CutPrefix(r.Path, "/api/v1")
		if r.Method != http.MethodPost || !isAPI {
			continue
		}
		at := filled(r.Path, id, fingerprint)
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded"} {
			if a := h.do(http.MethodPost, at, "run=1", "Content-Type", kind); a.StatusCode != http.StatusUnsupportedMediaType {
				t.Errorf("%s as %s answers %d", path, kind, a.StatusCode)
			}
		}
		if path == "/queues/:name/envelopes" { // whatever is in an envelope is kept
			h.do(http.MethodPost, at, "").want(t, http.StatusBadRequest)
			continue
		}
		a := h.post(at, `{"zzz":1}`)
		if f := decode[problemAnswer](t, a).Error; a.StatusCode != 422 || f.Field != "zzz" || f.Message == "" {
			t.Errorf("%s with an unknown member answers %d: %s", path, a.StatusCode, a.body)
		}
		want := missing[path]
		if want == "" {
			continue // needs nothing, and would be done
		}
		delete(missing, path)
		for _, headers := range [][]string{nil, {"Content-Type", "application/json"}} {
			a = h.do(http.MethodPost, at, "", headers...)
			if f := decode[problemAnswer](t, a).Error; a.StatusCode != 422 || f.Field != want {
				t.Errorf("%s without a body answers %d: %s", path, a.StatusCode, a.body)
			}
		}
	}
	for path := range missing {
		t.Errorf("there is no route %s", path)
	}
}
