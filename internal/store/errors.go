package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"redrive/internal/job"
)

// errClosed answers whoever comes after Close.
var errClosed = errors.New("the store is closed")

// code returns SQLite's result code with its details, 0 for any other error.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// classify gives an error of SQLite the kind that callers test for.
func classify(err error) error {
	switch primary(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", job.ErrBusy, err)
	case lib.SQLITE_FULL:
		return fmt.Errorf("%w: %w", job.ErrStorageFull, err)
	case lib.SQLITE_READONLY:
		return fmt.Errorf("%w: %w", job.ErrReadOnly, err)
	}
	if broken(err) {
		return fmt.Errorf("%w: %w", job.ErrBroken, err)
	}
	return err
}

// primary is the result code without its details.
func primary(err error) int { return code(err) & 0xff }

// broken reports whether the file can no longer be trusted: after a failed
// fsync nobody knows what is on the disk until the file is opened again.
func broken(err error) bool {
	switch primary(err) {
	case lib.SQLITE_IOERR, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return true
	}
	return false
}

// busy reports whether another process holds the database.
func busy(err error) bool {
	c := primary(err)
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED
}

// refused reports whether an operation looked and, having written nothing, said
// no: its answer, not a fault.
func refused(err error) bool {
	var conflict *job.Conflict
	return errors.As(err, &conflict) || errors.Is(err, job.ErrNotFound)
}
