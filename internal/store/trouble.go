package store

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/job"
)

// trouble remembers why nothing can be written, for pages and probes: a full
// disk or a file that can only be read until a write succeeds, anything that
// breaks the store for good.
type trouble struct {
	mu      sync.Mutex // held by who changes it
	problem atomic.Pointer[FileError]
	failed  chan struct{} // closed when the file can no longer be trusted
}

// Problem says why nothing can be written, as far as the last attempt showed,
// or nil. It costs nothing.
func (s *Store) Problem() *FileError { return s.trouble.problem.Load() }

// Failed is closed after an I/O failure, or when anybody found the file
// damaged; Problem says which. The store writes nothing any more: stop
// claiming and exit.
func (s *Store) Failed() <-chan struct{} { return s.trouble.failed }

// examine gives an error of SQLite its kind, whoever met it, and remembers what
// it says of the file.
func (s *Store) examine(err error) error {
	err = classify(s.path, err)
	var file *FileError
	if !errors.As(err, &file) || file.Kind == job.ErrBusy {
		return err
	}
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	before := s.trouble.problem.Load()
	switch {
	case s.isBroken():
		return err
	case errors.Is(file, job.ErrBroken):
		s.trouble.problem.Store(file)
		close(s.trouble.failed)
		s.log.Error("The database failed. No more writes.", "path", s.path, "error", file)
	case before == nil || before.Kind != file.Kind:
		s.trouble.problem.Store(file)
		s.log.Warn("The database cannot be written. It is tried again every second.", "path", s.path, "error", file)
	}
	return err
}

// wrote ends the trouble that a write can end.
func (s *Store) wrote() {
	if s.Problem() == nil {
		return
	}
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	if !s.isBroken() {
		s.trouble.problem.Store(nil)
		s.log.Info("The database can be written again.", "path", s.path)
	}
}

func (s *Store) isBroken() bool {
	select {
	case <-s.trouble.failed:
		return true
	default:
		return false
	}
}

// probeEvery is how often the writer tries to write while it cannot.
const probeEvery = time.Second

// again fires when the writer shall look whether it can write again. Without
// trouble, and after the end, it never does.
func (w *writer) again() <-chan time.Time {
	if w.store.Problem() == nil || w.store.isBroken() {
		return nil
	}
	return time.After(probeEvery)
}

// probe is the operation that takes the file's lock and some room on the disk,
// and changes nothing. It changes a row twice, because SQLite does not write
// what is equal.
func probe(t *tx) (struct{}, error) {
	for _, query := range []string{"UPDATE revision SET n = n + 1", "UPDATE revision SET n = n - 1"} {
		if n, err := t.exec(query); expect(1, n, err) != nil {
			return struct{}{}, expect(1, n, err)
		}
	}
	t.proven = true
	return struct{}{}, nil
}

// try runs a probe in the writer's own goroutine.
func (w *writer) try() error {
	return w.commit([]op{&call[struct{}]{do: probe}})
}

// tryFirst finds out at the start whether the file can be written. Trouble that
// can end is remembered and no reason not to start.
func (w *writer) tryFirst() error {
	err := w.try()
	if errors.Is(err, job.ErrStorageFull) || errors.Is(err, job.ErrReadOnly) || errors.Is(err, job.ErrBusy) {
		return nil
	}
	return err
}
