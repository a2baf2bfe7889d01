package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"unicode/utf8"

	"redrive/internal/envelope"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/rawjson"
)

// Rewrite is the body of a job with a payload that a user edited as it was shown,
// and where it differs from the shown one; nil when it does not. Hidden values are
// put back. A hidden value is never compared with what was typed in its place: the
// typed text differs from the mask, whether the value was guessed or not.
func (v *View) Rewrite(j job.Job, edited []byte) (*job.Body, []string, error) {
	if problem := notJSON(edited); problem != "" && json.Valid(j.Payload) {
		return nil, nil, &invalid.Error{Field: "payload", Problem: problem}
	}

	redactor := v.redactor.For(j.Type)

	shown := redactor.Payload(j.Payload)
	if SameJSON(edited, shown) {
		return nil, nil, nil
	}

	merged, err := redactor.Merge(edited, j.Payload)
	if err != nil {
		return nil, nil, &invalid.Error{Field: "payload", Problem: err.Error()}
	}

	b, err := rewrite(j, merged)
	if err != nil {
		return nil, nil, err
	}

	if b.Type != j.Type {
		return b, []string{"$"}, nil
	}

	return b, changedPaths(shown, edited), nil
}

// rewrite is the body of a job with another payload. An envelope gets the payload
// as its data; one that could not be read is read again.
func rewrite(j job.Job, edited []byte) (*job.Body, error) {
	wrong := func(problem string) error { return &invalid.Error{Field: "payload", Problem: problem} }

	b := j.Body()
	isJSON := json.Valid(j.Payload)
	switch {
	case len(edited) > job.MaxPayload:
		return nil, wrong(fmt.Sprintf("has %d bytes; the maximum is %d", len(edited), job.MaxPayload))
	case j.Type == envelope.Unread && j.Envelope != nil:
		e, poison := envelope.Parse(edited)
		if poison != nil {
			return nil, wrong("still cannot be read as an envelope: " + poison.Problem)
		}

		return &job.Body{Type: e.URN, TraceID: e.TraceID, MessageID: e.ID, Meta: e.Meta, Payload: e.Data, Envelope: edited}, nil
	case isJSON || j.Envelope != nil:
		if problem := notJSON(edited); problem != "" {
			return nil, wrong(problem)
		}

		edited = laidOut(edited, j.Payload)
	}

	// An envelope is kept as it came but for its data, and has to be readable afterwards.
	b.Payload = edited
	if j.Envelope != nil {
		given, ok := envelope.WithData(j.Envelope, edited)
		if !ok {
			return nil, wrong("cannot be changed, because it cannot be put back into its envelope")
		}

		e, poison := envelope.Parse(given)
		if poison != nil {
			return nil, wrong("does not fit into the envelope: " + poison.Problem)
		}

		b.Payload, b.Envelope = e.Data, given
	}

	return &b, nil
}

// laidOut is JSON in the layout of the original: in one line if that was, and
// byte for byte the original where only the layout differs. Nothing but white
// space between tokens is ever touched.
func laidOut(edited, original []byte) []byte {
	one, was := compact(edited), compact(original)
	switch {
	case bytes.Equal(one, was):
		return original
	case bytes.Equal(was, original):
		return one
	}

	return edited
}

// SameJSON reports whether two documents differ in their layout at most, or are
// the same where they are no JSON.
func SameJSON(a, b []byte) bool { return bytes.Equal(compact(a), compact(b)) }

func compact(data []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return data
	}

	return b.Bytes()
}

// notJSON says why a text is not one JSON value, and in which line, or nothing.
func notJSON(text []byte) string {
	if !utf8.Valid(text) {
		return "is not valid UTF-8"
	}

	if rawjson.Depth(text) > job.MaxDepth {
		return fmt.Sprintf("is nested deeper than %d levels", job.MaxDepth)
	}

	err := json.Unmarshal(text, new(json.RawMessage))
	if at := new(json.SyntaxError); errors.As(err, &at) {
		line := 1 + bytes.Count(text[:min(max(0, int(at.Offset)-1), len(text))], []byte("\n"))
		return fmt.Sprintf("is not JSON: %v, in line %d", err, line)
	}

	if err != nil {
		return "is not JSON: " + err.Error()
	}

	if half := rawjson.HalfPair(text); half != "" {
		return fmt.Sprintf("holds half of a surrogate pair, %s, which is not a character", half)
	}

	return ""
}

// maxPaths bounds how many places of a payload are named.
const maxPaths = 20

// changedPaths names the places at which two payloads differ, as "$.card.last4":
// what the audit log may know of a change. Texts differ as a whole.
func changedPaths(was, is []byte) []string {
	before, ok1 := decoded(was)
	after, ok2 := decoded(is)
	if !ok1 || !ok2 {
		return []string{"$"}
	}

	paths := differing("$", before, after)
	if len(paths) == 0 { // a member that is written twice, or the layout
		return []string{"$"}
	}

	if more := len(paths) - maxPaths; more > 0 {
		paths = append(paths[:maxPaths], fmt.Sprintf("and %d more", more))
	}

	return paths
}

func decoded(data []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

func differing(path string, a, b any) []string {
	switch was := a.(type) {
	case map[string]any:
		if is, ok := b.(map[string]any); ok {
			return differingMembers(path, was, is)
		}
	case []any:
		if is, ok := b.([]any); ok {
			return differingItems(path, was, is)
		}
	}

	if reflect.DeepEqual(a, b) {
		return nil
	}

	return []string{path}
}

func differingMembers(path string, was, is map[string]any) (all []string) {
	names := maps.Clone(was)
	maps.Copy(names, is)

	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := path + member(name)

		a, before := was[name]
		b, after := is[name]
		switch {
		case before && after:
			all = append(all, differing(at, a, b)...)
		default:
			all = append(all, at)
		}
	}

	return all
}

func differingItems(path string, was, is []any) (all []string) {
	for i := range max(len(was), len(is)) {
		at := fmt.Sprintf("%s[%d]", path, i)
		if i < len(was) && i < len(is) {
			all = append(all, differing(at, was[i], is[i])...)
		} else {
			all = append(all, at)
		}
	}

	return all
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// member is a step of a path into an object.
func member(name string) string {
	if plainName.MatchString(name) {
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}
