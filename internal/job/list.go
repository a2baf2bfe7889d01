package job

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redrive/internal/retry"
)

// Filter selects jobs. Empty fields select everything.
type Filter struct {
	Status Status // a state, or dead_letter, dlq_failed, held, trashed
	Queue  string
	Type   string // exact, or a prefix as "email.*"
	Error  string // text in the error's type or message, case ignored; failures only
	Reason retry.Reason

	// What a search adds. Texts are found anywhere, case ignored, in failures
	// only, and have three characters at least.
	Text      string // in any of the error, payload, type, id and meta
	Payload   string
	Meta      string
	ID        string // the beginning of a job's id
	Class     string // the error's type, exact or a prefix as "http.*"
	Group     string // the fingerprint of an error group
	Attempts  Span   // completed cycles in this run
	Run       Span
	From, To  time.Time // when the job entered its state: from, until before
	Operation int64     // that replayed, discarded or restored it

	Sort Sort // the order of the list; it selects nothing
}

// Span is a range of whole numbers, both ends included. The zero Span holds
// every number; a Max of 0 is no end.
type Span struct{ Min, Max int }

// MatchesType reports whether the filter selects jobs of this type.
func (f Filter) MatchesType(typ string) bool { return f.Type == "" || retry.Matches(f.Type, typ) }

// Zero reports whether the filter selects everything.
func (f Filter) Zero() bool { f.Sort = Newest; return f == Filter{} }

// Statuses lists every status that a filter can name.
func Statuses() []Status {
	var all []Status
	for _, s := range States() {
		all = append(all, Status(s))
	}
	return append(all, StatusDeadLetter, StatusDLQFailed, StatusHeld, StatusTrashed)
}

func statusNames() string {
	var names []string
	for _, s := range Statuses() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// ByEnqueueing reports whether the filter's jobs are listed by the order of
// their enqueueing: those of some statuses, and what is found by its text. The
// others go by the time of their last change.
func (f Filter) ByEnqueueing() bool { return f.Searches() || f.Status.ByEnqueueing() }

// Searches reports whether the filter looks for text, which only jobs have that
// failed.
func (f Filter) Searches() bool {
	return f.Text != "" || f.Error != "" || f.Payload != "" || f.Meta != ""
}

// ByEnqueueing reports whether jobs of this status are listed by the order of
// their enqueueing; the others go by the time of their last change. Every job
// becomes available and most are completed, so these two keep no order of their
// own. All jobs together (no status) are listed so as well.
func (s Status) ByEnqueueing() bool {
	return s == "" || s == Status(Available) || s == Status(Completed)
}

// Cursor is a place in a list that is ordered by (At, Seq), newest first. The
// zero Cursor is the beginning.
type Cursor struct {
	At  time.Time
	Seq int64
}

// CursorOf is the place of a job in the list that the filter selects.
func (f Filter) CursorOf(j Job) Cursor {
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

// ParseCursor is the inverse of String. It returns a *retry.FieldError for
// anything that String did not make.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}
	bad := &retry.FieldError{Field: "after", Problem: "is not a cursor that a list returned"}
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
	Jobs []Job
	Next Cursor // zero on the last page
}

// LetterRow is a row of the dead-letter page: an open letter and its job, of
// whose payload it has the first 2048 bytes.
type LetterRow struct {
	DeadLetter
	Job Job
}

// LetterList is one page of open dead letters, newest first.
type LetterList struct {
	Letters []LetterRow
	Next    Cursor
}

// Detail is everything that is known of one job. Attempts are in the order of
// execution; Letters and Replays in the order of runs.
type Detail struct {
	Job      Job
	Attempts []Attempt
	Letters  []DeadLetter
	Replays  []Replay
	Group    Group // of the newest failure in this run, without queues and hours; zero when none failed
	Bulk     []BulkAct
}

// BulkAct is what an operation on many jobs did to one of them.
type BulkAct struct {
	Operation int64
	Kind      OpKind
	Run       int // that the job was in before
	At        time.Time
	By        string // who started the operation
}

// QueueInfo is one queue as pages show it.
type QueueInfo struct {
	Name     string
	Depths   Depths
	Totals   Totals    // since the beginning
	LastHour []Totals  // 60 minutes, oldest first
	Oldest   time.Time // since when the next waiting job could run; zero when none waits
	PausedAt time.Time // zero when it runs
	PausedBy string
}

// Scale is a span of time, cut in equal pieces, over which counters are drawn.
type Scale struct {
	Step  time.Duration
	Steps int
}

// LastHour is an hour by the minute.
func LastHour() Scale { return Scale{time.Minute, 60} }

// LastDay is a day by the quarter of an hour.
func LastDay() Scale { return Scale{15 * time.Minute, 96} }

// First is the beginning of the oldest piece when the newest one holds now.
// Pieces begin at whole multiples of their length.
func (s Scale) First(now time.Time) time.Time {
	return now.UTC().Truncate(s.Step).Add(-time.Duration(s.Steps-1) * s.Step)
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

// Tally is the totals of one queue and type, as /metrics shows them. Past the
// first thousand names the rest is counted under "other".
type Tally struct {
	Queue, Type string
	Totals      Totals
}

// HeldType is a type of job that waits for a handler, in one queue.
type HeldType struct {
	Queue, Type string
	Count       int64
}

// Retention bounds the dead-letter queue and the trash. A zero field bounds
// nothing.
type Retention struct {
	Age   time.Duration // of a dead letter, of the items of an operation that has ended, and of an error group without a job
	Count int64         // of dead letters
	Trash time.Duration // since a person discarded a job
}

// Pruned counts what the retention removed for good.
type Pruned struct {
	ByAge, ByCount int // dead letters
	Trash          int // discarded jobs
	Items          int // of operations
	Groups         int // error groups
}

// Trashed is where a job was that a person discarded.
type Trashed struct {
	At     time.Time // when it was discarded
	By     string
	Bulk   int64 // the operation that did so, 0: a person did so alone
	State  State
	Letter Letter
	Reason retry.Reason
}

// Fill is how full the dead-letter queue is.
type Fill struct {
	Open    int64     // letters that are neither replayed nor discarded
	LastDay int64     // of these, failed in this hour or the 23 before
	Oldest  time.Time // when the oldest failed; zero when there is none
}
