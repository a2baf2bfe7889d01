// Package health says what is wrong with a database: the fault that keeps the program from writing, in the
// words of the engine that met it, whether the database can still be trusted, and what keeps its server
// from cleaning up.
package health

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/fault"
)

// Fault is what is wrong with the database, in the words of its engine.
type Fault struct {
	Kind  error     // fault.ErrBusy, ErrStarved, ErrStorageFull, ErrReadOnly, ErrUnsafe, ErrBroken, ErrTakenOver or ErrCorrupt
	Words string    // what happened to which database, and what to do
	Err   error     // what the engine said; of fault.ErrUnsafe, the words have it
	Where slog.Attr // which database, for the log; never with a password

	Since time.Time // when this was first seen; zero where it was not recorded
}

func (f *Fault) Error() string {
	if f.Kind == fault.ErrUnsafe {
		return f.Words
	}
	return fmt.Sprintf("%s (%v)", f.Words, f.Err)
}

// Advice says what happened, and what to do about it.
func (f *Fault) Advice() string { return f.Words }

// Unwrap gives the kind and the cause.
func (f *Fault) Unwrap() []error { return []error{f.Kind, f.Err} }

// LockedError says that another process works on the database.
type LockedError struct {
	Path string // the database

	PID    int    // the holder, on this machine; 0 when it could not be told, or is on another one
	Holder string // the holder on a machine of its own: its name and process, or empty
	URL    string // where it answers requests, as it announced; may be empty
	Key    string // what it takes for the word of its own user; may be empty
}

// AnswersOn reports whether programs on a machine of that name can use the address of the holder. A
// loopback address is one of the holder's own machine.
func (e *LockedError) AnswersOn(machine string) bool {
	its, _, _ := strings.Cut(e.Holder, ":")
	return !e.IsLoopback() || its == machine
}

// IsLoopback reports whether the holder answers on its own machine only.
func (e *LockedError) IsLoopback() bool {
	at, err := url.Parse(e.URL)
	if err != nil {
		return false
	}

	ip := net.ParseIP(at.Hostname())

	return at.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func (e *LockedError) Error() string {
	if e.Holder != "" {
		return fmt.Sprintf("the process %s works on the database %s", e.Holder, e.Path)
	}

	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another process: stop it, or use another file", e.Path)
	}
	return fmt.Sprintf("%s is in use by the process with pid %d: stop it, or use another file", e.Path, e.PID)
}

// Health remembers why nothing can be written, for pages and probes.
type Health struct {
	log     *slog.Logger
	mu      sync.Mutex // held while problem changes
	problem atomic.Pointer[Fault]
	failed  chan struct{} // closed when the database can no longer be trusted

	hindrances atomic.Pointer[[]Hindrance]
}

// New is the health of a database that has just been opened.
func New(log *slog.Logger) *Health { return &Health{log: log, failed: make(chan struct{})} }

// Log is where the database tells of itself.
func (h *Health) Log() *slog.Logger { return h.log }

// Problem says why nothing can be written, as far as the last attempt showed.
func (h *Health) Problem() *Fault { return h.problem.Load() }

// Failed is closed when nothing will be written any more; Problem says why.
func (h *Health) Failed() <-chan struct{} { return h.failed }

// Report remembers what an error says of the database, and returns it. The engine
// has given the error its kind.
func (h *Health) Report(err error) error {
	found, ok := errors.AsType[*Fault](err)
	if !ok || found.Kind == fault.ErrBusy {
		return err
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	before := h.problem.Load()
	switch {
	case h.Broken():
		return err
	case errors.Is(found, fault.ErrBroken):
		h.remember(found, before)
		close(h.failed)
		h.log.Error("The database failed. No more writes.", found.Where, "error", found)
	case before == nil || before.Words != found.Words:
		h.remember(found, before)
		h.log.Warn("The database cannot be written. Redrive tries again every second.", found.Where, "error", found)
	}

	return err
}

// remember keeps a problem, with the moment at which the trouble began. The caller
// holds the mutex.
func (h *Health) remember(found, before *Fault) {
	kept := *found
	kept.Since = time.Now().UTC()
	if before != nil {
		kept.Since = before.Since
	}

	h.problem.Store(&kept)
}

// Wrote ends the trouble that a write can end.
func (h *Health) Wrote() {
	problem := h.Problem()
	if problem == nil {
		return
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	if !h.Broken() {
		h.problem.Store(nil)
		h.log.Info("The database can be written again.", problem.Where)
	}
}

// Broken reports whether the database can no longer be trusted.
func (h *Health) Broken() bool {
	select {
	case <-h.failed:
		return true
	default:
		return false
	}
}
