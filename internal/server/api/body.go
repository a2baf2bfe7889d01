package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/retry"
	"redrive/internal/rules"
	"redrive/internal/server/web"
	"redrive/internal/wire"
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

// value makes a reader of a member out of its Go type.
func value[T any](to *T, want string) reader {
	return func(path string, raw json.RawMessage) error {
		if string(raw) == "null" || json.Unmarshal(raw, to) != nil {
			return wrongType(path, want, raw)
		}
		return whole(path, raw)
	}
}

// checked is value for what can be wrong in itself: problem says how, or nothing.
func checked[T any](to *T, want string, problem func(T) string) reader {
	return func(path string, raw json.RawMessage) error {
		if err := value(to, want)(path, raw); err != nil {
			return err
		}
		if p := problem(*to); p != "" {
			return &invalid.Error{Field: path, Problem: p}
		}
		return nil
	}
}

func traceID(to *string) reader {
	return checked(to, aString, func(id string) string {
		if id == "" || len(id) > job.MaxTraceID {
			return fmt.Sprintf("must have 1 to %d bytes", job.MaxTraceID)
		}
		return ""
	})
}

// bytesOf reads a value as it is, of at most limit bytes.
func bytesOf[T ~[]byte](to *T, limit int) reader {
	return func(path string, raw json.RawMessage) error {
		if len(raw) > limit {
			return web.FailIn(web.TooLarge, path, fmt.Sprintf("%d bytes, at most %d are kept", len(raw), limit))
		}
		*to = T(raw)
		return nil
	}
}

func payload(to *[]byte) reader { return bytesOf(to, job.MaxPayload) }

func meta(to *json.RawMessage) reader {
	return func(path string, raw json.RawMessage) error {
		if err := bytesOf(to, job.MaxMeta)(path, raw); err != nil {
			return err
		}
		return members(path, raw, func(string, string, json.RawMessage) error { return nil })
	}
}

func policy(to *retry.Patch) reader {
	return func(path string, raw json.RawMessage) error {
		var err error
		if first(raw) != '"' { // no name of a policy: each field once
			err = members(path, raw, func(_, path string, raw json.RawMessage) error { return whole(path, raw) })
		}
		if err == nil {
			*to, err = wire.DecodePatch(raw, wire.ParseDuration)
			err = within(path, err)
		}
		return err
	}
}

func positive(to *time.Duration) reader {
	return func(path string, raw json.RawMessage) error {
		err := duration(to)(path, raw)
		if err == nil && *to <= 0 {
			err = &invalid.Error{Field: path, Problem: "must be longer than zero"}
		}
		return err
	}
}

// wait reads a duration that begins now.
func wait(to *time.Time) reader {
	return func(path string, raw json.RawMessage) error {
		var d time.Duration
		err := duration(&d)(path, raw)
		*to = time.Now().Add(d)
		return err
	}
}

func duration(to *time.Duration) reader {
	return func(path string, raw json.RawMessage) (err error) {
		var s string
		if err := value(&s, `a duration in quotes, as "PT5M"`)(path, raw); err != nil {
			return err
		}
		if *to, err = wire.ParseDuration(s); err != nil {
			return &invalid.Error{Field: path, Problem: err.Error()}
		}
		return nil
	}
}

// rfc3339 is the shape of a time. Package time takes a comma, an hour of one
// digit and offsets of a day as well.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func moment(to *time.Time) reader {
	return func(path string, raw json.RawMessage) error {
		var s string
		if err := value(&s, "a time in quotes")(path, raw); err != nil {
			return err
		}
		t, err := time.Parse(time.RFC3339, s)
		if err != nil || !rfc3339.MatchString(s) {
			return &invalid.Error{Field: path, Problem: fmt.Sprintf("%q is not a time as 2026-01-31T15:04:05Z (RFC 3339)", clip.Text(s, 64))}
		}
		if year := t.UTC().Year(); year < 0 || year > 9999 {
			return &invalid.Error{Field: path, Problem: fmt.Sprintf("%q is not within the years 0 to 9999 in UTC", s)}
		}
		*to = t
		return nil
	}
}

// times are what a request says about when its job may run.
type times struct{ runAt, delay, expiresAt, expiresIn time.Time }

// set checks the times against each other and hands them to the job.
func (t times) set(j *job.Job, now time.Time) error {
	switch {
	case !t.runAt.IsZero() && !t.delay.IsZero():
		return &invalid.Error{Field: "delay", Problem: "cannot stand beside run_at; send one of them"}
	case !t.expiresAt.IsZero() && !t.expiresIn.IsZero():
		return &invalid.Error{Field: "expires_in", Problem: "cannot stand beside expires_at; send one of them"}
	}
	j.RunAt, j.ExpiresAt = later(t.runAt, t.delay), later(t.expiresAt, t.expiresIn)
	field := "expires_at"
	if t.expiresAt.IsZero() {
		field = "expires_in"
	}
	if from := later(j.RunAt, now); !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(from) {
		return &invalid.Error{Field: field, Problem: fmt.Sprintf(
			"the job would expire at %s, not after %s, when it may run: it could never run", wire.FormatTime(j.ExpiresAt), wire.FormatTime(from))}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
