package babel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"redrive/internal/job"
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
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		if at := new(json.SyntaxError); errors.As(err, &at) {
			return fmt.Sprintf("it is not JSON: %v, at byte %d", err, at.Offset)
		}
		return "it is not JSON: " + err.Error()
	}
	if data[space(data, 0)] != '{' {
		return "it is JSON, but not an object: " + job.Clip(string(bytes.TrimSpace(data)), 64)
	}
	return new(inspection).of(data)
}

// inspection looks for what is valid JSON and still cannot be read exactly.
type inspection struct {
	open []map[string]bool // for each open object its names, for each open array nil
	name bool              // the next string is a name
}

func (n *inspection) of(data []byte) (problem string) {
	for i := 0; i < len(data) && problem == ""; i++ {
		switch data[i] {
		case '"':
			end := afterString(data, i)
			problem = n.text(data[i:end])
			i = end - 1
		case '{', '[':
			problem = n.enter(data[i] == '{')
		case '}', ']':
			n.open, n.name = n.open[:len(n.open)-1], false
		case ',':
			n.name = n.open[len(n.open)-1] != nil
		}
	}
	return problem
}

func (n *inspection) enter(object bool) string {
	var names map[string]bool
	if object {
		names = map[string]bool{}
	}
	n.open, n.name = append(n.open, names), object
	if len(n.open) > job.MaxDepth {
		return fmt.Sprintf("it is nested deeper than %d levels", job.MaxDepth)
	}
	return ""
}

func (n *inspection) text(quoted []byte) string {
	if half := halfPair(quoted); half != "" {
		return fmt.Sprintf("it holds half of a surrogate pair, %s, which is no character", half)
	}
	if !n.name {
		return ""
	}
	n.name = false
	name, names := unquote(quoted), n.open[len(n.open)-1]
	if names[name] {
		return fmt.Sprintf("the member %q is written twice in one object", job.Clip(name, 64))
	}
	names[name] = true
	return ""
}

// halfPair returns the first \u escape that is half of a surrogate pair, or
// nothing.
func halfPair(quoted []byte) string {
	for i := bytes.IndexByte(quoted, '\\'); i >= 0 && i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		unit, next := escaped(quoted[i:]), escaped(quoted[min(i+6, len(quoted)):])
		switch {
		case utf16.DecodeRune(unit, next) != utf8.RuneError:
			i += 11
		case utf16.IsSurrogate(unit):
			return string(quoted[i : i+6])
		default:
			i++ // what is escaped may be a backslash
		}
	}
	return ""
}

// escaped is the UTF-16 unit with which a text begins, or zero.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil { // unreachable in valid JSON
		return 0
	}
	return rune(unit)
}

// The functions below find their way through valid JSON.

// inside lists the members of the object that data is.
func inside(data []byte) document {
	d := document{raw: data}
	for i := space(data, space(data, 0)+1); data[i] != '}'; i = space(data, i) {
		m := member{from: i}
		end := afterString(data, i)
		m.name = unquote(data[i:end])
		m.value = space(data, space(data, end)+1)
		m.to = afterValue(data, m.value)
		d.members = append(d.members, m)
		if i = space(data, m.to); data[i] == ',' {
			i++
		}
	}
	return d
}

// space returns the index of the first byte from i on that is no white space.
func space(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n') {
		i++
	}
	return i
}

// afterString returns the index after the string that begins at i.
func afterString(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// afterValue returns the index after the member's value that begins at i.
func afterValue(data []byte, i int) int {
	level := 0
	for ; ; i++ {
		switch data[i] {
		case '"':
			i = afterString(data, i) - 1
		case '{', '[':
			level++
		case '}', ']':
			if level--; level < 0 {
				return trim(data, i)
			}
		case ',':
			if level == 0 {
				return trim(data, i)
			}
		}
	}
}

// trim returns the index after the last byte before i that is no white space.
func trim(data []byte, i int) int { return len(bytes.TrimRight(data[:i], " \t\r\n")) }

func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil { // unreachable: it is a string of valid JSON
		panic(fmt.Sprintf("babel.unquote(%q): %v", quoted, err))
	}
	return s
}
