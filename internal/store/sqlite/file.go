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
	"strconv"
	"strings"
	"syscall"

	"redrive/internal/store/db"
)

// What SQLite keeps in the first bytes of a file, by offset.
const (
	headerSize          = 100
	magic               = "SQLite format 3\x00"
	applicationIDOffset = 68
	applicationID       = 0x52445256 // "RDRV"; the first migration writes it
)

// resolve returns the absolute path without symbolic links, so that two names
// of one database share one lock file. It makes the directory when there is none.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	dir, err = filepath.EvalSymlinks(dir)
	return filepath.Join(dir, filepath.Base(path)), err
}

// prepare creates the file for its owner alone, or looks at the one that is
// there, and refuses what is not ours before anything is written to it. It must
// run before SQLite has the file open in this process: closing a descriptor
// drops the locks of all the others.
func prepare(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	header := make([]byte, headerSize)
	n, err := io.ReadFull(f, header)
	if err := f.Close(); err != nil {
		return err
	}
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil // new
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case n < headerSize || string(header[:len(magic)]) != magic:
		return errors.New("the file is not an SQLite database; it was left as it is: name another file")
	}
	if id := binary.BigEndian.Uint32(header[applicationIDOffset:]); id != applicationID && id != 0 {
		return fmt.Errorf("the file is an SQLite database of another program (application id %#x); it was left as it is: "+
			"name another file", id)
	}
	return nil
}

// checkVersion returns the version of the schema, 0 for an empty file, and
// refuses one that this program does not know, through a connection that cannot
// write.
func checkVersion(ctx context.Context, path string, newest int64) (version int64, err error) {
	pool, err := sql.Open("sqlite", dsn(path, "mode=ro"))
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
	case version > newest:
		return 0, fmt.Errorf("the file has schema %d, this program knows schemas up to %d; it was left as it is: "+
			"use a newer version of the program", version, newest)
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
func pragma(name, value string) string {
	return "_pragma=" + name + "(" + value + ")"
}

// ErrForeign says that a path names nothing that this program made.
var ErrForeign = errors.New("no database of Redrive")

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
	return dsn(path, append(safety(), "_txlock=immediate",
		pragma("busy_timeout", "0"), pragma("journal_mode", "wal"), pragma("synchronous", synchronous),
		pragma("wal_autocheckpoint", "8000"), pragma("journal_size_limit", "67108864"), pragma("cache_size", "-16000"))...)
}

// checkpointerDSN is for the connection that moves pages from the log.
func checkpointerDSN(path string) string {
	return dsn(path, append(safety(), "mode=rw", pragma("busy_timeout", "0"), pragma("synchronous", "full"))...)
}

// readerDSN is for the pool that cannot write.
func readerDSN(path string) string {
	return dsn(path, append(safety(), pragma("busy_timeout", "2000"), pragma("query_only", "1"), pragma("mmap_size", "134217728"))...)
}

// lock takes the lock file beside the database and writes this process's pid
// into it. The lock is on its own file, because closing any descriptor of the
// database would drop SQLite's locks. The kernel drops it with the process, so
// a lock file that was left behind locks nothing.
func lock(path string) (*lockFile, error) {
	f, err := openLock(path + ".lock")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil, fmt.Errorf("open the lock file: %w; the user of this program must be able to write to %s, because files that "+
			"belong to the database are kept beside it: give it the right, or use another file", err, filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		held := &db.LockedError{Path: path}
		held.PID, held.URL = holder(f.File)
		return nil, errors.Join(held, f.Close())
	}
	if err == nil {
		err = f.current()
	}
	if err == nil {
		err = writePID(f.File)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return f, nil
}

// lockFile is an open lock file.
type lockFile struct {
	*os.File
	created bool // by this process
}

func openLock(name string) (*lockFile, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return &lockFile{f, true}, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	return &lockFile{f, false}, err
}

// current refuses a lock on a file that its creator has removed since it was
// opened: the next process would lock another one.
func (f *lockFile) current() error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(f.Name())
	if err != nil || !os.SameFile(mine, there) {
		return errors.New("another process has just removed it; try again")
	}
	return nil
}

// abandon closes the file, and removes it when there was none before.
func (f *lockFile) abandon() error {
	var err error
	if f.created {
		err = os.Remove(f.Name()) // while it is locked: nobody else works under it
	}
	return errors.Join(err, f.Close())
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// Announce writes beside the pid where this process answers requests, for
// other programs on this machine that find the database in use. The file can be
// read by its owner only.
func (e *engine) Announce(url string) error {
	_, err := e.lock.WriteAt(fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), url), 0)
	return err
}

// holder reads from a lock file that somebody else holds who that is.
func holder(f *os.File) (pid int, url string) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1024))
	if err != nil {
		return 0, ""
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0, ""
	}
	return pid, strings.TrimSpace(rest)
}
