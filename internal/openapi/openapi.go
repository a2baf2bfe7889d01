// Package openapi writes an OpenAPI 3.1 document from a table of endpoints and the Go
// types of their bodies. It runs when the document is made, not in the program, which
// holds the document as a file.
//
// The types say what is in an object, by their fields and tags, and their comments say
// what it means: see [Code]. An object that is read with unknown members refused
// says so in its schema; an answer does not, so that it can get more members. A type is
// written once and named as in Go.
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// Document is an OpenAPI document.
type Document struct {
	OpenAPI    string                `json:"openapi"`
	Info       Info                  `json:"info"`
	Security   []map[string][]string `json:"security"`
	Paths      Ordered               `json:"paths"`
	Components Components            `json:"components"`
}

// Info says which API it is.
type Info struct {
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description"`
}

// Components are what the paths refer to.
type Components struct {
	Parameters      Ordered `json:"parameters"`
	Schemas         Ordered `json:"schemas"`
	SecuritySchemes Ordered `json:"securitySchemes"`
}

// Ordered is a JSON object whose members keep their order.
type Ordered []Named

// Named is a member of an Ordered.
type Named struct {
	Name  string
	Value any
}

// MarshalJSON writes the members in their order.
func (o Ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')

	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}

		name, err := json.Marshal(m.Name)
		if err != nil {
			return nil, err
		}

		value, err := json.Marshal(m.Value)
		if err != nil {
			return nil, err
		}

		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}

	b.WriteByte('}')

	return b.Bytes(), nil
}

// Endpoint is a route with what it reads and answers.
type Endpoint struct {
	Method     string
	Path       string      // with its parameters as :name
	Says       string      // a sentence without its full stop
	Permission string      // that a caller needs
	Open       bool        // without a login, too
	Parameters []Parameter // of the query
	Headers    []Parameter // of the request

	Request  any    // an empty value of the type of the body; nil: there is no body
	Optional bool   // the body may be missing
	Sends    string // a media type that the body may have beside JSON

	Statuses []int
	Answers  []any  // empty values of the types of the answers; nil: anything
	Kind     string // the media type of the answers; default: JSON
}

// Parameter is a parameter of the query, or a header. One name means the same everywhere.
type Parameter struct {
	Name        string
	Description string
	Schema      Schema
}

type operation struct {
	ID          string      `json:"operationId"`
	Tags        []string    `json:"tags"`
	Summary     string      `json:"summary"`
	Description string      `json:"description"`
	Security    *[]struct{} `json:"security,omitempty"`
	Parameters  []parameter `json:"parameters,omitempty"`
	Body        *body       `json:"requestBody,omitempty"`
	Responses   Ordered     `json:"responses"`
}

type parameter struct {
	Ref         string  `json:"$ref,omitempty"`
	Name        string  `json:"name,omitempty"`
	In          string  `json:"in,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Description string  `json:"description,omitempty"`
	Schema      *Schema `json:"schema,omitempty"`
}

type body struct {
	Required bool    `json:"required"`
	Content  Ordered `json:"content"`
}

type response struct {
	Description string  `json:"description"`
	Content     Ordered `json:"content"`
}

type content struct {
	Schema Schema `json:"schema"`
}

const jsonType = "application/json"

// Write writes the document of a table. The problem is an empty value of the type of
// every answer to a request that failed.
func Write(info Info, table []Endpoint, problem any, code Code) ([]byte, error) {
	w := writer{code: code, parameters: map[string]parameter{}, schemas: map[string]Schema{}, written: map[string]reflect.Type{}}

	// Every operation answers a failure with the same schema.
	failed := w.schema(reflect.TypeOf(problem), false)

	// Endpoints with one path and several methods share an entry of the document.
	paths := map[string]Ordered{}
	for _, e := range table {
		path := template(e.Path)
		paths[path] = append(paths[path], Named{strings.ToLower(e.Method), w.operation(e, failed)})
	}

	doc := Document{
		OpenAPI:  "3.1.0",
		Info:     info,
		Security: []map[string][]string{{"token": {}}},
		Paths:    sorted(paths),
		Components: Components{
			Parameters:      sorted(w.parameters),
			Schemas:         sorted(w.schemas),
			SecuritySchemes: Ordered{{"token", map[string]string{"type": "http", "scheme": "bearer"}}},
		},
	}

	// The writer goes on after an error, and the last one is reported here.
	if w.err != nil {
		return nil, w.err
	}

	var text bytes.Buffer
	e := json.NewEncoder(&text)

	// The document is read by people too: "<" stays as it is.
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(doc)

	return text.Bytes(), err
}

// sorted are members in the order of their names.
func sorted[T any](members map[string]T) Ordered {
	var all Ordered
	for name, value := range members {
		all = append(all, Named{name, value})
	}

	slices.SortFunc(all, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })

	return all
}

// template is a path as OpenAPI writes it: /jobs/{id}.
func template(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		// ":id" becomes "{id}".
		if name, ok := strings.CutPrefix(part, ":"); ok {
			parts[i] = "{" + name + "}"
		}
	}

	return strings.Join(parts, "/")
}

// writer gathers the parameters and the schemas of the types that occur.
type writer struct {
	code       Code
	parameters map[string]parameter // of queries
	schemas    map[string]Schema
	written    map[string]reflect.Type // by the names of their schemas
	err        error
}

// operation is one endpoint.
func (w *writer) operation(e Endpoint, failed Schema) operation {
	// The tag groups operations by the first part of the path: "/api/v1/jobs/:id/replay" has
	// "jobs", and "/api/v1/openapi.json" has "openapi".
	parts := strings.Split(strings.TrimPrefix(e.Path, "/api/v1"), "/")
	tag, _, _ := strings.Cut(parts[1], ".")

	o := operation{
		ID:          identifier(e.Method, parts[1:]),
		Tags:        []string{tag},
		Summary:     e.Says,
		Description: "Needs the permission " + e.Permission + ".",
	}

	// An empty list, unlike none, overrides the security of the whole document.
	if e.Open {
		o.Description, o.Security = "Needs no permission.", &[]struct{}{}
	}

	for _, part := range parts {
		if name, ok := strings.CutPrefix(part, ":"); ok {
			o.Parameters = append(o.Parameters, parameter{Name: name, In: "path", Required: true, Schema: &Schema{Type: "string"}})
		}
	}

	for _, p := range e.Parameters {
		o.Parameters = append(o.Parameters, w.shared(p, "query"))
	}

	for _, p := range e.Headers {
		o.Parameters = append(o.Parameters, w.shared(p, "header"))
	}

	if e.Request != nil {
		schema := w.schema(reflect.TypeOf(e.Request), true)
		o.Body = &body{Required: !e.Optional, Content: Ordered{{jsonType, content{schema}}}}

		// A body in another media type, such as lines of JSON, is described as a text.
		if e.Sends != "" {
			o.Body.Content = append(o.Body.Content, Named{e.Sends, content{Schema{Type: "string"}}})
		}
	}

	for _, status := range e.Statuses {
		o.Responses = append(o.Responses, Named{fmt.Sprint(status), w.response(e, status)})
	}

	o.Responses = append(o.Responses, Named{"default", response{"The request failed.", Ordered{{jsonType, content{failed}}}}})

	return o
}

// shared is a reference to a parameter that several endpoints have.
func (w *writer) shared(p Parameter, in string) parameter {
	w.parameters[p.Name] = parameter{Name: p.Name, In: in, Description: p.Description, Schema: &p.Schema}
	return parameter{Ref: "#/components/parameters/" + p.Name}
}

// response is an answer to a request that succeeded.
func (w *writer) response(e Endpoint, status int) response {
	r := response{Description: http.StatusText(status) + "."}

	var any []Schema
	for _, answer := range e.Answers {
		any = append(any, w.schema(reflect.TypeOf(answer), false))
	}

	// The kind can have a parameter: "text/csv; charset=utf-8". A file is described as a text,
	// and one of JSON lines names the schema of a line.
	media, _, _ := strings.Cut(e.Kind, ";")
	switch {
	case media != "" && media != jsonType:
		r.Content = Ordered{{media, content{Schema{Type: "string"}}}}
		if media != "text/csv" && len(any) == 1 {
			r.Description = "Lines of JSON, each with the schema " + strings.TrimPrefix(any[0].Ref, refs) + "."
		}
	case len(any) == 1:
		r.Content = Ordered{{jsonType, content{any[0]}}}
	default:
		r.Content = Ordered{{jsonType, content{Schema{AnyOf: any}}}}
	}

	return r
}

// identifier names an operation: getJobsByIdRate.
func identifier(method string, parts []string) string {
	id := strings.ToLower(method)
	for _, part := range parts {
		if name, ok := strings.CutPrefix(part, ":"); ok {
			part = "by-" + name
		}

		for word := range strings.FieldsFuncSeq(part, func(r rune) bool { return r == '-' || r == '.' }) {
			id += strings.ToUpper(word[:1]) + word[1:]
		}
	}

	return id
}
