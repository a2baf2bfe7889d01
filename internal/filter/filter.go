// Package filter is the query language that selects jobs, on pages, in the API
// and on the command line: "state:dead_letter queue:orders error:timeout".
//
// [Parse] reads what people type, [Filter.String] writes it back in one form,
// and [Filter.Words] says it in a sentence. The package also holds what a
// selection gives: pages of jobs and dead letters with their cursors, and the
// facets by which a list can be narrowed. It selects nothing itself; a store
// does.
package filter

import (
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// Filter selects jobs. Empty fields select everything.
type Filter struct {
	Status job.Status // a state, or dead_letter, dlq_failed, held, trashed
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

// ByEnqueueing reports whether the filter's jobs are listed by the order of
// their enqueueing: those of some statuses, and what is found by its text. The
// others go by the time of their last change.
func (f Filter) ByEnqueueing() bool { return f.Searches() || f.Status.ByEnqueueing() }

// Searches reports whether the filter looks for text, which only jobs have that
// failed.
func (f Filter) Searches() bool {
	return f.Text != "" || f.Error != "" || f.Payload != "" || f.Meta != ""
}
