package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"redrive/internal/access"
	"redrive/internal/job"
)

// errClosed answers whoever comes after Close.
var errClosed = errors.New("the store is closed")

// FileError says what is wrong with the database file, and what to do.
type FileError struct {
	Path string
	Kind error // job.ErrBusy, ErrStorageFull, ErrReadOnly, ErrBroken or ErrCorrupt
	Err  error // what SQLite said
}

func (e *FileError) Error() string { return fmt.Sprintf("%s (%v)", e.Advice(), e.Err) }

// Unwrap gives the kind and the cause.
func (e *FileError) Unwrap() []error { return []error{e.Kind, e.Err} }

// Advice is the error in words for people, without those of SQLite.
func (e *FileError) Advice() string {
	switch e.Kind {
	case job.ErrBusy:
		return fmt.Sprintf("another process keeps the database %s busy; try again", e.Path)
	case job.ErrStorageFull:
		return fmt.Sprintf("the disk that holds the database %s is full; make room, and writing starts again by itself", e.Path)
	case job.ErrReadOnly:
		return fmt.Sprintf("the database file %s can only be read; make it writable for the user of this program, then start the program again", e.Path)
	case job.ErrCorrupt:
		return fmt.Sprintf("the database file %s is damaged; restore a backup, or copy out what can still be read: sqlite3 '%s' .recover | sqlite3 NEW-FILE", e.Path, e.Path)
	}
	return fmt.Sprintf("the database file %s failed, and whether the last writes were done is open; look after the disk, then start the program again", e.Path)
}

// code returns SQLite's result code with its details, 0 for any other error.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// classify gives an error about the file the kind that callers test for.
func classify(path string, err error) error {
	if kind := kindOf(err); kind != nil && !errors.As(err, new(*FileError)) {
		return &FileError{Path: path, Kind: kind, Err: err}
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

// primary is the result code without its details.
func primary(err error) int { return code(err) & 0xff }

// busy reports whether another process holds the database.
func busy(err error) bool {
	c := primary(err)
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED
}

// refused reports whether an operation looked and, having written nothing, said
// no: its answer, not a fault.
func refused(err error) bool {
	var conflict *job.Conflict
	return errors.As(err, &conflict) || errors.Is(err, job.ErrNotFound) || errors.As(err, new(*access.Refusal)) || errors.Is(err, access.ErrUnknown)
}
