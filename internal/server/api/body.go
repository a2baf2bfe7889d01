package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

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

// The bodies of requests are read strictly: every member must be known and may
// occur once, and an error names the member that it is about. Values are passed
// on as the bytes that were received, so that no number and no string changes on
// its way to the database.

// checkJSON returns a failure of kind malformed unless data is one JSON value.
func checkJSON(data []byte) error {
	if problem := rawjson.Check(data, job.MaxDepth); problem != "" {
		return web.Fail(web.Malformed, "the body "+problem)
	}
	return nil
}

// fields reads an object whose members are known, each at most once.
type fields map[string]reader

// A reader reads the value of a member; path is where the member is in the body.
type reader func(path string, raw json.RawMessage) error

// read reads the object at path, which is empty for the body itself. A member
// that is not known is an error: it may be a misspelt one, and ignoring that
// would do something else than was asked for.
func (f fields) read(path string, data json.RawMessage) error {
	return members(path, data, func(name, path string, raw json.RawMessage) error {
		read, ok := f[name]
		if !ok {
			return &invalid.Error{Field: path, Problem: "no such field"}
		}
		return read(path, raw)
	})
}

// members calls visit for each member of an object. A name that occurs twice is
// refused, because readers of JSON do not agree on which of the two counts.
func members(path string, data json.RawMessage, visit func(name, path string, raw json.RawMessage) error) error {
	if rawjson.Kind(data) != '{' {
		return wrongType(path, "an object", data)
	}
	seen := map[string]bool{}
	for m := range rawjson.Members(data) {
		at := join(path, clip.Text(m.Name, 64))
		if seen[m.Name] {
			return web.FailIn(web.Malformed, at, "is written twice")
		}
		seen[m.Name] = true
		if err := visit(m.Name, at, data[m.Value:m.To:m.To]); err != nil {
			return err
		}
	}
	return nil
}

// whole refuses text with half of a surrogate pair: it is no character, and
// would silently become another one.
func whole(path string, raw json.RawMessage) error {
	if half := rawjson.HalfPair(raw); half != "" {
		return &invalid.Error{Field: path, Problem: fmt.Sprintf("holds half of a surrogate pair, %s, which is not a character", half)}
	}
	return nil
}

// wrongType says what a value should have been.
func wrongType(path, want string, raw json.RawMessage) error {
	return &invalid.Error{Field: cmp.Or(path, "body"), Problem: "must be " + want + ", not " + clip.Text(string(raw), 64)}
}

// within prefixes the field of an error with the place of the object that it is
// in.
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

// join is the path of a member.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// readBody reads a JSON document of at most limit bytes. The result is valid
// JSON in valid UTF-8, no deeper than job.MaxDepth. No body is an empty object, so
// that the answer names what is missing. Forms are refused, because a page of
// another site can send those without asking.
func readBody(c echo.Context, limit int64) (json.RawMessage, error) {
	if bodiless(c.Request()) {
		return json.RawMessage("{}"), nil
	}
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

// bodiless reports whether a request has no body, and does not say that it is
// something else than JSON.
func bodiless(r *http.Request) bool {
	return r.ContentLength == 0 && (r.Header.Get("Content-Type") == "" || isJSON(r))
}

func isJSON(r *http.Request) bool { return web.ContentType(r) == "application/json" }

// value reads a member into a Go value. null is refused: leaving a member out is
// the only way to say nothing.
func value[T any](to *T, want string) reader {
	return func(path string, raw json.RawMessage) error {
		if string(raw) == "null" || json.Unmarshal(raw, to) != nil {
			return wrongType(path, want, raw)
		}
		return whole(path, raw)
	}
}

// checked is value with a check: problem says what is wrong, or nothing.
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

// traceID reads an id that other systems made, so only its length is checked.
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
			return web.FailIn(web.TooLarge, path, fmt.Sprintf("%d bytes; the maximum is %d", len(raw), limit))
		}
		*to = T(raw)
		return nil
	}
}

// payload reads a payload without interpreting it.
func payload(to *[]byte) reader { return bytesOf(to, job.MaxPayload) }

// meta reads an object and keeps its bytes. Its members are visited only to
// refuse names that occur twice.
func meta(to *json.RawMessage) reader {
	return func(path string, raw json.RawMessage) error {
		if err := bytesOf(to, job.MaxMeta)(path, raw); err != nil {
			return err
		}
		return members(path, raw, func(string, string, json.RawMessage) error { return nil })
	}
}

// policy reads the name of a policy, or an object with some of its fields. The
// decoder of policies would accept a field twice and half of a surrogate pair,
// so both are checked before.
func policy(to *retry.Patch) reader {
	return func(path string, raw json.RawMessage) (err error) {
		if rawjson.Kind(raw) != '"' { // the decoder would take a field twice, and make a character of half of one
			err = members(path, raw, func(_, path string, raw json.RawMessage) error { return whole(path, raw) })
		}
		if err == nil {
			*to, err = wire.DecodePatch(raw)
			err = within(path, err)
		}
		return err
	}
}

// parsed reads a string in which something else is written.
func parsed[T any](to *T, want string, parse func(string) (T, error)) reader {
	return func(path string, raw json.RawMessage) (err error) {
		var text string
		if err := value(&text, want)(path, raw); err != nil {
			return err
		}
		if *to, err = parse(text); err != nil {
			return &invalid.Error{Field: path, Problem: err.Error()}
		}
		return nil
	}
}

const aDuration = `a duration in quotes, for example "5m" or "PT5M"`

// positive reads a duration that is longer than zero.
func positive(to *time.Duration) reader { return parsed(to, aDuration, parsePositive) }

// parsePositive parses a duration that is longer than zero.
func parsePositive(text string) (time.Duration, error) {
	d, err := wire.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("must be longer than zero")
	}
	return d, err
}

// wait reads a duration from now and keeps when it ends.
func wait(to *time.Time) reader {
	return parsed(to, aDuration, func(text string) (time.Time, error) {
		d, err := wire.ParseDuration(text)
		return time.Now().Add(d), err
	})
}

// rfc3339 is the shape of a time. Package time takes a comma, an hour of one
// digit and offsets of a day as well.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// moment reads a time.
func moment(to *time.Time) reader {
	return parsed(to, "a time in quotes", func(text string) (time.Time, error) {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil || !rfc3339.MatchString(text) {
			return t, fmt.Errorf("%q is not a time such as 2026-01-31T15:04:05Z (RFC 3339)", clip.Text(text, 64))
		}
		if year := t.UTC().Year(); year < 0 || year > 9999 {
			return t, fmt.Errorf("%q is not within the years 0 to 9999 in UTC", text)
		}
		return t, nil
	})
}

// times is what a request says about when its job may run.
type times struct{ runAt, delay, expiresAt, expiresIn time.Time }

// set checks the times against each other and hands them to the job.
func (t times) set(j *job.Job, now time.Time) error {
	switch {
	case !t.runAt.IsZero() && !t.delay.IsZero():
		return &invalid.Error{Field: "delay", Problem: "cannot be used together with run_at; send one of them"}
	case !t.expiresAt.IsZero() && !t.expiresIn.IsZero():
		return &invalid.Error{Field: "expires_in", Problem: "cannot be used together with expires_at; send one of them"}
	}
	j.RunAt, j.ExpiresAt = later(t.runAt, t.delay), later(t.expiresAt, t.expiresIn)
	if from := later(j.RunAt, now); !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(from) {
		field := "expires_at"
		if t.expiresAt.IsZero() {
			field = "expires_in"
		}
		return &invalid.Error{Field: field, Problem: fmt.Sprintf(
			"the job would expire at %s, not after %s, when it may run: it could never run", wire.FormatTime(j.ExpiresAt), wire.FormatTime(from))}
	}
	return nil
}

// later is the later of two times; of a time and a zero one, the time.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
