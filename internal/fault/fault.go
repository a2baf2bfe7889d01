// Package fault names what can be wrong with a database, in the words of its callers: whether
// anything was changed, whether it helps to try again, and whether a person has to act. Each
// database translates its own errors to these; engine, bulk operations and pages decide by
// them and know no database.
package fault

import (
	"context"
	"errors"
	"fmt"
)

// The kinds of fault. Callers test them with errors.Is. After all but ErrBroken and ErrCorrupt,
// nothing was changed.
var (
	// ErrBusy: the database does not keep up just now, or another process is in its way. Try again.
	ErrBusy       = errors.New("another process is keeping the database busy")
	ErrStarved    = error(busyError("the database lacks memory or file descriptors"))
	ErrOverloaded = error(busyError("too many bytes are waiting to be written"))

	// ErrUnreachable: the server of the database does not answer. Try again.
	ErrUnreachable = error(busyError("the database cannot be reached"))

	// ErrRefused is an ErrUnreachable: the server does not let this program in, or is not the one that this
	// program trusts. A person has to act.
	ErrRefused = fmt.Errorf("the server of the database refuses this program: %w", ErrUnreachable)

	// Nothing can be written until there is room, or the right to write.
	ErrStorageFull = errors.New("the disk is full")
	ErrReadOnly    = errors.New("the database is read-only")

	// ErrUnsafe: the files are not what this program left. A person has to act.
	ErrUnsafe = errors.New("the database files are not safe to use")

	// ErrBroken: stop and start again. For ErrCorrupt, which is one of them, that does not help.
	ErrBroken  = errors.New("the database failed; the last writes may be lost")
	ErrCorrupt = fmt.Errorf("the database file is damaged: %w", ErrBroken)

	// ErrTakenOver is an ErrBroken: another process works on the database by now, or may do so in a
	// moment. What this one has begun must not go on.
	ErrTakenOver = fmt.Errorf("another process works on the database: %w", ErrBroken)
)

// busyError is an ErrBusy for another reason than another process: it says only its own.
type busyError string

func (e busyError) Error() string { return string(e) }

// Unwrap makes the error an ErrBusy.
func (busyError) Unwrap() error { return ErrBusy }

// InInput reports whether a write failed for what it writes, and not for the state of the
// database or for want of time.
func InInput(err error) bool {
	for _, common := range []error{ErrBusy, ErrStorageFull, ErrReadOnly, ErrUnsafe, ErrBroken, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, common) {
			return false
		}
	}

	return err != nil
}
