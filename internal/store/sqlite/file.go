package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	lib "modernc.org/sqlite/lib"
)

// What SQLite keeps in the first bytes of a file, by offset.
const (
	headerSize          = 100
	magic               = "SQLite format 3\x00"
	applicationIDOffset = 68
	applicationID       = 0x52445256 // "RDRV"; the first migration writes it
)

// resolve returns the absolute path without symbolic links, also of a file that
// does not exist yet: two names of one database are one path. It makes no directory:
// a mistyped name, or a disk that is not mounted, looks like one that is missing.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}

	name := path
	for range maxLinks {
		if real, err := filepath.EvalSymlinks(path); !errors.Is(err, fs.ErrNotExist) {
			return real, err
		}

		target, err := os.Readlink(path)
		if err != nil { // no link
			return resolveNew(name, path)
		}

		if !filepath.IsAbs(target) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}

			target = dir + string(filepath.Separator) + target // not Join, which would shorten link/..
		}

		path = target
	}

	return "", unsafe(name, "%s leads through too many symbolic links; name the database file itself", name)
}

// maxLinks is how many symbolic links a name may lead through.
const maxLinks = 40

// resolveNew is resolve of a path at which nothing is; name led there.
func resolveNew(name, path string) (string, error) {
	dir := filepath.Dir(path)
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) && path == name {
		return "", unsafe(path, "the directory %s does not exist; create it (mkdir -p %s), or name another database file", dir, dir)
	}

	if errors.Is(err, fs.ErrNotExist) {
		return "", unsafe(path, "%s is a symbolic link to %s, whose directory does not exist: mount or create it, "+
			"or name another file", name, path)
	}

	return filepath.Join(real, filepath.Base(path)), err
}

// checkHeader refuses by its first bytes a file that is not ours, before anything
// is written to it.
func checkHeader(main io.ReaderAt, path string) error {
	header := make([]byte, headerSize)

	n, err := main.ReadAt(header, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}

	if n == 0 {
		return nil // new
	}

	sound := n == headerSize && string(header[:len(magic)]) == magic
	id := binary.BigEndian.Uint32(header[applicationIDOffset:])
	if sound && id == applicationID {
		return nil
	}

	if sound && id != 0 {
		return fmt.Errorf("the file is an SQLite database of another program (application id %#x) and %w; it was left as it is: "+
			"name another file", id, ErrForeign)
	}

	switch made, hot, err := journalOf(path); {
	case err != nil:
		return err
	case made:
		return nil
	case !sound:
		return fmt.Errorf("%s is %w: it is not an SQLite database; it was left as it is: name another file", path, ErrForeign)
	case hot:
		return fmt.Errorf("the file is an SQLite database of another program, with an unfinished write, and %w; it was left as it is: "+
			"name another file", ErrForeign)
	}

	return nil
}

// What a rollback journal begins with, by offset.
const (
	journalMagic  = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
	journalPages  = 16 // how many pages the database had before
	journalHeader = 28
)

// journalOf reports whether there is a rollback journal beside the file with something
// to undo (hot), and whether what it undoes is the creation of the database (made): then
// a first start was killed, and once it is undone the file is empty. Later writes use
// the log.
func journalOf(path string) (made, hot bool, err error) {
	f, err := os.Open(path + "-journal")
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}

	if err != nil {
		return false, false, err
	}

	header := make([]byte, journalHeader)

	_, err = io.ReadFull(f, header)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // it was just begun
		return false, false, f.Close()
	}

	hot = string(header[:len(journalMagic)]) == journalMagic
	made = hot && binary.BigEndian.Uint32(header[journalPages:]) == 0

	return made, hot, errors.Join(err, f.Close())
}

// rollBack lets SQLite undo what a process was writing when it was killed.
func rollBack(ctx context.Context, path string) error {
	pool, err := sql.Open("sqlite", dsn(path, "mode=rw"))
	if err != nil {
		return err
	}

	var tables int
	const query = `SELECT count(*) FROM sqlite_schema`

	return errors.Join(pool.QueryRowContext(ctx, query).Scan(&tables), pool.Close())
}

// halfWritten reports whether an error says that a write has to be undone first,
// which a connection that only reads cannot do.
func halfWritten(err error) bool { return code(err) == lib.SQLITE_READONLY_ROLLBACK }

// denied is the error of a file that a command only reads, and says what to do when the
// user of this process has no right to it. SQLite does not tell which file that is: it
// reads the log and its index as well, and makes these when they are missing.
func denied(path string, err error) error {
	const remedy = "run this command as the user who runs the dashboard"
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; %s", err, remedy)
	}

	if !isOneOf(err, lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY) {
		return err
	}

	for _, suffix := range append([]string{""}, besides...) {
		if errors.Is(access(path+suffix, unix.R_OK), fs.ErrPermission) {
			return fmt.Errorf("read %s: %w; %s", path+suffix, fs.ErrPermission, remedy)
		}
	}

	if dir := filepath.Dir(path); errors.Is(access(dir, unix.W_OK), fs.ErrPermission) {
		return fmt.Errorf("write to the directory %s, where SQLite needs a file to read %s: %w; %s", dir, path, fs.ErrPermission, remedy)
	}

	return err
}

// unreadable says what to do about a file that cannot be looked at because this user has
// no right to, or because a write has to be undone first. It returns nil for every other
// error.
func unreadable(path string, err error) error {
	if err := denied(path, err); errors.Is(err, fs.ErrPermission) {
		return err
	}

	if halfWritten(err) {
		return unsafe(path, "%s was left with an unfinished write by a killed process; start the dashboard with it once to undo the write", path)
	}

	return nil
}

// access asks whether the user of this process has a right, and opens nothing.
func access(name string, right uint32) error {
	return unix.Faccessat(unix.AT_FDCWD, name, right, unix.AT_EACCESS)
}

// rest is the state of a database that no program has open: it has no log, and nothing to
// undo. what is nil when a program has it open, or was killed.
type rest struct {
	path string
	what os.FileInfo
}

func restOf(path string) rest {
	for _, main := range []string{path, path + indexSuffix} {
		for _, suffix := range besides {
			if _, err := os.Lstat(main + suffix); !errors.Is(err, fs.ErrNotExist) {
				return rest{path: path}
			}
		}
	}

	what, err := os.Stat(path)
	if err != nil {
		return rest{path: path}
	}

	return rest{path, what}
}

// lasts reports whether the database is still as it was.
func (r rest) lasts() bool {
	now := restOf(r.path).what
	return now != nil && os.SameFile(now, r.what) && now.Size() == r.what.Size() && now.ModTime().Equal(r.what.ModTime())
}

// mode is how a connection that only reads opens the database. SQLite would make a log for
// one at rest, and leave it there.
func (r rest) mode() []string {
	if r.what == nil {
		return []string{"mode=ro"}
	}
	return []string{"mode=ro", "immutable=1"}
}

// checkVersion returns the version of the schema, 0 for an empty file, and
// refuses one that this program does not know, through a connection that cannot
// write.
func checkVersion(ctx context.Context, path string, mode []string) (version int64, err error) {
	pool, err := sql.Open("sqlite", dsn(path, mode...))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	// A first start that was killed leaves the table of migrations alone behind.
	const query = `SELECT user_version, application_id,
			(SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%')
		FROM pragma_user_version, pragma_application_id`

	var id, tables int64
	err = pool.QueryRowContext(ctx, query).Scan(&version, &id, &tables)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read the schema's version: %w", err)
	case id != applicationID && tables > 0:
		return 0, fmt.Errorf("the file is an SQLite database of another program and %w; it was left as it is: name another file", ErrForeign)
	case version > schemaVersion:
		return 0, unsafe(path, "the database %s has schema %d, this program knows schemas up to %d; it was left as it is: "+
			"use a newer version of the program", path, version, schemaVersion)
	}

	return version, nil
}

// dsn names the file as SQLite wants it, with any character in its path.
func dsn(path string, params ...string) string {
	query := ""
	for i, p := range params {
		query += string("?&"[min(i, 1)]) + p
	}

	return "file:" + (&url.URL{Path: path}).EscapedPath() + query
}

// pragma is one setting in the data source name: set by Exec it would reach one
// connection of a pool only.
func pragma(name, value string) string { return "_pragma=" + name + "(" + value + ")" }

// ErrForeign says that a path names nothing that this program made.
var ErrForeign = errors.New("not a Redrive database")

// safety are the settings of every connection.
func safety() []string {
	return []string{"_dqs=0", pragma("trusted_schema", "0"), pragma("temp_store", "memory")}
}

// writerDSN is for the one connection that writes. It never waits inside
// SQLite: the writer has its own way of trying again.
func writerDSN(path string, relaxed bool) string {
	synchronous := "full"
	if relaxed {
		synchronous = "normal"
	}

	return dsn(path, append(safety(), "mode=rw", "_txlock=immediate",
		pragma("busy_timeout", "0"), pragma("journal_mode", "wal"), pragma("synchronous", synchronous),
		pragma("wal_autocheckpoint", "8000"), pragma("journal_size_limit", "67108864"), pragma("cache_size", "-16000"))...)
}

// indexDSN is for the one connection that writes to the index. A commit of it is on the
// disk before the main file says so.
func indexDSN(path string) string {
	return dsn(path, append(safety(), "mode=rw", "_txlock=immediate",
		pragma("busy_timeout", "0"), pragma("journal_mode", "wal"), pragma("synchronous", "full"),
		pragma("journal_size_limit", "67108864"), pragma("cache_size", "-16000"))...)
}

// checkpointerDSN is for the connection that moves pages from the log.
func checkpointerDSN(path string) string {
	return dsn(path, append(safety(), "mode=rw", pragma("busy_timeout", "0"), pragma("synchronous", "full"))...)
}

// readerDSN is for the pool that cannot write.
func readerDSN(path string) string {
	return dsn(path, append(safety(), "mode=rw",
		pragma("busy_timeout", "2000"), pragma("query_only", "1"), pragma("mmap_size", "134217728"))...)
}
