package filter

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// Cursor is a place in a list that is ordered by (At, Seq), newest first. The
// zero Cursor is the beginning.
type Cursor struct {
	At  time.Time
	Seq int64
}

// CursorOf is the place of a job in the list that the filter selects.
func (f Filter) CursorOf(j job.Job) Cursor {
	if f.ByEnqueueing() {
		return Cursor{At: j.EnqueuedAt, Seq: j.Seq}
	}
	return Cursor{At: j.ChangedAt, Seq: j.Seq}
}

// String is the form in which a cursor travels in a URL; empty for the
// beginning.
func (c Cursor) String() string {
	if c == (Cursor{}) {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "1.%d.%d", c.At.UnixMicro(), c.Seq))
}

// ParseCursor is the inverse of String. It returns a *invalid.Error for
// anything that String did not make.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}
	bad := &invalid.Error{Field: "after", Problem: "is not a cursor that a list returned"}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return Cursor{}, bad
	}
	parts := strings.Split(string(raw), ".")
	if len(parts) != 3 || parts[0] != "1" {
		return Cursor{}, bad
	}
	micros, err1 := strconv.ParseInt(parts[1], 10, 64)
	seq, err2 := strconv.ParseInt(parts[2], 10, 64)
	c := Cursor{time.UnixMicro(micros).UTC(), seq}
	if err1 != nil || err2 != nil || seq <= 0 || c.String() != s {
		return Cursor{}, bad
	}
	return c, nil
}

// List is one page of jobs, newest first, without what they bring along: their
// payloads, meta and envelopes.
type List struct {
	Jobs []job.Job
	Next Cursor // zero on the last page
}

// LetterRow is a row of the dead-letter page: an open letter and its job, of
// whose payload it has the first 2048 bytes.
type LetterRow struct {
	job.DeadLetter
	Job job.Job
}

// LetterList is one page of open dead letters, newest first.
type LetterList struct {
	Letters []LetterRow
	Next    Cursor
}

// ReasonCount is a facet of the dead-letter page.
type ReasonCount struct {
	Reason retry.Reason
	Count  int64
}

// NameCount is a facet by a name: a queue or a type.
type NameCount struct {
	Name  string
	Count int64
}

// Facets are what a list can be narrowed to, the most frequent first: each is
// counted under what the filter says of the other two. Texts, times and whatever
// else the filter says are not counted.
type Facets struct {
	Reasons []ReasonCount // of open dead letters only
	Queues  []NameCount
	Types   []NameCount // of open dead letters only
}
