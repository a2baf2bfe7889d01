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
		return fmt.Errorf("the file is an SQLite database of another program (application id %#x); it was left as it is: name another file", id)
	}
	return nil
}

// checkVersion returns the version of the schema, 0 for an empty file, and
// refuses one that this program does not know, through a connection that cannot
// write.
func checkVersion(ctx context.Context, path string, newest int64) (version int64, err error) {
	db, err := sql.Open("sqlite", dsn(path, "mode=ro"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// A first start that was killed leaves the table of migrations alone behind.
	const query = `SELECT user_version, application_id,
			(SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%')
		FROM pragma_user_version, pragma_application_id`
	var id, tables int64
	err = db.QueryRowContext(ctx, query).Scan(&version, &id, &tables)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read the schema's version: %w", err)
	case id != applicationID && tables > 0:
		return 0, fmt.Errorf("the file is an SQLite database of another program and %w; it was left as it is: name another file", ErrForeign)
	case version > newest:
		return 0, fmt.Errorf("the file has schema %d, this program knows schemas up to %d; it was left as it is: use a newer version of the program", version, newest)
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
