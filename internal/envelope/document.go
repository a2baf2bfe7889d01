package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/rawjson"
)

// document is an object, and where its members lie in its bytes.
type document struct {
	raw     []byte
	members []member
}

// member is one member of an object: its name begins at from, its value is
// [value, to).
type member struct {
	name            string
	from, value, to int
}

// value is the bytes of a member's value, or nil.
func (d document) value(name string) []byte {
	if m, ok := d.find(name); ok {
		return d.raw[m.value:m.to:m.to]
	}
	return nil
}

func (d document) find(name string) (member, bool) {
	for _, m := range d.members {
		if m.name == name {
			return m, true
		}
	}
	return member{}, false
}

// open reads an envelope, taken out of its frame, or says why it cannot be
// read.
func open(raw []byte) (d document, problem string) {
	if problem = check(raw); problem != "" {
		return d, problem
	}
	d = inside(raw)
	if body := d.value("body"); string(d.value("__bq_frame")) == "1" && len(body) > 0 && body[0] == '"' {
		framed := []byte(unquote(body))
		if problem = check(framed); problem != "" {
			return d, "in the body of its frame: " + problem
		}
		d = inside(framed)
	}
	return d, ""
}

// check says why data cannot be read exactly as one JSON object, or nothing.
func check(data []byte) string {
	if !utf8.Valid(data) {
		return "it is not valid UTF-8"
	}
	if rawjson.Depth(data) > job.MaxDepth {
		return fmt.Sprintf("it is nested deeper than %d levels", job.MaxDepth)
	}
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		if at := new(json.SyntaxError); errors.As(err, &at) {
			return fmt.Sprintf("it is not JSON: %v, at byte %d", err, at.Offset)
		}
		return "it is not JSON: " + err.Error()
	}
	if data[rawjson.Space(data, 0)] != '{' {
		return "it is JSON, but not an object: " + clip.Text(string(bytes.TrimSpace(data)), 64)
	}
	if half := rawjson.HalfPair(data); half != "" {
		return fmt.Sprintf("it holds half of a surrogate pair, %s, which is no character", half)
	}
	if name, ok := new(inspection).repeated(data); ok {
		return fmt.Sprintf("the member %q is written twice in one object", clip.Text(name, 64))
	}
	return ""
}

// inspection looks for objects that name a member twice.
type inspection struct {
	open []map[string]bool // for each open object its names, for each open array nil
	name bool              // the next string is a name
}

// repeated returns the first name that stands twice in one object.
func (n *inspection) repeated(data []byte) (name string, ok bool) {
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			end := rawjson.AfterString(data, i)
			if n.name && !n.first(data[i:end]) {
				return unquote(data[i:end]), true
			}
			n.name, i = false, end-1
		case '{':
			n.open, n.name = append(n.open, map[string]bool{}), true
		case '[':
			n.open, n.name = append(n.open, nil), false
		case '}', ']':
			n.open, n.name = n.open[:len(n.open)-1], false
		case ',':
			n.name = n.open[len(n.open)-1] != nil
		}
	}
	return "", false
}

// first notes a name of the innermost object, and reports whether it is new.
func (n *inspection) first(quoted []byte) bool {
	name, names := unquote(quoted), n.open[len(n.open)-1]
	known := names[name]
	names[name] = true
	return !known
}

// inside lists the members of the object that data is.
func inside(data []byte) document {
	d := document{raw: data}
	for i := rawjson.Space(data, rawjson.Space(data, 0)+1); data[i] != '}'; i = rawjson.Space(data, i) {
		m := member{from: i}
		end := rawjson.AfterString(data, i)
		m.name = unquote(data[i:end])
		m.value = rawjson.Space(data, rawjson.Space(data, end)+1)
		m.to = rawjson.AfterValue(data, m.value)
		d.members = append(d.members, m)
		if i = rawjson.Space(data, m.to); data[i] == ',' {
			i++
		}
	}
	return d
}

func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil { // unreachable: it is a string of valid JSON
		panic(fmt.Sprintf("envelope.unquote(%q): %v", quoted, err))
	}
	return s
}
