package openapi

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"

	"redrive/internal/apitype"
)

// The code below, as its comments and constants are read.
const source = `package openapi

// Color is one of few.
type Color string

const (
	Red   Color = "red"
	Green Color = "green"
	none  Color = ""
)

// Part is in others.
type Part struct {
	// How many there are.
	Count int64
}

// Thing is sent and answered.
type Thing struct {
	Part
	Name  string // What it is called.
	// What it looks like.
	Color Color
	// When it was made.
	At    apitype.Time
	// The others.
	Parts []Part
}

// Failed is an error.
type Failed struct {
	// What is wrong.
	Why *string
}
`

type Color string

type Part struct {
	Count int64 `json:"count"`
}

type Thing struct {
	Part
	Name  string       `json:"name"`
	Color Color        `json:"color,omitzero"`
	At    apitype.Time `json:"at,omitzero"`
	Parts []Part       `json:"parts" schema:"nullable"`
}

type Asked struct {
	Thing *Thing `json:"thing"`
}

type Failed struct {
	Why *string `json:"why,omitzero"`
}

func codeOf(t *testing.T, text string) Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "source.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	c := Code{map[string]string{}, map[string][]string{}}
	c.add(file)
	return c
}

func TestSchema_SaysWhatTheTypeAndItsCommentsSay(t *testing.T) {
	w := writer{code: codeOf(t, source), schemas: map[string]Schema{}, written: map[string]reflect.Type{}}
	got, err := json.Marshal([]any{w.schema(reflect.TypeFor[Thing](), false), w.schemas["Thing"]})
	if err != nil || w.err != nil {
		t.Fatal(err, w.err)
	}
	want := `[{"$ref":"#/components/schemas/Thing"},{"description":"Thing is sent and answered.","type":"object","properties":{` +
		`"count":{"description":"How many there are.","type":"integer","format":"int64"},` +
		`"name":{"description":"What it is called.","type":"string"},` +
		`"color":{"description":"What it looks like.","type":"string","enum":["red","green"]},` +
		`"at":{"description":"When it was made.","type":"string","format":"date-time"},` +
		`"parts":{"description":"The others.","type":["array","null"],"items":{"$ref":"#/components/schemas/Part"}}},` +
		`"required":["count","name","parts"]}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSchema_OfARequestRefusesOtherMembers(t *testing.T) {
	for input, want := range map[bool]any{true: false, false: nil} {
		w := writer{code: codeOf(t, source), schemas: map[string]Schema{}, written: map[string]reflect.Type{}}
		w.schema(reflect.TypeFor[Part](), input)
		if got := w.schemas["Part"].AdditionalProperties; got != want {
			t.Errorf("input %v: additional properties are %v", input, got)
		}
	}
}

func TestWrite_RefusesAMemberWithoutAComment(t *testing.T) {
	table := []Endpoint{{Method: "POST", Path: "/api/v1/things/:name", Request: Asked{}, Statuses: []int{200}, Answers: []any{Thing{}}}}
	if _, err := Write(Info{}, table, Failed{}, codeOf(t, source)); err == nil || !strings.Contains(err.Error(), "Asked has no comment for thing") {
		t.Errorf("the error is %v", err)
	}
	told := source + "\n// Asked asks.\ntype Asked struct {\n\t// The thing.\n\tThing *Thing\n}\n"
	text, err := Write(Info{}, table, Failed{}, codeOf(t, told))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"/api/v1/things/{name}"`, `"operationId": "postThingsByName"`, `"in": "path"`, `"default"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the document has no %s:\n%s", want, text)
		}
	}
}

// Comments behind a field count as those above it, and a text has the values of its constants.
func TestCode_ReadsBothKindsOfComments(t *testing.T) {
	c := codeOf(t, source)
	if got := c.comments["openapi.Thing.Name"]; got != "What it is called." {
		t.Errorf("the comment behind a field is %q", got)
	}
	c.SetValues(Color(""))
	if got := c.constants["openapi.Color"]; len(got) != 0 {
		t.Errorf("the values are %q although it may have any", got)
	}
}
