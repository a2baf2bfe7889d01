// Package db is what the store knows of a database: a transaction, the one
// writer, the pool that reads, and the seam to a database engine.
// Nothing in it knows what a job is.
//
// # One writer
//
// All writes go through one connection, one transaction after the other. Callers
// queue an operation ([Write]) and wait; the writer's goroutine runs whatever has
// queued in one transaction and answers all callers after its commit: one fsync serves
// many callers. A caller that finds the writer idle commits in its own goroutine. An
// operation that fails makes the writer roll back and run each of the batch alone,
// so it must give the same result when it is run again. An operation that merely
// refuses (see [Options]) has written nothing and disturbs no other caller.
//
// A caller's context bounds its waiting in the queue: a transaction is never
// cancelled. What the writer's participants gather of a transaction belongs to it ([Slot]).
//
// # Faults
//
// A database that another process keeps busy is tried again by its engine
// (fault.ErrBusy). While the disk is full (fault.ErrStorageFull), or the database can
// only be read, or its files are not where they were when it was opened
// (fault.ErrUnsafe), [Health.Problem] says so, and the writer tries every second to
// write something that changes nothing. After an I/O error (fault.ErrBroken), and
// when the database turns out to be damaged (fault.ErrCorrupt), the writer stops
// permanently: it is unknown what the disk holds, and each write could do more harm.
package db

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"

	"redrive/internal/filter"
	"redrive/internal/job"
)

// Database says where the data is. A database that is opened twice at the same
// time refuses the second time.
type Database interface {
	Open(ctx context.Context, health *Health) (Engine, error)
	// Inspect runs do on one state of the database, without writing to it, also
	// while a program has it open. found is what the engine itself looked at.
	Inspect(ctx context.Context, do func(src Source, found []Finding)) error
}

// Engine is an open database of one kind. Its methods are safe for concurrent
// use.
type Engine interface {
	// Made reports whether there was no database before it was opened.
	Made() bool
	// Writer returns the one connection that writes.
	Writer(ctx context.Context) (Conn, error)
	// Reads returns the pool of connections that only read.
	Reads() *sql.DB
	// Text is a statement as this engine reads it. Statements are written once, in SQL that
	// every engine can read but for a few words of SQLite's, which another engine replaces:
	// json_each of a list and ->> of its rows, UPDATE OR FAIL, INDEXED BY, CROSS JOIN with
	// ON, placeholders that are a question mark, GLOB, LIKE that ignores case, max and min
	// of two values. Each text is asked for once.
	Text(query string) string
	// Fault gives an error of the database its kind and the words of this engine: a *Fault
	// with one of the kinds of package fault. Other errors come back as they are.
	Fault(err error) error
	// Taken names the unique value because of which a row was refused, by its table and
	// columns: "jobs.id", or "policies.policy, policies.origins". It is empty for any other
	// error. The id of a job is its caller's choice, so that one that is taken is a
	// conflict. All others are chosen by the writer: another writer was faster.
	Taken(err error) string
	// Search is the index of texts.
	Search() Search
	// Check looks whether the files of the database are still where they were when
	// it was opened. It costs little; every transaction begins with it.
	Check() error
	// Room reports whether the disk has room for so many bytes more: an error whose
	// kind is fault.ErrStorageFull where it has not. It costs as much as to write them.
	Room(bytes int) error
	// Committed notes a commit of roughly so many rows.
	Committed(rows int)
	// Announce leaves word of where this process answers requests, for other
	// programs that find the database in use. The key proves to it that a program
	// belongs to the user who runs it: no other user must be able to read it.
	Announce(url, key string) error
	Close() error
	// Abandon is Close, and removes what was made when it was opened.
	Abandon() error
}

// Conn is a connection that writes. One goroutine uses it.
type Conn interface {
	Source
	// Begin starts a transaction that no other writer can disturb. It waits for
	// a busy database, as long as ctx allows.
	Begin(ctx context.Context) error
	// Exec runs a statement at once and returns the number of rows that it changed.
	Exec(query string, args ...any) (int64, error)
	// Send runs a statement that has to change exactly so many rows, or [AnyNumber]. An
	// engine may let it wait, and send it to the database together with what comes next,
	// in the same order: its error can come with a later statement or with Commit, which
	// then fails. A query sees what was sent before it. What is wrong with another number
	// of rows is for the engine to say.
	Send(want int, query string, args ...any) error
	Commit() error
	// Rollback undoes a transaction that failed for a cause. Its error means
	// that the connection can no longer be used: it is fault.ErrBroken.
	Rollback(cause error) error
	Close() error
}

// AnyNumber of rows may be changed by a statement that is sent.
const AnyNumber = -1

// Source runs queries: a transaction, or the pool of readers.
type Source interface {
	// Query calls each for every row.
	Query(query string, each func(*sql.Rows) error, args ...any) error
}

// Search is the index of the texts of failures, by the numbers of their jobs. It is
// written beside the writer, in transactions of its own, and can be rebuilt from the
// database at any time.
type Search interface {
	// State says how far the index is.
	State(src Source) (IndexState, error)
	// Fault gives an error of a query that reads the index its kind. ok is false for a
	// query that reads the database alone.
	Fault(query string, err error) (fault error, ok bool)
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
	// From is the source of a query in which the index comes first, joined with
	// the table jobs as j, and its order.
	From() (from, order string)
	// Match adds the condition that a document has the texts of the filter.
	Match(where *Where, f filter.Filter)
}

// IndexState names one state of an index. The database and its index each keep one,
// which tells whether they belong together: after a backup was restored they do not.
type IndexState struct {
	Version  string // drawn by chance for each transaction of the index
	Before   string // the mark before that; the database keeps none
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

// Invariant is a fact about the tables that holds after every commit: the query
// finds the ids of the rows that break it.
type Invariant struct{ What, Query string }

// Finding is one thing that was looked at in a database.
type Finding struct {
	What    string
	Problem string // empty: it is as it has to be
}

// Examine looks whether the invariant holds.
func (i Invariant) Examine(src Source) Finding {
	n, first, problem := 0, "", ""
	query := `SELECT count(*), coalesce(CAST(min(id) AS TEXT), '') FROM (` + i.Query + `) AS broken`
	switch _, err := Row(src, query, []any{&n, &first}); {
	case err != nil:
		problem = err.Error()
	case n > 0:
		problem = fmt.Sprintf("exceptions: %d, the first is %s", n, first)
	}

	return Finding{i.What, problem}
}

// Document is what can be searched of a job that failed, as it was at its newest
// failure and after redaction.
type Document struct{ ID, Type, Error, Payload, Meta string }

// Entry is a document that is to be put into the index, for the job of a number.
// Before is the one that the index knows of the job; zero when there is none.
type Entry struct {
	Seq              int64
	Before, Document Document
}

// maxSearched is how many bytes of each text can be searched.
const maxSearched = 32 << 10

// DocumentOf is what can be searched of a job, whose error is its newest one.
func DocumentOf(j job.Job) Document {
	failure := (&job.Failure{ErrorInfo: j.Error}).Error()
	return Document{searchable(j.ID), searchable(j.Type), searchable(failure), searchable(string(j.Payload)), searchable(string(j.Meta))}
}

// searchable is the beginning of what a text says, which is the part that can be
// searched.
func searchable(s string) string {
	s = Unescape(s)
	return Clean(s[:min(len(s), maxSearched)])
}
