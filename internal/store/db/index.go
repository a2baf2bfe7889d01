package db

import (
	"context"
	"crypto/rand"

	"redrive/internal/filter"
	"redrive/internal/store/clause"
)

// Search is the index of the texts of failures, by the numbers of their jobs: it is written
// as an Index and asked as a Finder.
type Search interface {
	Index
	Finder
}

// Index is written beside the writer, in transactions of its own, and can be rebuilt from the
// database at any time.
type Index interface {
	// State says how far the index is.
	State(src Source) (IndexState, error)

	// Known returns the documents of these jobs, as far as there are any.
	Known(src Source, seqs []int64) (map[int64]Document, error)

	// Put adds or replaces documents, in rising order of their numbers, removes those
	// of other jobs, and notes the new state.
	Put(ctx context.Context, to IndexState, all []Entry, gone []int64) error

	// Clear removes every document, and notes the new state.
	Clear(ctx context.Context, to IndexState) error

	// Tidy puts a part of the index in order and reports whether there was
	// something to do. It never takes long.
	Tidy(ctx context.Context) (more bool, err error)

	// Segments is of how many parts the index is made, each of which a search goes
	// through. A transaction that puts documents adds one, Tidy joins them.
	Segments(src Source) (int, error)
}

// Finder makes queries that read the index.
type Finder interface {
	// From is the source of a query in which the index comes first, joined with
	// the table jobs as j, and its order. window says that the query looks at a part of
	// the jobs only.
	From(window bool) (from, order string)

	// Match adds the condition that a document has the texts of the filter.
	Match(where *clause.Where, f filter.Filter)

	// Many reports whether so many documents are expected to have the texts of the filter that its
	// list is found sooner by looking at one job after the other. It is asked of an engine that reads
	// in windows.
	Many(src Source, f filter.Filter) (bool, error)

	// Fault gives an error of a query that reads the index its kind. ok is false for a
	// query that reads the database alone.
	Fault(query string, err error) (fault error, ok bool)
}

// IndexState names one state of an index. The database and its index each keep one,
// which tells whether they belong together: after a backup was restored they do not.
type IndexState struct {
	Version  string // drawn by chance for each transaction of the index
	Before   string // the one before that; the database keeps none
	Revision int64  // of the database: as it is, or as it was when the index read it last
}

// Next is the state after one more transaction of the index, which takes in what the
// database had at a revision.
func (s IndexState) Next(revision int64) IndexState {
	return IndexState{Version: rand.Text(), Before: s.Version, Revision: revision}
}

// BelongsTo reports whether an index in this state belongs to a database that notes
// another. After a crash the index can be one transaction ahead, with nothing in it
// that the database does not have.
func (s IndexState) BelongsTo(database IndexState) bool {
	return s.Version == database.Version || s.Before == database.Version && s.Revision <= database.Revision
}
