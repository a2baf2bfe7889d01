// Package store keeps jobs, their history and their counters in one SQLite file.
//
// # One writer
//
// All writes go through one goroutine with one connection. Callers queue an
// operation and wait; the writer takes whatever has queued, runs it in one
// transaction and answers everybody after its commit. One fsync thus serves
// many callers under load, and nobody waits for a timer when idle. An operation
// that fails makes the writer roll back and run each of the batch alone, so an
// operation must give the same result when it is run again, and nobody fails
// for somebody else's fault. An operation that merely says no (*job.Conflict,
// job.ErrNotFound) has written nothing and disturbs nobody.
//
// A caller's context bounds its waiting only: a transaction is never cancelled,
// because a rollback in the middle would let the statements after it commit by
// themselves. Whoever stops waiting finds its operation done or not done,
// never half done.
//
// # What is counted
//
// Lists and totals never count rows: every change of a job moves rollup tables
// (depths, counters, minutes, reasons, held) in the same transaction. The
// changes of a batch are added up in memory first (see delta), so that a
// thousand jobs cost a handful of updates. After the commit the same sums move
// the Snapshot that live pages read without touching the database.
//
// # Fencing
//
// Every write that ends or extends an execution names (id, run, execution), and
// is looked up among the active executions, which the writer keeps in memory:
// the file has no other writer. One that is not there was fenced off by a newer
// claim, a cancellation or a replay: it is reported as stale, and nothing of it
// is written. The statements name the execution all the same. When they then
// meet another number of rows than memory promised, somebody else has written
// to the file, and the store stops for good.
//
// # Faults
//
// A database that another process keeps busy is tried again up to ten times
// (job.ErrBusy); a full disk fails the transaction as a whole and is over as
// soon as there is room (job.ErrStorageFull). While the disk is full, or the
// file can only be read, Problem says so, and the writer tries a write that
// changes nothing every second. After an I/O error nobody knows what the disk
// holds: the store stops for good (job.ErrBroken, see Failed), and the process
// must open the file again. It stops as well when a reader or the writer finds
// the file damaged (job.ErrCorrupt): each further write could do more harm.
//
// The store never reads a clock: times are passed in.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"redrive/internal/job"
)

// Options say where and how a store keeps its data.
type Options struct {
	Path     string             // the database file
	Relaxed  bool               // faster, but a power cut may lose the last moments
	OnCommit func([]job.Change) // called by the writer after each commit that moved jobs, and with none when a queue was resumed or a count changed; must not block
	Log      *slog.Logger       // nil: nothing is logged

	// What is shown to nobody is not found either: Redact takes it out of the
	// payload or meta of a type of job, RedactText out of an error, before they can be searched.
	// Default: everything can be found.
	// Fingerprint changes with what they take out; all is then made searchable anew.
	Redact      func(typ string, data []byte) []byte
	RedactText  func(string) string
	Fingerprint string
}

// Store is an open database. Its methods can be used by many goroutines.
type Store struct {
	path     string
	log      *slog.Logger
	onCommit func([]job.Change)
	redact   redaction
	lock     *lockFile
	reads    *sql.DB
	prepared sync.Map // text of a query to its *sql.Stmt on reads
	policies policies
	trouble  trouble
	snapshot atomic.Pointer[job.Snapshot]
	names    atomic.Pointer[[]string] // of queues, sorted
	guarded  atomic.Bool              // there is a user or a token
	stale    atomic.Bool              // the index was made by another redaction
	filling  atomic.Bool              // so it was, and not every failure has come to it anew
	close    func() error
	*writer
}

// Open opens the database at o.Path, makes it when there is none, and brings
// its schema up to date. It returns a *LockedError when another process has it
// open, and refuses, without writing a byte, a file that is no database or has
// a newer schema. A full disk or a file that can only be read is no reason to
// refuse: what is there can be looked at, and Problem says what is wrong.
func Open(ctx context.Context, o Options) (*Store, error) {
	path, err := resolve(o.Path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Path, err)
	}
	held, err := lock(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, log: o.Log, onCommit: o.OnCommit, redact: newRedaction(o), lock: held}
	s.trouble.failed = make(chan struct{})
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.open(ctx, o.Relaxed); err != nil {
		if err = classify(path, err); !errors.As(err, new(*FileError)) {
			err = fmt.Errorf("open %s: %w", path, err)
		}
		return nil, errors.Join(err, held.abandon())
	}
	return s, nil
}

// open does everything that needs the lock.
func (s *Store) open(ctx context.Context, relaxed bool) error {
	if err := prepare(s.path); err != nil {
		return err
	}
	version, err := checkVersion(ctx, s.path, schemaVersion)
	if err != nil {
		return err
	}
	w, err := openWriter(ctx, s, writerDSN(s.path, relaxed), version < schemaVersion)
	if err != nil {
		return err
	}
	s.writer = w
	if w.checkpoints, err = openCheckpointer(s); err != nil {
		return errors.Join(err, w.close())
	}
	s.reads, err = sql.Open("sqlite", readerDSN(s.path))
	if err == nil {
		s.reads.SetMaxOpenConns(readers)
		s.reads.SetMaxIdleConns(readers)
		err = s.load(ctx)
	}
	if err == nil {
		err = s.loadGuarded(s.reading(ctx))
	}
	if err == nil {
		err = s.loadRedaction(s.reading(ctx))
	}
	if err == nil {
		err = w.tryFirst()
	}
	if err != nil {
		return errors.Join(err, s.reads.Close(), w.checkpoints.db.Close(), w.close())
	}
	s.close = sync.OnceValue(func() error {
		w.stop()
		return errors.Join(w.checkpoints.stop(), s.reads.Close(), w.close(), s.lock.Close())
	})
	w.checkpoints.start()
	w.start()
	return nil
}

// readers is the size of the pool that serves pages.
const readers = 4

// Close finishes what has queued, stops the writer and closes the file. Closing
// again does nothing.
func (s *Store) Close() error { return s.close() }
