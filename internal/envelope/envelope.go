// Package envelope reads the envelopes of BabelQueue, the JSON messages that its
// producers write in any language, and marks those that failed.
//
//	{"job": "urn:babel:orders:created", "trace_id": "…", "data": {…},
//	 "meta": {"id": "…", "queue": "orders", "lang": "php", "schema_version": 1, "created_at": 1749132727000},
//	 "attempts": 0}
//
// Nothing is ever encoded again: a decoder and an encoder would change big
// numbers, 1.0, {} and the order of members. [Parse] returns parts of the bytes
// that came; [Annotate] and [Tried] cut and insert text in them, and every
// other byte stays as it is.
//
// Reading is strict where two readers could disagree. The checks, their order
// and their names are those of the PHP SDK's EnvelopeValidator:
//
//	not_json                     it is not one JSON object; or it is nested deeper than 128
//	                             levels, names a member twice, or is not valid Unicode
//	missing_urn                  job, or urn where job is absent or null, is not a text
//	missing_meta                 meta is not an object
//	unsupported_schema_version   meta.schema_version is not the number 1, written as 1
//	invalid_data                 data is not an object or an array
//	missing_trace_id             trace_id is not a text
//	invalid_attempts             attempts is not a whole number, 0 or more, in digits only
//
// A text must not be empty, and a URN, a trace id and a meta must not be longer
// than what is kept of them: one that is too long counts as missing. As in the
// SDK, "1" and 1.0 are no versions that can be read, and "3", 1.5, 1.0, 1e400
// and -0 are no attempts; unlike it, -1 is none either.
//
// The SDKs put an envelope with headers into a frame when it travels through a
// list of Redis: {"__bq_frame":1,"headers":{…},"body":"…"}. A frame is read as
// the envelope in its body, which is also what is annotated. Anything else with
// that member is read as it stands, so that it has no URN.
package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/retry"
)

// Unread is the type of the jobs whose envelope cannot be read. Their payload
// is the envelope. No URN can be like it.
const Unread = "babelqueue.envelope"

// Envelope is what a job is made of. Data and Meta are the bytes that came.
type Envelope struct {
	URN      string
	TraceID  string
	ID       string // meta.id; empty when it is no text, or too long to be compared
	Data     json.RawMessage
	Meta     json.RawMessage
	Attempts int
}

// Poison says why an envelope cannot be read.
type Poison struct {
	Reason  retry.Reason
	Problem string // in words, with the URN if there is one
}

// ErrorType is the type of the error of an envelope that is set aside for a
// reason.
func ErrorType(r retry.Reason) string { return "envelope." + string(r) }

// Parse reads an envelope. If it cannot be read, poison is its first fault, and
// e holds whatever was understood.
func Parse(raw []byte) (e Envelope, poison *Poison) {
	d, problem := open(raw)
	if problem != "" {
		return e, &Poison{retry.NotJSON, problem}
	}

	// What can be read is read also when something else is wrong.
	for _, read := range []func(*Envelope, document) *Poison{readURN, readMeta, readData, readTraceID, readAttempts} {
		fault := read(&e, d)
		if poison == nil {
			poison = fault
		}
	}

	if poison != nil && e.URN != "" {
		poison.Problem = fmt.Sprintf("%s, in an envelope of %s", poison.Problem, e.URN)
	}

	return e, poison
}

func readURN(e *Envelope, d document) *Poison {
	name := "job"
	if value := d.value(name); value == nil || string(value) == "null" {
		name = "urn"
	}

	switch urn, ok := readText(d.value(name), job.MaxType); {
	case urn == Unread:
		return &Poison{retry.MissingURN, name + " is " + Unread + ", which is reserved for envelopes that cannot be read"}
	case ok:
		e.URN = urn
		return nil
	}

	if name == "urn" && d.value(name) == nil {
		return &Poison{retry.MissingURN, "it does not say what it is: it has neither job nor urn"}
	}

	return &Poison{retry.MissingURN, wrong(d, name, fmt.Sprintf("a text of 1 to %d bytes", job.MaxType))}
}

func readMeta(e *Envelope, d document) *Poison {
	raw := d.value("meta")
	if len(raw) == 0 || raw[0] != '{' || len(raw) > job.MaxMeta {
		return &Poison{retry.MissingMeta, wrong(d, "meta", fmt.Sprintf("an object of at most %d bytes", job.MaxMeta))}
	}

	meta := inside(raw)
	e.Meta = raw

	e.ID, _ = readText(meta.value("id"), job.MaxMessageID)
	if string(meta.value("schema_version")) != "1" {
		return &Poison{retry.UnsupportedVersion, "meta." + wrong(meta, "schema_version", "1, the version that can be read")}
	}

	return nil
}

func readData(e *Envelope, d document) *Poison {
	data := d.value("data")
	if len(data) == 0 || data[0] != '{' && data[0] != '[' {
		return &Poison{retry.InvalidData, wrong(d, "data", "an object or an array")}
	}

	e.Data = data

	return nil
}

func readTraceID(e *Envelope, d document) *Poison {
	var ok bool
	e.TraceID, ok = readText(d.value("trace_id"), job.MaxTraceID)
	if !ok {
		return &Poison{retry.MissingTraceID, wrong(d, "trace_id", fmt.Sprintf("a text of 1 to %d bytes", job.MaxTraceID))}
	}

	return nil
}

func readAttempts(e *Envelope, d document) *Poison {
	var ok bool
	e.Attempts, ok = readCount(d.value("attempts"))
	if !ok {
		return &Poison{retry.InvalidAttempts, wrong(d, "attempts", "a whole number, 0 or more")}
	}

	return nil
}

// wrong says what a member had to be, and what it is.
func wrong(d document, name, want string) string {
	value := d.value(name)
	if value == nil {
		return name + " is missing; it must be " + want
	}

	return fmt.Sprintf("%s must be %s, not %s", name, want, clip.Text(string(value), 64))
}

// readText reads a string of 1 to limit bytes.
func readText(value []byte, limit int) (string, bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}

	s := rawjson.Text(value)
	if s == "" || len(s) > limit {
		return "", false
	}

	return s, true
}

// readCount reads a whole number that is written in digits only.
func readCount(value []byte) (int, bool) {
	n, err := strconv.Atoi(string(value))
	return n, err == nil && value[0] != '-'
}

// document is an object, and where its members are in its bytes.
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
	problem = check(raw)
	if problem != "" {
		return d, problem
	}

	d = inside(raw)

	// A frame carries the envelope as a string.
	body := d.value("body")
	if string(d.value("__bq_frame")) != "1" || len(body) == 0 || body[0] != '"' {
		return d, ""
	}

	framed := []byte(rawjson.Text(body))

	problem = check(framed)
	if problem != "" {
		return d, "in the body of its frame: " + problem
	}

	return inside(framed), ""
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
		return fmt.Sprintf("it holds half of a surrogate pair, %s, which is not a character", half)
	}

	if name, ok := rawjson.Repeated(data); ok {
		return fmt.Sprintf("the member %q is written twice in one object", clip.Text(name, 64))
	}

	return ""
}
