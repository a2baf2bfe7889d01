// Package apitype is the JSON of the API: what requests say and what answers say,
// once for the server, the client and the command line.
//
// Here is what all of it shares: the forms of values, the ends of pages, problems, the
// audit log. What is about jobs is in package work, and what is about the installation and
// its users in package admin.
//
// The names in it are a contract with programs, so the types here are apart from
// those of package job and its neighbours, whose fields may be renamed. They are
// plain structs that hold nothing but values; package server/api fills them. A
// member that may be missing has omitzero, or omitempty if it is a list or an
// object; every other member is always there. The order of the fields is the order
// of the members, and the comments of the fields are their descriptions in the
// OpenAPI document.
//
// Three kinds of values are written in a form of their own. A [Time] has
// microseconds and is in UTC, a [Duration] is ISO 8601, and a [Payload] goes in and
// out byte for byte, because a decoder and an encoder would change large numbers,
// white space and the order of members. encoding/json writes the first two; for the
// third there is [Encode].
package apitype

import (
	"bytes"
	"encoding/json"
	"time"

	"redrive/internal/access"
	"redrive/internal/wire"
)

// Time is an instant: RFC 3339 in UTC with microseconds, for example
// 2026-03-12T14:02:11.000000Z. The zero time is an empty string.
type Time struct{ time.Time }

// At is a time of the program as the API writes it.
func At(t time.Time) Time { return Time{t} }

// MarshalJSON writes the time.
func (t Time) MarshalJSON() ([]byte, error) { return json.Marshal(wire.FormatTime(t.Time)) }

// UnmarshalJSON reads what MarshalJSON writes, and any other time of RFC 3339.
func (t *Time) UnmarshalJSON(data []byte) error {
	if string(data) == `""` {
		*t = Time{}
		return nil
	}

	return t.Time.UnmarshalJSON(data)
}

// Duration is a length of time, ISO 8601 in answers, for example PT1M30S. Requests
// may also write 90s, 2m or 1d12h.
type Duration time.Duration

// MarshalJSON writes the duration.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire.FormatDuration(time.Duration(d)))
}

// UnmarshalJSON reads a duration in any form that requests may have.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}

	read, err := wire.ParseDuration(text)
	*d = Duration(read)

	return err
}

// Payload is any JSON value, kept byte for byte.
type Payload []byte

// MarshalJSON returns the payload. encoding/json removes white space from it;
// [Encode] does not.
func (p Payload) MarshalJSON() ([]byte, error) {
	if p == nil {
		return []byte("null"), nil
	}
	return p, nil
}

// UnmarshalJSON keeps a copy of the payload.
func (p *Payload) UnmarshalJSON(data []byte) error {
	*p = bytes.Clone(data)
	return nil
}

// Page ends one page of a list.
type Page struct {
	// Where the next page begins: the parameter after of the next request. Missing on the last page.
	Next string `json:"next,omitzero"`
	// The search ran out of time: more may match than was found.
	Incomplete bool `json:"incomplete,omitzero"`
}

// NumberedPage ends one page of a list whose rows are numbered.
type NumberedPage struct {
	// Where the next page begins: the parameter after of the next request. Missing on the last page.
	Next int64 `json:"next,omitzero"`
	// The search ran out of time: more may match than was found.
	Incomplete bool `json:"incomplete,omitzero"`
}

// Nothing is the body of a request that is fully named by its address: none, or an
// empty object.
type Nothing struct{}

// Problem is the answer to a request that failed.
type Problem struct {
	// What went wrong.
	Error ProblemError `json:"error"`
	// Of a conflict: who replayed the job first.
	ReplayedBy string `json:"replayed_by,omitzero"`
	// Of a conflict: when the job was replayed first.
	ReplayedAt Time `json:"replayed_at,omitzero"`
}

// ProblemError says what went wrong.
type ProblemError struct {
	// Names the kind of error, for programs.
	Code string `json:"code"`
	// Says what went wrong, for people.
	Message string `json:"message"`
	// The member, parameter or header that the error is about, for example jobs[3].policy.max_attempts.
	Field string `json:"field,omitzero"`
	// What an idempotency key was used for first: the id of a job, or the number of an operation.
	First string `json:"first,omitzero"`
}

// Caller is who sent the request, and what they may do.
type Caller struct {
	// The name of the user or the token.
	Name string `json:"name"`
	// What the caller was given to do.
	Role access.Role `json:"role"`
	// The permissions of the role.
	May []access.Permission `json:"may" schema:"nullable"`
}

// LoggedIn is the answer to a login that a program sent.
type LoggedIn struct {
	// The name of the user.
	User string `json:"user"`
}

// Done is what a script of a page is told of an act, beside what the act itself says.
type Done struct {
	// What came of the act, in a sentence.
	Text string `json:"text,omitzero"`
}

// Valid is what a script of a page is told of the text in the editor.
type Valid struct {
	// Whether the payload can be replayed so.
	Valid bool `json:"valid"`
	// The members that differ from the payload of the run before.
	Changed []string `json:"changed"`
}
