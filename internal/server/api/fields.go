package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/rules"
	"redrive/internal/server/web"
)

// checkJSON returns a failure of kind malformed unless data is one JSON value.
func checkJSON(data []byte) error {
	if !utf8.Valid(data) {
		return web.Fail(web.Malformed, "the body is not valid UTF-8")
	}
	if rawjson.Depth(data) > job.MaxDepth {
		return web.Fail(web.Malformed, fmt.Sprintf("the body is nested deeper than %d levels", job.MaxDepth))
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		var at *json.SyntaxError
		if errors.As(err, &at) {
			return web.Fail(web.Malformed, fmt.Sprintf("the body is not JSON: %v, at byte %d", err, at.Offset))
		}
		return web.Fail(web.Malformed, "the body is not JSON: "+err.Error())
	}
	return nil
}

// The functions below split valid JSON without copying or changing a byte.

// next returns the index of the next byte that is neither space nor one of the
// separators between parts.
func next(data []byte, i int) int {
	for i < len(data) {
		switch data[i] {
		case ' ', '\t', '\r', '\n', ',', ':':
			i++
			continue
		}
		break
	}
	return i
}

// parts yields the direct parts of an object (names and values in turn) or of
// an array.
func parts(data []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		for i := next(data, next(data, 0)+1); i < len(data) && data[i] != '}' && data[i] != ']'; {
			end := rawjson.AfterValue(data, i)
			if !yield(json.RawMessage(data[i:end:end])) {
				return
			}
			i = next(data, end)
		}
	}
}

// first is the byte that tells the kind of a value.
func first(data []byte) byte {
	if i := next(data, 0); i < len(data) {
		return data[i]
	}
	return 0
}

// fields reads an object whose members are known, each at most once. path is
// where the object stands, empty for the body itself.
type fields map[string]reader

// reader reads a member; path is where it stands.
type reader func(path string, raw json.RawMessage) error

func (f fields) read(path string, data json.RawMessage) error {
	return members(path, data, func(name, path string, raw json.RawMessage) error {
		read, ok := f[name]
		if !ok {
			return &invalid.Error{Field: path, Problem: "no such field"}
		}
		return read(path, raw)
	})
}

// members calls visit for each member of an object.
func members(path string, data json.RawMessage, visit func(name, path string, raw json.RawMessage) error) error {
	if first(data) != '{' {
		return wrongType(path, "an object", data)
	}
	seen := map[string]bool{}
	var name string
	isName := false
	for part := range parts(data) {
		if isName = !isName; isName {
			if err := json.Unmarshal(part, &name); err != nil { // unreachable: the document is valid
				return err
			}
			continue
		}
		at := join(path, clip.Text(name, 64))
		if seen[name] {
			return web.FailIn(web.Malformed, at, "is written twice")
		}
		seen[name] = true
		if err := visit(name, at, part); err != nil {
			return err
		}
	}
	return nil
}

// whole refuses text with half of a surrogate pair: it is no character, and
// would silently become another one.
func whole(path string, raw json.RawMessage) error {
	if half := rawjson.HalfPair(raw); half != "" {
		return &invalid.Error{Field: path, Problem: fmt.Sprintf("holds half of a surrogate pair, %s, which is no character", half)}
	}
	return nil
}

func wrongType(path, want string, raw json.RawMessage) error {
	if path == "" {
		path = "body"
	}
	return &invalid.Error{Field: path, Problem: "must be " + want + ", not " + clip.Text(string(raw), 64)}
}

// within says where an object stands in which a field is wrong.
func within(path string, err error) error {
	var wrong *invalid.Error
	if errors.As(err, &wrong) {
		return &invalid.Error{Field: join(path, wrong.Field), Problem: wrong.Problem}
	}
	if ruled := new(rules.Refused); errors.As(err, &ruled) {
		return web.RefusedBy(path, ruled)
	}
	return err
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// readBody reads a JSON document of at most limit bytes. What it returns is valid
// JSON in valid UTF-8, no deeper than job.MaxDepth. Forms are refused: a page
// elsewhere can send those without being asked.
func readBody(c echo.Context, limit int64) (json.RawMessage, error) {
	if !isJSON(c.Request()) {
		return nil, web.Fail(web.MediaType, "send the body with Content-Type: application/json")
	}
	data, err := web.Received(c, limit)
	if err != nil {
		return nil, err
	}
	return data, checkJSON(data)
}

// readSmall reads a small body.
func readSmall(c echo.Context, f fields) error {
	data, err := readBody(c, web.MaxSmall)
	if err != nil {
		return err
	}
	return f.read("", data)
}

// readOptional reads a small body that may be missing: then it is an empty object.
func readOptional(c echo.Context, f fields) error {
	if r := c.Request(); r.ContentLength == 0 && (r.Header.Get("Content-Type") == "" || isJSON(r)) {
		return nil
	}
	return readSmall(c, f)
}

func isJSON(r *http.Request) bool { return web.ContentType(r) == "application/json" }
