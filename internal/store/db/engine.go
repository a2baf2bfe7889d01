package db

import (
	"context"
	"database/sql"

	"redrive/internal/store/health"
	"redrive/internal/store/moving"
)

// Database says where the data is. A database that is opened twice at the same
// time refuses the second time.
type Database interface {
	Open(ctx context.Context, health *health.Health) (Engine, error)
	// Inspect runs do on one state of the database, without writing to it, also
	// while a program has it open. found is what the engine itself looked at.
	Inspect(ctx context.Context, do func(src Source, found []Finding)) error
}

// Engine is an open database of one kind. Its methods are safe for concurrent use. It is
// made of what its users need: a writer, a reader and the store each take a part of it.
type Engine interface {
	Connections
	Dialect
	Storage
	moving.Tables
	Life

	// Search is the index of texts.
	Search() Search
}

// Connections lead to the database.
type Connections interface {
	// Writer returns the one connection that writes.
	Writer(ctx context.Context) (Conn, error)

	// Reads returns the pool of connections that only read.
	Reads() *sql.DB
}

// Dialect is how an engine reads statements, and what its errors mean.
type Dialect interface {
	// Text is a statement as this engine reads it. Statements are written once, in SQL that
	// every engine can read but for a few words of SQLite's, which another engine replaces:
	// json_each of a list and ->> of its rows, UPDATE OR FAIL, INDEXED BY, CROSS JOIN with
	// ON, placeholders that are a question mark, GLOB, LIKE that ignores case, max and min
	// of two values, json_extract. Each text is asked for once.
	Text(query string) string

	// KeepsDeadRows reports whether queries walk over rows that were changed or removed, until
	// the engine has cleaned up.
	KeepsDeadRows() bool

	// ReadsInWindows reports whether a query of a list may look at few jobs only: to break off one that
	// takes long costs its connection, and while it runs, no dead row is removed. Where it is false, one query
	// looks at all jobs in nine tenths of the time.
	ReadsInWindows() bool

	// Fault gives an error of the database its kind and the words of this engine: a *health.Fault
	// with one of the kinds of package fault. Other errors come back as they are.
	Fault(err error) error

	// Again reports whether a transaction that failed with the error has changed nothing and
	// may succeed when it is run again: another one was in its way, or the connection was lost
	// before the commit. It is false where the engine itself tries again.
	Again(err error) bool

	// Taken names the unique value because of which a row was refused, by its table and
	// columns: "jobs.id", or "policies.policy, policies.origins". It is empty for any other
	// error. The id of a job is its caller's choice, so that one that is taken is a
	// conflict. All others are chosen by the writer: another writer was faster.
	Taken(err error) string
}

// Storage is where an engine keeps the data, as the writer asks for it.
type Storage interface {
	// Check looks whether the data is still where it was when the database was opened. It
	// costs little; every transaction begins with it.
	Check() error

	// Room reports whether there is room for so many bytes more: an error whose kind is
	// fault.ErrStorageFull where there is not. It costs as much as to write them.
	Room(bytes int) error

	// Committed notes a commit of roughly so many rows.
	Committed(rows int)
}

// Life is the time for which a database is open.
type Life interface {
	// Made reports whether there was no database before it was opened.
	Made() bool

	// Identity is the same for every name of the database, and another one for a copy.
	Identity() (string, error)

	// Announce leaves word of where this process answers requests, for other
	// programs that find the database in use. The key proves to it that a program
	// belongs to the user who runs it: no other user must be able to read it.
	Announce(url, key string) error

	// Hasten is called when the process begins to stop: from then on, an answer is not waited for
	// any longer than a stop may take.
	Hasten()

	// Close is called after the writer's connection was closed.
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
	// Send runs a statement. An engine may let it wait, and send it to the database together
	// with what comes next, in the same order: its error, and its numbers, can come with a
	// later statement or with Commit, which then fails. A query sees what was sent before it.
	// The caller uses the arguments again afterwards: an engine that lets the statement wait
	// keeps a copy.
	Send(s Statement) error
	Commit() error
	// Rollback undoes a transaction that failed for a cause. Its error means
	// that the connection can no longer be used: it is fault.ErrBroken.
	Rollback(cause error) error
	Close() error
}

// Statement is one that is sent.
type Statement struct {
	Query string
	Args  []any

	// Rows is how many rows a list of VALUES in the query has. Their values are the last
	// arguments, row by row. An engine may let them travel in another way. Zero: there is no
	// such list.
	Rows int

	// Want is how many rows it has to change, or [AnyNumber]. What is wrong with another
	// number is for the engine to say.
	Want int

	// Numbers is called for each row of a query, which has one column. When it is called more
	// than once for a row, because an answer was lost, the last answer counts.
	Numbers func(n int64)
}

// AnyNumber of rows may be changed by a statement that is sent.
const AnyNumber = -1

// Source runs queries: a transaction, or the pool of readers.
type Source interface {
	// Query calls each for every row.
	Query(query string, each func(*sql.Rows) error, args ...any) error
}
