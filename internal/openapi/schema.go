package openapi

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"redrive/internal/apitype"
)

// Schema is a JSON schema.
type Schema struct {
	Ref         string   `json:"$ref,omitempty"`
	Description string   `json:"description,omitempty"`
	Type        any      `json:"type,omitempty"` // a name, or several
	Format      string   `json:"format,omitempty"`
	Pattern     string   `json:"pattern,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Minimum     *int     `json:"minimum,omitempty"`
	Maximum     *int     `json:"maximum,omitempty"`
	AnyOf       []Schema `json:"anyOf,omitempty"`
	Items       *Schema  `json:"items,omitempty"`
	Properties  Ordered  `json:"properties,omitempty"`
	Required    []string `json:"required,omitempty"`

	AdditionalProperties any `json:"additionalProperties,omitempty"` // false, or a schema
}

// isoDuration is a duration of an answer. The format "duration" of JSON Schema has no
// fractions of seconds.
const isoDuration = `^P(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?$`

const refs = "#/components/schemas/"

// schema is that of a type. An input is a body of a request.
func (w *writer) schema(t reflect.Type, input bool) Schema {
	// Types that write themselves as JSON, so that their Go kind says nothing of what is sent.
	switch reflect.Zero(t).Interface().(type) {
	case apitype.Time:
		return Schema{Type: "string", Format: "date-time"}
	case apitype.Duration:
		// A request may write a duration in several ways, as "30s" or "PT30S"; an answer has
		// one.
		if input {
			return Schema{Type: "string"}
		}
		return Schema{Type: "string", Pattern: isoDuration}
	// Any JSON.
	case apitype.Payload:
		return Schema{}
	case apitype.Meta, json.RawMessage:
		return Schema{Type: "object"}
	case apitype.PolicyPatch:
		return Schema{Type: []string{"string", "object"}}
	}

	switch t.Kind() {
	case reflect.Pointer:
		return w.schema(t.Elem(), input)
	case reflect.Struct:
		return w.object(t, input)
	case reflect.Slice:
		items := w.schema(t.Elem(), input)
		return Schema{Type: "array", Items: &items}
	case reflect.Map:
		return Schema{Type: "object", AdditionalProperties: w.schema(t.Elem(), input)}
	case reflect.String:
		// A type of texts that has constants takes no other values.
		return Schema{Type: "string", Enum: w.code.constants[t.String()]}
	case reflect.Bool:
		return Schema{Type: "boolean"}
	case reflect.Int:
		return Schema{Type: "integer"}
	case reflect.Int64:
		return Schema{Type: "integer", Format: "int64"}
	case reflect.Float64:
		return Schema{Type: "number"}
	case reflect.Interface:
		return Schema{}
	}

	w.err = fmt.Errorf("there is no schema for %s", t)

	return Schema{}
}

// object is a reference to the schema of a struct, which is written the first time.
func (w *writer) object(t reflect.Type, input bool) Schema {
	name := t.Name()
	reference := Schema{Ref: refs + name}

	// A schema has no package in its name, so two types of the same name would be mixed up.
	if was, ok := w.written[name]; ok {
		if was != t {
			w.err = fmt.Errorf("%s and %s have one name", was, t)
		}
		return reference
	}

	// The type counts as written before its fields are read: a field may be of the same type.
	w.written[name] = t

	s := Schema{Type: "object", Description: w.code.comments[t.String()]}
	for _, m := range apitype.Members(t) {
		property := w.schema(m.Type, input)
		property.Description = w.code.ofField(t, m.Index)

		// A field without a comment would be one that the document does not explain.
		if property.Description == "" {
			w.err = fmt.Errorf("%s has no comment for %s", t, m.Name)
		}

		// The value can be null: the type "string" becomes ["string", "null"].
		if m.Tag.Get("schema") == "nullable" {
			property.Type = []string{property.Type.(string), "null"}
		}

		s.Properties = append(s.Properties, Named{m.Name, property})
		if !m.Optional() {
			s.Required = append(s.Required, m.Name)
		}
	}

	// The API refuses unknown members of a request. An answer can get more of them later.
	if input {
		s.AdditionalProperties = false
	}

	w.schemas[name] = s

	return reference
}

// Code is what the source text of packages says of their types.
type Code struct {
	comments  map[string]string   // by "package.Type" and "package.Type.Field"
	constants map[string][]string // the values of texts, by "package.Type"
}

// Read reads the packages in some folders.
func Read(folders ...string) (Code, error) {
	c := Code{map[string]string{}, map[string][]string{}}
	for _, folder := range folders {
		names, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return c, err
		}

		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}

			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				return c, err
			}

			c.add(file)
		}
	}

	return c, nil
}

// SetValues says which values a type of texts has, where its constants are not all;
// none: it may have any.
func (c Code) SetValues(of any, values ...string) {
	c.constants[reflect.TypeOf(of).String()] = values
}

// add adds what a file says.
func (c Code) add(file *ast.File) {
	for _, d := range file.Decls {
		declared, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}

		for _, spec := range declared.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				c.addType(file.Name.Name+"."+spec.Name.Name, declared.Doc, spec.Type)
			case *ast.ValueSpec:
				if typ, ok := spec.Type.(*ast.Ident); ok && declared.Tok == token.CONST {
					c.addConstants(file.Name.Name+"."+typ.Name, spec.Values)
				}
			}
		}
	}
}

// addType adds the comments of a type and of its fields: those above, or else behind.
func (c Code) addType(name string, doc *ast.CommentGroup, typ ast.Expr) {
	c.comments[name] = folded(doc)

	object, ok := typ.(*ast.StructType)
	if !ok {
		return
	}

	for _, field := range object.Fields.List {
		text := folded(field.Doc)
		if text == "" {
			text = folded(field.Comment)
		}

		for _, n := range field.Names {
			c.comments[name+"."+n.Name] = text
		}
	}
}

// addConstants adds the values of a type that are written as texts.
func (c Code) addConstants(typ string, values []ast.Expr) {
	for _, value := range values {
		// A constant that is computed, or is a number, is no value of a text.
		literal, ok := value.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}

		if text, err := strconv.Unquote(literal.Value); err == nil && text != "" {
			c.constants[typ] = append(c.constants[typ], text)
		}
	}
}

// folded is a comment on one line.
func folded(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// ofField is the comment of a field that a type has itself or through structs that it
// embeds.
func (c Code) ofField(t reflect.Type, index []int) string {
	last := len(index) - 1
	for _, i := range index[:last] {
		t = t.Field(i).Type
	}

	return c.comments[t.String()+"."+t.Field(index[last]).Name]
}
