package sqlite

import (
	"errors"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"redrive/internal/job"
	"redrive/internal/store/db"
)

// code returns SQLite's result code with its details, 0 for any other error.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
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

// Taken reports whether a row was refused because of a unique value that exists.
func (e *engine) Taken(err error) bool { return code(err) == lib.SQLITE_CONSTRAINT_UNIQUE }

// classify gives an error about the file the kind that callers test for.
func classify(path string, err error) error {
	if kind := kindOf(err); kind != nil && !errors.As(err, new(*db.FileError)) {
		return &db.FileError{Path: path, Kind: kind, Err: err}
	}
	return err
}

// kindOf is the kind of an error about the file, nil for any other. After an
// I/O error nobody knows what is on the disk until the file is opened again.
func kindOf(err error) error {
	p := primary(err)
	switch {
	case p == lib.SQLITE_CORRUPT || p == lib.SQLITE_NOTADB:
		return job.ErrCorrupt
	case p == lib.SQLITE_IOERR || errors.Is(err, job.ErrBroken): // before others: a failed rollback carries its cause
		return job.ErrBroken
	case busy(err):
		return job.ErrBusy
	case p == lib.SQLITE_FULL:
		return job.ErrStorageFull
	case p == lib.SQLITE_READONLY:
		return job.ErrReadOnly
	}
	return nil
}
