// Package operations is the book of acts on many jobs.
//
// An operation is frozen before it runs. Collect writes its scope down as items,
// in chunks, and remembers where it was, so that a restart goes on there. Work
// then takes the items in their order, in chunks, and holds each against its job
// once more: the run that a person saw, or a skip that says why. Nothing is
// touched before its turn, so that a pause and an abort act at once and what is
// not yet done stays as it is.
//
// Every chunk is one transaction with its items, their jobs, the meters and the
// audit log: whatever ends the process, an item was done once or not at all.
//
// The book hears how replayed runs end, and counts that for the operations that
// replayed them.
package operations

import (
	"database/sql"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/book"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// Acts are what an operation does to jobs, each as it is in the transaction, in
// the name of the operation with the number.
type Acts interface {
	ReplayAll(t *db.Tx, jobs []job.Job, now time.Time, by audit.Actor, operation int64) error
	DiscardAll(t *db.Tx, jobs []job.Job, now time.Time, by audit.Actor, operation int64) error
	RestoreAll(t *db.Tx, jobs []job.Job) error
}

// Index finds jobs by their texts.
type Index interface {
	db.Search
	// Complete returns an error for a filter whose jobs the index does not all
	// know.
	Complete(f filter.Filter) error
}

// Book keeps the operations.
type Book struct {
	writer   *db.Writer
	reader   *db.Reader
	policies *rows.Policies
	log      book.Log
	acts     Acts
	index    Index

	underWay int64 // operations that collect or run, as of the last commit
	delta    int64 // of the transaction that is under way
}

// New returns a book; Load reads what it knows in memory.
func New(writer *db.Writer, reader *db.Reader, policies *rows.Policies, log book.Log, acts Acts, index Index) *Book {
	return &Book{writer: writer, reader: reader, policies: policies, log: log, acts: acts, index: index}
}

// Load counts the operations that are under way.
func (b *Book) Load(src db.Source) error {
	const query = `SELECT count(*) FROM operations
		WHERE state IN ('collecting', 'preview', 'running', 'paused') AND state IN ('collecting', 'running')`
	err := src.Query(query, func(rows *sql.Rows) error { return rows.Scan(&b.underWay) })
	if err != nil {
		return fmt.Errorf("count the operations: %w", err)
	}
	return nil
}

// UnderWay is how many operations collect or run, as of the last commit. The
// writer's goroutine alone may ask.
func (b *Book) UnderWay() int64 { return b.underWay }

// Begin starts a transaction.
func (b *Book) Begin() { b.delta = 0 }

// Flush writes nothing: operations are written at once.
func (b *Book) Flush(*db.Tx) error { return nil }

// Committed takes the count over.
func (b *Book) Committed(*db.Tx) { b.underWay += b.delta }

// changed counts the operations that are under way, and notes that one changed.
func (b *Book) changed(t *db.Tx, was, is operation.State) {
	underWay := func(s operation.State) int64 {
		if s == operation.Collecting || s == operation.Running {
			return 1
		}
		return 0
	}
	b.delta += underWay(is) - underWay(was)
	t.Touch()
}
