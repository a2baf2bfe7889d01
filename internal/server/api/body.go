package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/rules"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// The bodies of requests are read strictly into the types of package apitype: every
// member must be known and may occur once, and an error names the member that it is
// about. Payloads are passed on as the bytes that were received, so that no number
// and no string changes on its way to the database.

// checkJSON returns a problem of kind malformed unless data is one JSON value.
func checkJSON(data []byte) error {
	if flaw := rawjson.Check(data, job.MaxDepth); flaw != "" {
		return problem.New(problem.Malformed, "the body "+flaw)
	}
	return nil
}

// A check looks at a member that was just read; path is where the member is in the
// body. An error that names no field is about the member. Members are checked in the
// order in which they came, so that the first wrong one is named.
type check func(member, path string, raw json.RawMessage) error

// decode reads the object at path, which is empty for the body itself, into a struct.
// A member that is not known is an error: it may be a misspelt one, and ignoring that
// would do something else than was asked for.
func decode(path string, data json.RawMessage, into any, also check) error {
	object := reflect.ValueOf(into).Elem()
	known := apitype.Members(object.Type())

	return members(path, data, func(name, path string, raw json.RawMessage) error {
		i := slices.IndexFunc(known, func(m apitype.Member) bool { return m.Name == name })
		if i < 0 {
			return &invalid.Error{Field: path, Problem: "no such field"}
		}

		if err := readValue(object.FieldByIndex(known[i].Index), path, raw, known[i].Tag.Get("want")); err != nil {
			return err
		}

		if also == nil {
			return nil
		}

		return aboutField(path, also(name, path, raw))
	})
}

// aboutField names the field that an error is about, unless it says that itself.
func aboutField(path string, err error) error {
	var known *problem.Problem
	var field *invalid.Error
	if err == nil || errors.As(err, &known) || errors.As(err, &field) {
		return err
	}

	return &invalid.Error{Field: path, Problem: err.Error()}
}

// wants says of each kind of value what a program is told that it must be, where the
// field has no tag that says it better.
var wants = map[reflect.Kind]string{
	reflect.String: "a string",
	reflect.Int:    "a whole number",
	reflect.Bool:   "true or false",
}

// readValue reads the value of a member into its field. The objects of a list are left
// to the check of the list, which reads them one by one.
func readValue(to reflect.Value, path string, raw json.RawMessage, want string) error {
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}

	switch to := to.Addr().Interface().(type) {
	case *apitype.Time:
		return readText(path, raw, "a time in quotes", parseMoment, &to.Time)
	case *apitype.Duration:
		return readText(path, raw, aDuration, wire.ParseDuration, (*time.Duration)(to))
	case *apitype.Payload:
		return readBytes(path, raw, job.MaxPayload, (*[]byte)(to))
	case *apitype.Meta:
		return readMeta(path, raw, (*[]byte)(to))
	case *apitype.PolicyPatch:
		return readPatch(path, raw, (*[]byte)(to))
	}

	if to.Kind() == reflect.Slice && to.Type().Elem().Kind() == reflect.Struct {
		if rawjson.Kind(raw) != '[' {
			return wrongType(path, want, raw)
		}
		return nil
	}

	return readPlain(path, raw, cmp.Or(want, wants[to.Kind()]), to.Addr().Interface())
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
			return problem.In(problem.Malformed, at, "is written twice")
		}

		seen[m.Name] = true
		if err := visit(m.Name, at, data[m.Value:m.To:m.To]); err != nil {
			return err
		}
	}

	return nil
}

// refuseHalfPair refuses text with half of a surrogate pair: it is no character, and
// would silently become another one.
func refuseHalfPair(path string, raw json.RawMessage) error {
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
		return problem.RefusedBy(path, ruled)
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
		return nil, problem.New(problem.MediaType, "send the body with Content-Type: application/json")
	}

	data, err := web.Received(c, limit)
	if err != nil {
		return nil, err
	}

	return data, checkJSON(data)
}

// readSmall reads a small body.
func readSmall(c echo.Context, into any, also check) error {
	data, err := readBody(c, web.MaxSmall)
	if err != nil {
		return err
	}

	return decode("", data, into, also)
}

// bodiless reports whether a request has no body, and does not say that it is
// something else than JSON.
func bodiless(r *http.Request) bool {
	return r.ContentLength == 0 && (r.Header.Get("Content-Type") == "" || isJSON(r))
}

func isJSON(r *http.Request) bool { return web.ContentType(r) == "application/json" }

// readPlain reads a text, a number, true or false, or a list of these. null is
// refused: leaving a member out is the only way to say nothing.
func readPlain(path string, raw json.RawMessage, want string, to any) error {
	if string(raw) == "null" || json.Unmarshal(raw, to) != nil {
		return wrongType(path, want, raw)
	}
	return refuseHalfPair(path, raw)
}

// readText reads a string in which something else is written.
func readText[T any](path string, raw json.RawMessage, want string, parse func(string) (T, error), to *T) (err error) {
	var text string
	if err := readPlain(path, raw, want, &text); err != nil {
		return err
	}

	*to, err = parse(text)

	return aboutField(path, err)
}

// readBytes reads a value as it is, of at most limit bytes.
func readBytes(path string, raw json.RawMessage, limit int, to *[]byte) error {
	if len(raw) > limit {
		return problem.In(problem.TooLarge, path, fmt.Sprintf("%d bytes; the maximum is %d", len(raw), limit))
	}

	*to = raw

	return nil
}

// readMeta reads an object and keeps its bytes. Its members are visited only to
// refuse names that occur twice.
func readMeta(path string, raw json.RawMessage, to *[]byte) error {
	if err := readBytes(path, raw, job.MaxMeta, to); err != nil {
		return err
	}
	return members(path, raw, func(string, string, json.RawMessage) error { return nil })
}

// readPatch reads the name of a policy, or an object with some of its fields, and
// leaves the rest to [wire.DecodePatch]. That would accept a field twice and half of a
// surrogate pair, so both are checked before.
func readPatch(path string, raw json.RawMessage, to *[]byte) error {
	*to = raw
	if rawjson.Kind(raw) == '"' {
		return nil
	}

	return members(path, raw, func(_, path string, raw json.RawMessage) error { return refuseHalfPair(path, raw) })
}

const aDuration = `a duration in quotes, for example "5m" or "PT5M"`

// longerThanZero refuses a duration of zero.
func longerThanZero(d *apitype.Duration) error {
	if *d <= 0 {
		return errors.New("must be longer than zero")
	}
	return nil
}

// rfc3339 is the shape of a time. Package time takes a comma, an hour of one
// digit and offsets of a day as well.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// parseMoment reads a time.
func parseMoment(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || !rfc3339.MatchString(text) {
		return t, fmt.Errorf("%q is not a time such as 2026-01-31T15:04:05Z (RFC 3339)", clip.Text(text, 64))
	}

	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return t, fmt.Errorf("%q is not within the years 0 to 9999 in UTC", text)
	}

	return t, nil
}

// momentOf is the time that a request names, zero where it names none.
func momentOf(t *apitype.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// endOf is when a wait that begins now ends, zero where the request has none.
func endOf(wait *apitype.Duration, now time.Time) time.Time {
	if wait == nil {
		return time.Time{}
	}
	return now.Add(time.Duration(*wait))
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
