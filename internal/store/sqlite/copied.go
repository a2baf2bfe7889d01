package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	lib "modernc.org/sqlite/lib"

	"redrive/internal/fault"
)

// soundCopy checks a copy. What is wrong with it is the fault of the disk that holds it, unless
// the database that it was made of has it too.
func soundCopy(ctx context.Context, pool *sql.DB, from, copied string) error {
	problem, err := integrityProblem(ctx, copied)
	if err == nil && problem == "" {
		return nil
	}

	// Whose fault is it? What was copied is looked at, too.
	var whole string
	if err := pool.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&whole); err != nil {
		return classify(from, err)
	}

	if whole != "ok" {
		return faultOf(from, fault.ErrCorrupt, errors.New(whole))
	}

	if err == nil {
		err = errors.New(problem)
	}

	return fmt.Errorf("the copy could not be read back as it was written (%w): check the disk that holds %s, or name another directory; "+
		"%s is intact", err, filepath.Dir(copied), from)
}

// atFault is the error of copying with the name of the disk that failed: a copy reads from one
// and writes to another, and SQLite does not say which it was.
func atFault(from string, to *os.File, err error) error {
	switch {
	case primary(err) == lib.SQLITE_FULL, slices.Contains(writeFailures, code(err)):
		return unkept(from, to, err)
	case primary(err) == lib.SQLITE_IOERR:
		if _, reading := io.Copy(io.Discard, io.NewSectionReader(to, 0, math.MaxInt64)); reading != nil {
			return unkept(from, to, err)
		}
	}

	return classify(from, err)
}

// writeFailures are SQLite's codes for what only the copy can cause: what is copied is not
// written to.
var writeFailures = []int{
	lib.SQLITE_IOERR_WRITE, lib.SQLITE_IOERR_FSYNC, lib.SQLITE_IOERR_DIR_FSYNC, lib.SQLITE_IOERR_TRUNCATE, lib.SQLITE_IOERR_CLOSE,
}

// unkept is the error of a copy that its disk does not take.
func unkept(from string, to *os.File, err error) error {
	dir := filepath.Dir(to.Name())
	if primary(err) == lib.SQLITE_FULL || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the disk that holds the directory %s is full: make room there, or name another directory; "+
			"%s was only read (%w)", dir, from, err)
	}

	return fmt.Errorf("the disk that holds the directory %s could not be written: check it, or name another directory; "+
		"%s was only read (%w)", dir, from, err)
}

// unwritable is the error of a directory into which a copy cannot be written; it says
// what to do when this user has no right to.
func unwritable(dir string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("write to the directory %s: %w; name another one, or run this command as a user who can write there",
			dir, fs.ErrPermission)
	}

	return err
}

// copyable refuses what is no database of this program, or of a newer one.
func copyable(ctx context.Context, path string) error {
	if err := checkLog(path); err != nil {
		return err
	}

	version, err := checkVersion(ctx, path, rest{}.mode())
	if refused := unreadable(path, err); refused != nil {
		return refused
	}

	if primary(err) == lib.SQLITE_NOTADB || err == nil && version == 0 {
		return fmt.Errorf("%s is %w", path, ErrForeign)
	}

	return classify(path, err)
}

// vacuum copies what a connection reads into an empty file, in one transaction.
func vacuum(ctx context.Context, from *sql.DB, to *os.File, tell Progress) error {
	const size = `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`
	var all int64

	if err := from.QueryRowContext(ctx, size).Scan(&all); err != nil {
		return err
	}

	// SQLite does not say how far it is: the size of the file does.
	done := make(chan error, 1)
	go func() {
		_, err := from.ExecContext(ctx, `VACUUM INTO ?`, to.Name())
		done <- err
	}()

	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()

	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			if info, err := to.Stat(); err == nil {
				tell(min(info.Size(), all), all)
			}
		}
	}
}

// integrityProblem says what SQLite finds wrong in a copy that no other program has open; empty when it is
// intact.
func integrityProblem(ctx context.Context, path string) (problem string, err error) {
	pool, err := sql.Open("sqlite", dsn(path, append(safety(), "immutable=1")...))
	if err != nil {
		return "", err
	}

	err = pool.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&problem)
	if problem == "ok" {
		problem = ""
	}

	return problem, errors.Join(err, pool.Close())
}
