package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const documentPath = "/api/v1/openapi.json"

// specification is the OpenAPI document that a dashboard sends.
type specification struct {
	t        *testing.T
	document map[string]any
	compiler *jsonschema.Compiler
}

func specificationOf(t *testing.T, text string) *specification {
	t.Helper()
	read, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	s := &specification{t, read.(map[string]any), jsonschema.NewCompiler()}
	s.compiler.DefaultDraft(jsonschema.Draft2020)
	s.compiler.AssertFormat()
	for _, schema := range s.at(s.document, "components", "schemas") {
		schema.(map[string]any)["additionalProperties"] = false // what an answer may have in a later version, it has not yet
	}
	if err := s.compiler.AddResource("openapi.json", s.document); err != nil {
		t.Fatal(err)
	}
	return s
}

// at is the object that is reached through the members with some names; nil when there is none.
func (s *specification) at(object map[string]any, names ...string) map[string]any {
	for _, name := range names {
		object, _ = object[name].(map[string]any)
	}
	return object
}

// paths are the methods and paths of the document, as the router writes them.
func (s *specification) paths() (all []string) {
	for path, methods := range s.at(s.document, "paths") {
		path = strings.NewReplacer("{", ":", "}", "").Replace(path)
		for method := range methods.(map[string]any) {
			all = append(all, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(all)
	return all
}

// template is the path of the document that a request goes to: the one with the most
// parts that are the same.
func (s *specification) template(method, path string) (best string) {
	parts, most := strings.Split(path, "/"), -1
	for template, methods := range s.at(s.document, "paths") {
		of := strings.Split(template, "/")
		if len(of) != len(parts) || s.at(methods.(map[string]any), strings.ToLower(method)) == nil {
			continue
		}
		same := 0
		for i, part := range of {
			switch {
			case part == parts[i]:
				same++
			case !strings.HasPrefix(part, "{"):
				same = -len(of)
			}
		}
		if same > most {
			best, most = template, same
		}
	}
	return best
}

// check fails when a text does not have the schema at a place of the document.
func (s *specification) check(what, text string, place ...string) {
	s.t.Helper()
	for i, part := range place {
		place[i] = url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	schema, err := s.compiler.Compile("openapi.json#/" + strings.Join(place, "/"))
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		s.t.Errorf("%s is not as the document says: %v\n%.500s", what, err, text)
	}
}

// A program that was made from the document can call every route, and there is no route
// that it does not know.
func TestOpenAPI_HasTheRoutesThatThereAre(t *testing.T) {
	h := start(t)
	doc := specificationOf(t, h.get(documentPath).want(t, http.StatusOK).body)
	var routes []string
	for _, r := range h.server().echo.Routes() {
		if strings.HasPrefix(r.Path, "/api/") || h.server().IsFile(r.Path) {
			if r.Method != http.MethodHead { // which is that of GET
				routes = append(routes, r.Method+" "+r.Path)
			}
		}
	}
	slices.Sort(routes)
	if got := doc.paths(); !slices.Equal(got, routes) {
		t.Errorf("the document has\n%s\nand the router\n%s", strings.Join(got, "\n"), strings.Join(routes, "\n"))
	}
}

// Every answer of a seeded dashboard has the schema that the document says for its status,
// and so has every body that it accepts.
func TestOpenAPI_IsTrueOfRealAnswers(t *testing.T) {
	all := exchanges(t)
	i := slices.IndexFunc(all, func(e exchange) bool { return e.path == documentPath })
	doc := specificationOf(t, all[i].body)
	seen := map[string]bool{}
	for _, e := range all {
		path, _, _ := strings.Cut(e.path, "?")
		method, what := strings.ToLower(e.method), fmt.Sprintf("%s %s: %d", e.method, e.path, e.StatusCode)
		template := doc.template(method, path)
		if template == "" {
			continue // there is no such route
		}
		operation := doc.at(doc.document, "paths", template, method)
		status := fmt.Sprint(e.StatusCode)
		if doc.at(operation, "responses", status) == nil {
			if e.StatusCode < http.StatusBadRequest {
				t.Errorf("%s: the document does not know the status", what)
			}
			status = "default"
		}
		kind, _, _ := strings.Cut(e.Header.Get("Content-Type"), ";")
		if doc.at(operation, "responses", status, "content", kind) == nil {
			t.Errorf("%s: the document does not know %s", what, kind)
			continue
		}
		seen[e.method+" "+template+" "+status] = true
		if kind == "application/json" {
			doc.check(what, e.body, "paths", template, method, "responses", status, "content", kind, "schema")
		}
		if e.StatusCode < http.StatusBadRequest && json.Valid([]byte(e.sent)) { // also an envelope that is no JSON is taken
			doc.check(what+" for its body", e.sent, "paths", template, method, "requestBody", "content", "application/json", "schema")
		}
	}
	for _, route := range doc.paths() {
		method, path, _ := strings.Cut(route, " ")
		template := path
		for _, part := range strings.Split(path, "/") {
			if name, ok := strings.CutPrefix(part, ":"); ok {
				template = strings.Replace(template, part, "{"+name+"}", 1)
			}
		}
		if !slices.ContainsFunc([]string{"200", "201", "default"}, func(s string) bool { return seen[method+" "+template+" "+s] }) {
			t.Errorf("nothing was asked of %s", route)
		}
	}
}

// A schema that takes anything would be true of every answer.
func TestOpenAPI_FindsWhatItDoesNotSay(t *testing.T) {
	h := start(t)
	doc := specificationOf(t, h.get(documentPath).want(t, http.StatusOK).body)
	schema, err := doc.compiler.Compile("openapi.json#/components/schemas/JobAnswer")
	if err != nil {
		t.Fatal(err)
	}
	id := h.dead()
	text := h.post("/api/v1/jobs/"+id+"/replay", `{"run":1}`).want(t, http.StatusOK).body
	for _, change := range [][2]string{{`"run":2`, `"run":"2"`}, {`"run":2,`, ``}, {`"status":"`, `"status":"x`}, {`"run":2`, `"run":2,"more":1`}} {
		changed := bytes.Replace([]byte(text), []byte(change[0]), []byte(change[1]), 1)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(changed))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(value) == nil {
			t.Errorf("%s in place of %s is taken", change[1], change[0])
		}
	}
}
