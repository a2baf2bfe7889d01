// Package filter is the query language that selects jobs, on pages, in the API
// and on the command line: "state:dead_letter queue:orders error:timeout".
//
// [Parse] reads what people type, [Filter.String] writes it back in one form,
// and [Filter.Words] says it in a sentence. The package also holds what a
// selection gives: pages of jobs and dead letters with their cursors, and the
// facets by which a list can be narrowed. It selects nothing itself; a store
// does.
//
// A filter is written as words, each a qualifier and its value:
//
//	state:dead_letter queue:orders type:email.* error:timeout attempts:>3 since:2h
//
// Every part has to hold, and each can be given once. Words without a qualifier
// are one text, which is looked for as it is, so that an error message can be
// pasted; a word that is a whole job id selects that job. A value with spaces is
// put in quotation marks, in which \" and \\ mean " and \.
package filter

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/wire"
)

// Filter selects jobs. Empty fields select everything.
type Filter struct {
	Status job.Status // a state, or dead_letter, dlq_failed, held, trashed
	Queue  string
	Source string // the name of a source: jobs that were mirrored from it
	Type   string // exact, or a prefix such as "email.*"
	Error  string // text in the error's type or message, case ignored; failures only
	Reason retry.Reason

	// What a search adds. Texts are found anywhere, case ignored, in failures
	// only, and have three characters at least.
	Text      string // in any of the error, payload, type, id and meta
	Payload   string
	Meta      string
	ID        string // the beginning of a job's id
	Class     string // the error's type, exact or a prefix such as "http.*"
	Group     string // the fingerprints of error groups, separated by commas: jobs of any of them
	Attempts  Span   // completed cycles in this run
	Run       Span
	From, To  time.Time // when the job entered its state: from, until before
	Operation int64     // that replayed, discarded or restored it

	Sort Sort // the order of the list; it selects nothing
}

// Sort is the order of a list; empty is the usual one of its jobs (see [Filter.Order]).
type Sort string

// The orders of a list.
const (
	Newest Sort = "newest"
	Oldest Sort = "oldest"
	Next   Sort = "next" // by the time at which a job that waits runs next, the soonest first
)

// Order is the order of the list that the filter selects. Jobs that wait for their
// time are usually listed by it, all others the newest first.
func (f Filter) Order() Sort {
	switch {
	case f.Sort != "":
		return f.Sort
	case f.waits() && !f.Searches():
		return Next
	}

	return Newest
}

// waits reports whether the filter selects only jobs that wait for their time.
func (f Filter) waits() bool {
	return f.Status == job.Status(job.Retryable) || f.Status == job.Status(job.Scheduled)
}

// MatchesQueue reports whether the filter selects jobs of this queue.
func (f Filter) MatchesQueue(queue string) bool {
	return (f.Queue == "" || f.Queue == queue) && (f.Source == "" || f.Source == job.SourceOf(queue))
}

// MatchesType reports whether the filter selects jobs of this type.
func (f Filter) MatchesType(typ string) bool { return f.Type == "" || retry.Matches(f.Type, typ) }

// MaxGroups is how many error groups a filter can name.
const MaxGroups = 100

// Groups are the fingerprints of the error groups whose jobs the filter selects;
// none: jobs of any group and of none.
func (f Filter) Groups() []string {
	if f.Group == "" {
		return nil
	}
	return strings.Split(f.Group, ",")
}

// Zero reports whether the filter selects everything.
func (f Filter) Zero() bool { f.Sort = ""; return f == Filter{} }

// ByEnqueueing reports whether the filter's jobs are listed in the order of their
// enqueueing: those of some statuses, and those that a search finds. The others
// are listed by the time of their last change, or by the time at which they run next
// (see [Filter.Order]). Jobs of a source came to Redrive in the order in which it read them,
// which says nothing, so they are listed by the time of their last change, too.
func (f Filter) ByEnqueueing() bool {
	return f.Searches() || f.Status.ByEnqueueing() && !(f.Status == "" && f.Foreign() != "")
}

// Foreign is the source of which the filter wants jobs, by its name or by that of a queue;
// empty when it wants others too.
func (f Filter) Foreign() string { return cmp.Or(f.Source, job.SourceOf(f.Queue)) }

// Searches reports whether the filter looks for text, which only jobs have that
// failed.
func (f Filter) Searches() bool {
	return f.Text != "" || f.Error != "" || f.Payload != "" || f.Meta != ""
}

// Words says for people what the filter selects: "dead letters of queue orders
// whose error contains timeout". Its values come from people and may be hostile.
func (f Filter) Words() string {
	s := f.noun()

	operation := Filter{Operation: f.Operation}.Value("operation")
	group := "error group"
	if len(f.Groups()) > 1 {
		group = "error groups"
	}

	// " of queue orders and type email.send"
	if of := phrases("queue", f.Queue, "source", f.Source, "type", f.Type, group, f.Group, "operation", operation); len(of) > 0 {
		s += " of " + strings.Join(of, " and ")
	}

	whose := phrases(
		"reason is", string(f.Reason), "error type is", f.Class, "error contains", f.Error, "payload contains", f.Payload,
		"meta contains", f.Meta, "id begins with", f.ID, "id, type, error, payload or meta contains", f.Text,
	)
	if f.Attempts != (Span{}) {
		whose = append(whose, "attempts are "+f.Attempts.words())
	}

	if f.Run != (Span{}) {
		whose = append(whose, "run is "+f.Run.words())
	}

	// " whose error contains timeout and attempts are …"
	if len(whose) > 0 {
		s += " whose " + strings.Join(whose, " and ")
	}

	if !f.From.IsZero() {
		s += " since " + formatMoment(f.From)
	}

	if !f.To.IsZero() {
		s += " before " + formatMoment(f.To)
	}

	return s
}

// noun names what is selected, by its status.
func (f Filter) noun() string {
	switch f.Status {
	case "":
		return "jobs"
	case job.StatusDeadLetter:
		return "dead letters"
	case job.StatusDLQFailed:
		return "refused dead letters"
	}

	return string(f.Status) + " jobs"
}

// phrases joins pairs of a name and a value, without those that have no value.
func phrases(pairs ...string) []string {
	var all []string
	for pair := range slices.Chunk(pairs, 2) {
		if value := pair[1]; value != "" {
			if strings.ContainsFunc(value, unicode.IsSpace) {
				value = quoted(value)
			}

			all = append(all, pair[0]+" "+value)
		}
	}

	return all
}

// formatMoment writes a time as a sentence has it.
func formatMoment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.999999") + " UTC" }

// Contains reports whether one of the texts contains what is looked for. Case is ignored,
// and white space stands for any other.
func Contains(wanted string, texts ...string) bool {
	wanted = folded(wanted)
	return wanted == "" || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(folded(s), wanted) })
}

// folded is a text in which letters that differ by case alone are the same, and so is all
// white space.
func folded(s string) string {
	s = clip.Line(s)

	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}

		return least
	}, s)
}

// Cursor is a place in a list that is ordered by (At, Seq). The zero Cursor is the
// beginning.
type Cursor struct {
	At  time.Time
	Seq int64
}

// CursorOf is the place of a job in the list that the filter selects.
func (f Filter) CursorOf(j job.Job) Cursor {
	switch {
	case f.Order() == Next:
		return Cursor{At: j.RunAt, Seq: j.Seq}
	case f.ByEnqueueing():
		return Cursor{At: j.EnqueuedAt, Seq: j.Seq}
	}

	return Cursor{At: j.ChangedAt, Seq: j.Seq}
}

// String is the form of a cursor in a URL; empty for the beginning.
func (c Cursor) String() string {
	if c == (Cursor{}) {
		return ""
	}
	return wire.EncodeCursor("1", c.At.UnixMicro(), c.Seq)
}

// ParseCursor is the inverse of String. It returns a *invalid.Error for
// anything that String did not make.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}

	n, ok := wire.DecodeCursor("1", s, 2)
	if !ok || n[1] <= 0 {
		return Cursor{}, &invalid.Error{Field: "after", Problem: "is not a cursor from a list"}
	}

	return Cursor{time.UnixMicro(n[0]).UTC(), n[1]}, nil
}

// List is one page of jobs, in the order of their filter, without their payloads,
// meta and envelopes.
type List struct {
	Jobs []job.Job
	Next Cursor // zero on the last page
}

// DeadLetterRow is a row of the dead-letter page: an open letter and its job, of
// whose payload it has the first 2048 bytes.
type DeadLetterRow struct {
	job.DeadLetter
	Job job.Job
}

// DeadLetterList is one page of open dead letters, newest first.
type DeadLetterList struct {
	DeadLetters []DeadLetterRow
	Next        Cursor
}

// Hit is a job that a search found: the newest failure, which is the one that is
// searched, and where in the job's texts it is what was looked for.
type Hit struct {
	Error    job.ErrorInfo
	Excerpts []Excerpt
}
