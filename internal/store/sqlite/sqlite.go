// Package sqlite is the store's database in one SQLite file: how the file is
// opened, locked, migrated and checkpointed, what its errors mean, and the index
// of texts (FTS5). It is all that the store has of SQLite; see package db for
// the seam.
//
// The file has one writer, whatever its name: the main file is locked for as long
// as the process lives (see locks), and every transaction looks first whether the
// path still leads there (see mainFile.check). SQLite itself would let a second
// program write, and the store takes much for known that only its own writes
// change.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"redrive/internal/store/db"
	"redrive/internal/store/health"
	"redrive/internal/store/moving"
)

// File is a database in a file.
type File struct {
	Path    string         // it is created when there is none
	Relaxed bool           // faster, but a power cut may lose the last moments
	For     moving.Purpose // what it is opened for; zero: to work on it
}

// Open opens the file, makes it when there is none, and brings its schema up to
// date. It returns a *health.LockedError when another process has it open, and
// refuses, without writing a byte, a file that is no database or has a newer
// schema. A full disk or a file that can only be read is no reason to refuse:
// what is there can be looked at.
func (f File) Open(ctx context.Context, health *health.Health) (db.Engine, error) {
	path, err := resolve(f.Path)
	if err != nil {
		return nil, openingError(f.Path, err)
	}

	// To lock it would make it.
	if _, missing := os.Stat(path); f.For == moving.ToCopy && missing != nil {
		return nil, openingError(path, missing)
	}

	held, err := lock(ctx, path)
	if err != nil {
		return nil, openingError(path, err)
	}

	e := &engine{path: path, locks: held, purpose: f.For, health: health, dsn: writerDSN(path, f.Relaxed)}
	if err := e.open(ctx); err != nil {
		return nil, errors.Join(openingError(path, e.Fault(err)), held.abandon())
	}

	return e, nil
}

// openingError names the file, unless the error does. What this user may not open is as
// little use to another start as a file that is not safe.
func openingError(path string, err error) error {
	if errors.As(err, new(*health.Fault)) || errors.As(err, new(*health.LockedError)) {
		return err
	}

	if errors.Is(err, fs.ErrPermission) {
		return unsafe(path, "open %s: %w", path, err)
	}

	return fmt.Errorf("open %s: %w", path, err)
}

// engine is an open file.
type engine struct {
	path    string
	locks   *locks
	purpose moving.Purpose
	health  *health.Health
	made    bool // there was no database before

	// The connections: one that writes, a pool that reads, and those of the index and the
	// checkpoints.
	dsn         string  // of the connection that writes
	writes      *sql.DB // holds that connection
	writer      *conn   // that connection
	reads       *sql.DB
	index       index
	checkpoints *checkpointer
	disconnect  func() error // closes all of them

	// What the writer has found out of the files. Only the writer's goroutine uses it.
	logged   bool      // it was noted that the log holds jobs, or cannot be
	apart    bool      // the files were found apart, and the log was emptied
	unlisted bool      // the lock file was removed and cannot be recreated
	listed   time.Time // when the lock file was looked at
}

// readers is the size of the pool that serves pages.
const readers = 4

// open does everything that needs the locks.
func (e *engine) open(ctx context.Context) (err error) {
	// This connection cannot write: a file that is not Redrive's stays as it is. What a killed
	// process left half written is undone first.
	version, err := checkVersion(ctx, e.path, rest{}.mode())
	if halfWritten(err) {
		if err := rollBack(ctx, e.path); err != nil {
			return fmt.Errorf("undo what was half written: %w", err)
		}

		version, err = checkVersion(ctx, e.path, rest{}.mode())
	}

	if err != nil {
		return err
	}

	if wrong := e.purpose.CheckSchema(version, schemaVersion); wrong != nil {
		return fmt.Errorf("%s cannot be copied: %w", e.path, wrong)
	}

	e.writes = pool(connector{main: e.locks.main, dsn: e.dsn}, 1)
	if version < schemaVersion {
		err = e.migrate(ctx, version)
	}

	e.made = version == 0
	if e.made && err == nil { // a mistyped name would look like lost jobs
		e.health.Log().Info("Made a new database.", "path", e.path)
	}

	if err == nil {
		err = e.locks.noteMade()
	}

	if err == nil {
		err = whole(ctx, e.writes, e.path, e.purpose)
	}

	if err != nil {
		return errors.Join(err, e.closeWrites())
	}

	if err := e.openReads(ctx); err != nil {
		return errors.Join(err, e.closeWrites())
	}

	e.checkpoints = startCheckpointer(e)
	e.disconnect = sync.OnceValue(func() error {
		return errors.Join(e.checkpoints.stop(), e.reads.Close(), e.index.close(), e.closeWrites())
	})

	return nil
}

// closeWrites closes the last connection. SQLite moves the log into the file then, and removes
// it. The note about the log goes before that, so that a kill in between leaves a log too many
// and never one too few; where not all of it could be moved, it goes afterwards, if at all.
func (e *engine) closeWrites() error {
	const move = `PRAGMA wal_checkpoint(FULL)`
	var busy, pages, moved int

	var noting error
	err := e.writes.QueryRowContext(context.Background(), move).Scan(&busy, &pages, &moved)
	if err == nil && busy == 0 && pages == moved {
		noting = e.locks.noteLog(false)
	}

	closing := e.writes.Close()

	if logs, err := hasLog(e.path); err == nil && !logs && e.locks.main.checkPath() == nil {
		noting = e.locks.noteLog(false)
	}

	return errors.Join(closing, noting)
}

// openReads opens the index, and the connections that read, which have it attached.
func (e *engine) openReads(ctx context.Context) error {
	e.index = index{openIndex(ctx, e.path)}
	if e.index.removed != nil {
		e.health.Log().Warn("The search index cannot be used and was removed. It will be rebuilt.",
			"path", e.index.path, "error", e.index.removed)
	}

	if e.index.fault != nil {
		e.health.Log().Error("The search index cannot be opened. Searches find nothing until the program is restarted.",
			"path", e.index.path, "error", e.index.fault)
	}

	// Everything but searching works without an index.
	from := connector{main: e.locks.main, dsn: readerDSN(e.path)}
	if e.index.fault == nil {
		from.index = e.index.path
	}

	e.reads = pool(from, readers)

	err := fill(ctx, e.reads, readers)
	if err == nil {
		err = e.adopt(ctx)
	}

	if err != nil {
		return errors.Join(err, e.reads.Close(), e.index.close())
	}

	return nil
}

// adopt takes an empty index for that of a database that never had a job: nothing is
// missing from it.
func (e *engine) adopt(ctx context.Context) error {
	// There is a row if the database never had a job, and the index has another mark.
	const query = `SELECT r.index_mark FROM redaction AS r, revision AS v, search_state AS s
		WHERE v.newest = 0 AND s.mark <> r.index_mark`

	if e.index.fault != nil {
		return nil
	}

	var state db.IndexState
	switch err := e.reads.QueryRowContext(ctx, query).Scan(&state.Version); {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}

	return e.index.Clear(ctx, state)
}

func (e *engine) Made() bool { return e.made }

func (e *engine) Reads() *sql.DB { return e.reads }

// Text returns a statement as it is: the store writes SQLite's dialect where the
// engines differ.
func (e *engine) Text(query string) string { return query }

// KeepsDeadRows is false: a commit leaves nothing behind.
func (*engine) KeepsDeadRows() bool { return false }

// ReadsInWindows is false: a query that is broken off costs nothing.
func (*engine) ReadsInWindows() bool { return false }

func (e *engine) Fault(err error) error { return classify(e.path, err) }

// Again is false: Begin waits for a database that another process keeps busy.
func (e *engine) Again(error) bool { return false }

func (e *engine) Search() db.Search { return e.index }

// Close is called after the writer's connection was closed.
func (e *engine) Close() error { return errors.Join(e.disconnect(), e.locks.Close()) }

// Abandon removes the files while they are locked: no other process has them open.
func (e *engine) Abandon() error {
	err := e.disconnect()
	if !e.made || e.locks.main.checkPath() != nil {
		return errors.Join(err, e.locks.Close())
	}

	for _, name := range filesOf(e.path) {
		if problem := os.Remove(name); !errors.Is(problem, fs.ErrNotExist) {
			err = errors.Join(err, problem)
		}
	}

	return errors.Join(err, e.locks.noteGone(), e.locks.abandon())
}

// Writer returns the one connection that writes.
func (e *engine) Writer(ctx context.Context) (db.Conn, error) {
	c, err := e.writes.Conn(ctx)
	if err != nil {
		return nil, err
	}

	e.writer = &conn{newSession(c), e}

	return e.writer, nil
}
