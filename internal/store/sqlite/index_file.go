package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"

	lib "modernc.org/sqlite/lib"

	"redrive/internal/fault"
	"redrive/internal/store/db"
)

// The index of texts is a file of its own beside the main one, because SQLite has one
// writer for each file: jobs that fail are written on one processor, and made
// searchable on another. Connections that read have it attached.
//
// It holds nothing that the main file does not say. When it is missing, cannot be read
// at a start, or belongs to another state of the main file (see db.IndexState), it is
// rebuilt. Damage that shows later ends searches, and nothing else.

// indexSuffix is appended to the name of the main file to name the index.
const indexSuffix = "-search"

// indexVersion is the version of the schema in index.sql, and indexApplication the
// application that its files are of.
const (
	indexVersion     = 3
	indexApplication = 0x52445253
)

//go:embed index.sql
var indexSchema string

// indexFile is the open index.
type indexFile struct {
	path    string
	fault   error // why it cannot be used; nil: it can be
	removed error // why the file that was there was removed; nil: it was not

	mu    sync.Mutex // held for each transaction
	pool  *sql.DB    // of one connection
	write indexWriter
}

// indexWriter is the connection that writes to the index.
type indexWriter struct{ *session }

// Begin takes the write lock at once. No other process of Redrive writes to the index,
// because the main file is locked.
func (w indexWriter) Begin(context.Context) error {
	_, err := w.Exec("BEGIN IMMEDIATE")
	return err
}

// openIndex opens the index of the main file at a path, and makes it when there is
// none, or one of another version. One that cannot be opened is no reason not to
// start: everything but searching works without it.
func openIndex(ctx context.Context, main string) *indexFile {
	f := &indexFile{path: main + indexSuffix}
	f.fault = f.open(ctx)
	if isOneOf(f.fault, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB) || errors.Is(f.fault, errOldIndex) {
		f.removed = f.fault
		f.fault = f.remove()
		if f.fault == nil {
			f.fault = f.open(ctx)
		}
	}

	return f
}

// errOldIndex says that another version of this program made the index.
var errOldIndex = errors.New("the search index has another version")

// open opens the file, or makes it for its owner alone.
func (f *indexFile) open(ctx context.Context) (err error) {
	file, refused := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if refused == nil {
		refused = file.Close() // SQLite has not opened it yet
	}

	if _, missing := os.Lstat(f.path); missing != nil { // an index that can only be read can still be searched
		return f.classify(refused)
	}

	f.pool, err = sql.Open("sqlite", indexDSN(f.path))
	if err != nil {
		return err
	}

	f.pool.SetMaxOpenConns(1)

	c, err := f.pool.Conn(ctx)
	if err == nil {
		f.write = indexWriter{newSession(c)}
		err = f.prepare(ctx)
	}

	if err != nil {
		return f.classify(errors.Join(err, refused, f.discard()))
	}

	return nil
}

// prepare makes the tables of a new file. It returns errOldIndex for a file with the
// tables of another version.
func (f *indexFile) prepare(ctx context.Context) error {
	const query = `SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_user_version, pragma_application_id`
	var version, application, tables int64
	if _, err := db.Row(f.write, query, []any{&version, &application, &tables}); err != nil {
		return err
	}

	switch {
	case tables > 0 && application != indexApplication:
		return fmt.Errorf("%s is a database of another program; move it away and start this program again", f.path)
	case version == indexVersion:
		_, err := db.Value[int64](f.write, `SELECT revision FROM search_state`)
		return err
	case tables > 0:
		return errOldIndex
	}

	_, err := f.write.conn.ExecContext(ctx, indexSchema)

	return err
}

// remove removes the index with its log.
func (f *indexFile) remove() error {
	var errs []error
	for _, suffix := range append([]string{""}, besides...) {
		if err := os.Remove(f.path + suffix); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}

	return errors.Join(errs...)
}

// discard closes the connection, if there is one.
func (f *indexFile) discard() error {
	if f.pool == nil {
		return nil
	}

	var err error
	if f.write.session != nil {
		err = f.write.Close()
	}

	err = errors.Join(err, f.pool.Close())
	f.pool, f.write = nil, indexWriter{}

	return err
}

// close waits for a transaction that is under way, and refuses later ones.
func (f *indexFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.fault = db.ErrClosed

	return f.discard()
}

// transact runs do in one transaction of the index.
func (f *indexFile) transact(ctx context.Context, do func(*db.Tx) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	switch {
	case errors.Is(f.fault, db.ErrClosed):
		return f.fault
	case f.fault != nil:
		return fmt.Errorf("the search index cannot be used until this program is restarted: %w", f.fault)
	}

	err := f.classify(db.Transact(ctx, f.write, do))
	if errors.Is(err, fault.ErrBroken) {
		f.fault = err // the connection may still be in the transaction
	}

	return err
}

// Fault takes the error of a query that reads both files for one of the index: damage
// of the main file shows in its other queries, too.
func (f *indexFile) Fault(query string, err error) (fault error, ok bool) {
	if !strings.Contains(query, "search_") || strings.Contains(query, "search_backlog") {
		return err, false
	}
	return f.classify(err), true
}

// classify gives an error about the index its kind.
func (f *indexFile) classify(err error) error {
	switch {
	case err != nil && strings.Contains(err.Error(), "no such table: search"): // it was missing when the connection was opened
		return fmt.Errorf("the search index %s is not in its place (%w); "+
			"restart this program: the index will be rebuilt", f.path, err)
	case isOneOf(err, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB):
		return unsafe(f.path, "the search index %s is damaged (%w); "+
			"stop this program, remove the file and start it again: the index will be rebuilt", f.path, err)
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return faultOf(f.path, fault.ErrReadOnly, err)
	}

	return classify(f.path, err)
}
