package api

import (
	"bytes"
	"flag"
	"net/http"
	"os"
	"testing"
	"time"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/openapi"
	"redrive/internal/operation"
	"redrive/internal/server/web"
)

var update = flag.Bool("update", false, "write openapi.json again")

// The document that the server sends is that of the table and the types.
func TestOpenAPI_IsThatOfTheTable(t *testing.T) {
	want := specify(t)
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(document, want) {
		t.Error("openapi.json is not that of the table and the types; run: make generate")
	}
}

// specify writes the document.
func specify(t *testing.T) []byte {
	t.Helper()
	code, err := openapi.Read("../../apitype", "../../apitype/work", "../../apitype/admin", "../../wire", "../../job", "../../stats", "../../access", "../../operation", "../../failures", "../../source")
	if err != nil {
		t.Fatal(err)
	}
	var statuses []string
	for _, s := range job.Statuses() {
		statuses = append(statuses, string(s))
	}
	code.SetValues(job.Status(""), statuses...)
	code.SetValues(operation.Skip("")) // also the status of the job

	site, _ := newSite(t, web.Engine{})
	var table []openapi.Endpoint
	for _, e := range New(site, nil, time.Now()).Endpoints(nil) {
		table = append(table, specified(t, e))
	}
	info := openapi.Info{
		Title: "Redrive", Version: "1",
		Description: "Background jobs: why they fail, and how to run them again. Paths are below the base path of the dashboard, if it has one. " +
			"Durations in requests are written 30s, 2m, 1h30m, 7d or as in ISO 8601.",
	}
	data, err := openapi.Write(info, table, apitype.Problem{}, code)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// specified is an endpoint as the document tells it.
func specified(t *testing.T, e Endpoint) openapi.Endpoint {
	t.Helper()
	says := openapi.Endpoint{
		Method: e.Method, Path: e.Path, Says: e.Says, Permission: string(e.Need), Open: e.Need == access.Public,
		Request: e.Request, Optional: optional(e.Request), Sends: e.Sends, Answers: e.Answers, Kind: e.Kind, Statuses: []int{http.StatusOK},
	}
	if e.Created {
		says.Statuses = append(says.Statuses, http.StatusCreated)
	}
	if e.Keyed {
		says.Headers = append(says.Headers, openapi.Parameter{
			Name: headerKey, Description: "Names the request, so that it can be sent again: the same key with the same content has no second effect.",
			Schema: openapi.Schema{Type: "string"},
		})
	}
	for _, name := range e.Parameters {
		p := openapi.Parameter{Name: name, Description: parameters[name], Schema: openapi.Schema{Type: "string"}}
		if p.Description == "" {
			t.Errorf("the parameter %s of %s has no description", name, e.Path)
		}
		if one, most := 1, maxLimit; name == "limit" {
			p.Schema = openapi.Schema{Type: "integer", Minimum: &one, Maximum: &most}
		}
		says.Parameters = append(says.Parameters, p)
	}
	return says
}

// optional reports whether a request may come without a body: everything that it can
// say may be left out.
func optional(request any) bool {
	switch request.(type) {
	case apitype.Nothing, work.PaceRequest, work.IgnoreRequest:
		return true
	}
	return false
}

// parameters says what the parameters of queries mean.
var parameters = func() map[string]string {
	all := map[string]string{
		"q":              "A filter as it is typed into the search field; of error groups, a text.",
		"after":          "The next of the previous page.",
		"limit":          "How many rows a page has; 50 without it.",
		"attempts_after": "The attempts_next of the previous page of attempts.",
		"original":       "1: the envelope exactly as it came; 0: in its current state.",
		"actor":          "Who acted.",
		"action":         "What they did, exactly or as a prefix with a star.",
		"subject":        "What they acted on.",
	}
	for _, q := range filter.Qualifiers() {
		if all[q.Name] == "" {
			all[q.Name] = "Narrows the list."
			if q.Example != "" {
				all[q.Name] = "Narrows the list in the same way as " + q.Example + " in a filter."
			}
		}
	}
	return all
}()
