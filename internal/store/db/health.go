package db

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/fault"
)

// FileError says what is wrong with the database file, and what to do.
type FileError struct {
	Path string
	Kind error // fault.ErrBusy, ErrStarved, ErrStorageFull, ErrReadOnly, ErrUnsafe, ErrBroken or ErrCorrupt
	Err  error // what the engine said; of fault.ErrUnsafe, what is wrong and what to do

	Since time.Time // when this was first seen; zero where it was not recorded
}

func (e *FileError) Error() string {
	if e.Kind == fault.ErrUnsafe {
		return e.Advice()
	}
	return fmt.Sprintf("%s (%v)", e.Advice(), e.Err)
}

// Unwrap gives the kind and the cause.
func (e *FileError) Unwrap() []error { return []error{e.Kind, e.Err} }

// Advice is the error in words for people, without those of the engine.
func (e *FileError) Advice() string {
	switch e.Kind {
	case fault.ErrBusy:
		return fmt.Sprintf("another process is keeping the database %s busy; try again", e.Path)
	case fault.ErrStarved:
		return fmt.Sprintf("the database %s could not open another file or allocate memory; raise the limits of this process, "+
			"and writing resumes automatically", e.Path)
	case fault.ErrStorageFull:
		return fmt.Sprintf("the disk that holds the database %s is full; make room, and writing resumes automatically", e.Path)
	case fault.ErrReadOnly:
		return fmt.Sprintf("the database file %s is read-only; make it writable for the user of this program, "+
			"then restart the program", e.Path)
	case fault.ErrUnsafe:
		return e.Err.Error()
	case fault.ErrCorrupt:
		return fmt.Sprintf("the database file %s is damaged; restore a backup, or copy out what can still be read: "+
			"sqlite3 '%s' .recover | sqlite3 NEW-FILE", e.Path, e.Path)
	}

	return fmt.Sprintf("the database file %s failed, and the last writes may be lost; check the disk, "+
		"then restart the program", e.Path)
}

// LockedError says that another process works on the database.
type LockedError struct {
	Path string // the database
	PID  int    // the holder; 0 when it could not be told
	URL  string // where it answers requests, as it announced; may be empty
	Key  string // what it takes for the word of its own user; may be empty
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another process: stop it, or use another file", e.Path)
	}
	return fmt.Sprintf("%s is in use by the process with pid %d: stop it, or use another file", e.Path, e.PID)
}

// Health remembers why nothing can be written, for pages and probes.
type Health struct {
	log     *slog.Logger
	mu      sync.Mutex // held while problem changes
	problem atomic.Pointer[FileError]
	failed  chan struct{} // closed when the database can no longer be trusted
}

// NewHealth is the health of a database that has just been opened.
func NewHealth(log *slog.Logger) *Health { return &Health{log: log, failed: make(chan struct{})} }

// Log is where the database tells of itself.
func (h *Health) Log() *slog.Logger { return h.log }

// Problem says why nothing can be written, as far as the last attempt showed.
func (h *Health) Problem() *FileError { return h.problem.Load() }

// Failed is closed when nothing will be written any more; Problem says why.
func (h *Health) Failed() <-chan struct{} { return h.failed }

// Report remembers what an error says of the database, and returns it. The engine
// has given the error its kind.
func (h *Health) Report(err error) error {
	file, ok := errors.AsType[*FileError](err)
	if !ok || file.Kind == fault.ErrBusy {
		return err
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	before := h.problem.Load()
	switch {
	case h.broken():
		return err
	case errors.Is(file, fault.ErrBroken):
		h.remember(file, before)
		close(h.failed)
		h.log.Error("The database failed. No more writes.", "path", file.Path, "error", file)
	case before == nil || before.Advice() != file.Advice():
		h.remember(file, before)
		h.log.Warn("The database cannot be written. Redrive tries again every second.", "path", file.Path, "error", file)
	}

	return err
}

// remember keeps a problem, with the moment at which the trouble began. The caller
// holds the mutex.
func (h *Health) remember(file, before *FileError) {
	kept := *file
	kept.Since = time.Now().UTC()
	if before != nil {
		kept.Since = before.Since
	}

	h.problem.Store(&kept)
}

// wrote ends the trouble that a write can end.
func (h *Health) wrote() {
	problem := h.Problem()
	if problem == nil {
		return
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	if !h.broken() {
		h.problem.Store(nil)
		h.log.Info("The database can be written again.", "path", problem.Path)
	}
}

func (h *Health) broken() bool {
	select {
	case <-h.failed:
		return true
	default:
		return false
	}
}
