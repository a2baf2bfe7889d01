package envelope

import (
	"bytes"
	"fmt"
	"slices"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/rawjson"
)

// document is an object, and where its members lie in its bytes.
type document struct {
	raw     []byte
	members []rawjson.Member
}

// inside lists the members of the object that data is.
func inside(data []byte) document {
	return document{data, slices.Collect(rawjson.Members(data))}
}

// value is the bytes of a member's value, or nil.
func (d document) value(name string) []byte {
	if m, ok := d.find(name); ok {
		return d.raw[m.Value:m.To:m.To]
	}
	return nil
}

func (d document) find(name string) (rawjson.Member, bool) {
	if i := d.index(name); i >= 0 {
		return d.members[i], true
	}
	return rawjson.Member{}, false
}

func (d document) index(name string) int {
	return slices.IndexFunc(d.members, func(m rawjson.Member) bool { return m.Name == name })
}

// open reads an envelope, taken out of its frame, or says why it cannot be
// read.
func open(raw []byte) (d document, problem string) {
	if problem = check(raw); problem != "" {
		return d, problem
	}
	d = inside(raw)
	if body := d.value("body"); string(d.value("__bq_frame")) == "1" && len(body) > 0 && body[0] == '"' {
		framed := []byte(rawjson.Text(body))
		if problem = check(framed); problem != "" {
			return d, "in the body of its frame: " + problem
		}
		d = inside(framed)
	}
	return d, ""
}

// check says why data cannot be read exactly as one JSON object, or nothing.
func check(data []byte) string {
	if problem := rawjson.Check(data, job.MaxDepth); problem != "" {
		return "it " + problem
	}
	if rawjson.Kind(data) != '{' {
		return "it is JSON, but not an object: " + clip.Text(string(bytes.TrimSpace(data)), 64)
	}
	if half := rawjson.HalfPair(data); half != "" {
		return fmt.Sprintf("it holds half of a surrogate pair, %s, which is no character", half)
	}
	if name, ok := rawjson.Repeated(data); ok {
		return fmt.Sprintf("the member %q is written twice in one object", clip.Text(name, 64))
	}
	return ""
}
