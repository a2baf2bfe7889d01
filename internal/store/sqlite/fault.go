package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"redrive/internal/fault"
	"redrive/internal/resource"
	"redrive/internal/shortage"
	"redrive/internal/store/health"
)

// faultOf is a fault of a file, in words for people.
func faultOf(path string, kind, err error) *health.Fault {
	return &health.Fault{Kind: kind, Words: advice(path, kind, err), Err: err, Where: slog.String("path", path)}
}

// advice says what happened to a file, and what to do.
func advice(path string, kind, err error) string {
	switch kind {
	case fault.ErrBusy:
		return fmt.Sprintf("another process is keeping the database %s busy; try again", path)
	case fault.ErrStarved:
		return fmt.Sprintf("the database %s could not open another file or allocate memory; raise the limits of this process, "+
			"and writing resumes automatically", path)
	case fault.ErrStorageFull:
		return fmt.Sprintf("the disk that holds the database %s is full; make room, and writing resumes automatically", path)
	case fault.ErrReadOnly:
		return fmt.Sprintf("the database file %s is read-only; make it writable for the user of this program, "+
			"then restart the program", path)
	case fault.ErrUnsafe:
		return err.Error()
	case fault.ErrCorrupt:
		return fmt.Sprintf("the database file %s is damaged; restore a backup, or copy out what can still be read: "+
			"sqlite3 '%s' .recover | sqlite3 NEW-FILE", path, path)
	}

	return fmt.Sprintf("the database file %s failed, and the last writes may be lost; check the disk, "+
		"then restart the program", path)
}

// unsafe is the error about files of a database that are not as they must be. It
// says what to do.
func unsafe(path, what string, about ...any) error {
	return faultOf(path, fault.ErrUnsafe, fmt.Errorf(what, about...))
}

// code returns SQLite's result code with its details, 0 for any other error.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// primary is the result code without its details.
func primary(err error) int { return code(err) & 0xff }

// busy reports whether another process holds the database.
func busy(err error) bool {
	c := primary(err)
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED
}

// Taken finds the columns in SQLite's message, which says them nowhere else: "constraint
// failed: UNIQUE constraint failed: jobs.id (2067)".
func (e *engine) Taken(err error) string {
	switch code(err) {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY, lib.SQLITE_CONSTRAINT_ROWID:
	default:
		return ""
	}

	refused, _ := errors.AsType[*sqlite.Error](err)
	_, columns, _ := strings.Cut(refused.Error(), "UNIQUE constraint failed: ")
	columns, _, _ = strings.Cut(columns, " (")

	return columns
}

// classify gives an error about the file the kind that callers test for.
func classify(path string, err error) error {
	// A connection that opens its log looks at the main file by its path: when that
	// was moved a moment ago nothing was written, and no disk has failed.
	if code(err) == lib.SQLITE_IOERR_FSTAT && !errors.As(err, new(*health.Fault)) {
		return unsafe(path, "the database file %s is not in its place (%w); put it back, and work continues automatically", path, err)
	}

	if kind := kindOf(err); kind != nil && !errors.As(err, new(*health.Fault)) {
		return faultOf(path, kind, err)
	}

	return err
}

// isOneOf reports whether an error has one of SQLite's result codes.
func isOneOf(err error, codes ...int) bool { return slices.Contains(codes, primary(err)) }

// kindOf is the kind of an error about the file, nil for any other. After an
// I/O error it is unknown what is on the disk until the file is opened again.
func kindOf(err error) error {
	p := primary(err)
	switch {
	case p == lib.SQLITE_CORRUPT || p == lib.SQLITE_NOTADB:
		return fault.ErrCorrupt
	case p == lib.SQLITE_IOERR || errors.Is(err, fault.ErrBroken): // before others: a failed rollback carries its cause
		return fault.ErrBroken
	case busy(err):
		return fault.ErrBusy
	case p == lib.SQLITE_FULL:
		return fault.ErrStorageFull
	case p == lib.SQLITE_READONLY:
		return fault.ErrReadOnly
	case p == lib.SQLITE_NOMEM || p == lib.SQLITE_CANTOPEN && resource.Probe(shortage.Descriptors) != nil:
		return fault.ErrStarved
	}

	return nil
}
