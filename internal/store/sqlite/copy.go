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
	"redrive/internal/store/db"
)

// Progress hears how many bytes of a copy are written, out of about how many.
type Progress func(done, all int64)

// Backup writes a complete copy of the database to another file, also while a
// program has it open: one state of it, without the search index, which is rebuilt
// later. The copy is checked and on the disk before it has its name. It returns
// fs.ErrExist when there is a file of that name, unless replace is set, and ErrNoFile
// for anything else of that name.
func (f File) Backup(ctx context.Context, to string, replace bool, heard Progress) error {
	from, err := existing(f.Path)
	if err != nil {
		return denied(f.Path, err)
	}

	if to, err = filepath.Abs(to); err != nil {
		return err
	}

	if err := free(to, from, replace); err != nil {
		return err
	}

	copied, err := copyTo(ctx, from, filepath.Dir(to), heard)
	if err != nil {
		return err
	}

	if replace {
		return settle(copied, to)
	}

	return settleNew(copied, to)
}

// ErrNoFile says that a name belongs to something that is no file, and is kept.
var ErrNoFile = errors.New("not a regular file")

// free returns an error unless the name is free, or that of a file that may be
// replaced. What a link leads to is not looked at: it may be anything, and the link
// would be gone.
func free(to, database string, replace bool) error {
	if belongs(to, database) {
		return fmt.Errorf("%s is a file of the database itself; name another file", to)
	}

	what, err := os.Lstat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unwritable(filepath.Dir(to), err)
	case !what.Mode().IsRegular():
		return fmt.Errorf("%s is %s, %w; name another file", to, kindOfFile(what.Mode()), ErrNoFile)
	case !replace:
		return fmt.Errorf("%s: %w", to, fs.ErrExist)
	}

	return nil
}

// belongs reports whether a name is that of a file of the database, whether or not it
// is there: a log that is put beside a database takes the place of its newest jobs.
func belongs(name, database string) bool {
	if dir, err := filepath.EvalSymlinks(filepath.Dir(name)); err == nil {
		name = filepath.Join(dir, filepath.Base(name))
	}

	there, _ := os.Stat(name)

	return slices.ContainsFunc(append(filesOf(database), database+lockSuffix), func(own string) bool {
		what, err := os.Stat(own)
		return own == name || err == nil && there != nil && os.SameFile(what, there)
	})
}

// kindOfFile is what is not a regular file, in words.
func kindOfFile(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}

	return "a device"
}

// Restore puts a copy of a database in the place of this one, or where there is
// none. No process may have the database open: it returns a *db.LockedError. What is
// there is kept under the name that it returns; without replace it returns
// fs.ErrExist instead.
func (f File) Restore(ctx context.Context, from string, replace bool, heard Progress) (kept string, err error) {
	path, err := resolve(f.Path)
	if err != nil {
		return "", err
	}

	if from, err = existing(from); err != nil {
		return "", err
	}

	if from == path {
		return "", fmt.Errorf("%s is the database itself; name its backup", from)
	}

	held, err := takeLockFile(path)
	if err != nil {
		return "", err
	}

	defer func() {
		if err != nil {
			err = errors.Join(err, held.abandon())
		} else {
			err = held.Close()
		}
	}()

	old, err := lockOld(path)
	if err != nil {
		return "", err
	}

	defer func() { err = errors.Join(err, old.Close()) }()

	if old.there && !replace {
		return "", fmt.Errorf("%s: %w", path, fs.ErrExist)
	}

	copied, err := copyTo(ctx, from, filepath.Dir(path), heard)
	if err != nil {
		return "", err
	}

	if err := checkSchema(ctx, copied, from); err != nil {
		return "", errors.Join(err, os.Remove(copied))
	}

	if old.there {
		kept = path + ".replaced-" + time.Now().UTC().Format("20060102T150405Z")
	}

	if err := errors.Join(setAside(path, kept), settle(copied, path)); err != nil {
		return "", err
	}

	return kept, held.describeNew(path)
}

// existing is the absolute path of a file, without symbolic links.
func existing(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}

	return filepath.EvalSymlinks(path)
}

// copyTo writes a copy of the database into a new file of a directory, checks it and
// waits until it is on the disk.
func copyTo(ctx context.Context, from, dir string, heard Progress) (copied string, err error) {
	if err := copyable(ctx, from); err != nil {
		return "", err
	}

	f, err := os.CreateTemp(dir, ".redrive-copy-*") // for its owner alone
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the directory %s does not exist; create it (mkdir -p %s)", dir, dir)
	}

	if err != nil {
		return "", unwritable(dir, err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, removeCopy(f.Name()))
		}
	}()

	pool, err := sql.Open("sqlite", dsn(from, append(safety(), "mode=ro", pragma("busy_timeout", "2000"))...))
	if err != nil {
		return "", err
	}

	err = vacuum(ctx, pool, f, heard)
	if err == nil {
		err = soundCopy(ctx, pool, from, f.Name())
	} else {
		err = atFault(from, f, err)
	}

	if err := errors.Join(err, pool.Close()); err != nil {
		return f.Name(), err
	}

	if err := f.Sync(); err != nil {
		return f.Name(), unkept(from, f, err)
	}

	return f.Name(), nil
}

// removeCopy removes what is left of a copy that failed, with the journal that SQLite keeps
// while it writes.
func removeCopy(name string) error {
	err := os.Remove(name + "-journal")
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}

	return errors.Join(err, os.Remove(name))
}

// soundCopy checks a copy. What is wrong with it is the fault of the disk that holds it, unless
// the database that it was made of has it too.
func soundCopy(ctx context.Context, pool *sql.DB, from, copied string) error {
	problem, err := check(ctx, copied)
	if err == nil && problem == "" {
		return nil
	}

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
func vacuum(ctx context.Context, from *sql.DB, to *os.File, heard Progress) error {
	const size = `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`
	var all int64

	if err := from.QueryRowContext(ctx, size).Scan(&all); err != nil {
		return err
	}

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
				heard(min(info.Size(), all), all)
			}
		}
	}
}

// check says what SQLite finds wrong in a copy that no other program has open; empty when it is
// intact.
func check(ctx context.Context, path string) (problem string, err error) {
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

// settle gives a copy its name.
func settle(copied, to string) error {
	if err := os.Rename(copied, to); err != nil {
		return errors.Join(err, os.Remove(copied))
	}
	return syncDir(filepath.Dir(to))
}

// settleNew is settle for a name that is free. What got the name meanwhile stays: then
// it returns fs.ErrExist.
func settleNew(copied, to string) error {
	err := os.Link(copied, to)
	if err != nil && !errors.Is(err, fs.ErrExist) { // some disks have no hard links
		var mine *os.File
		if mine, err = os.OpenFile(to, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			if err = errors.Join(mine.Close(), settle(copied, to)); err != nil {
				err = errors.Join(err, os.Remove(to)) // empty, it would pass for a complete backup
			}
			return err
		}
	}

	if err := errors.Join(err, os.Remove(copied)); err != nil {
		return err
	}

	return syncDir(filepath.Dir(to))
}

// syncDir waits until the names in a directory are on the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}

	return errors.Join(d.Sync(), d.Close())
}

// oldFile is the main file that a restore replaces, locked.
type oldFile struct {
	*os.File
	there bool
}

// Close makes the file free for others.
func (o oldFile) Close() error {
	if o.File == nil {
		return nil
	}
	return o.File.Close()
}

// lockOld locks the main file, whatever is in it. A log without its file counts as
// something that is there.
func lockOld(path string) (o oldFile, err error) {
	logs, err := hasLog(path)
	if err != nil {
		return o, err
	}

	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return oldFile{there: logs}, nil
	}

	if err != nil {
		return o, err
	}

	err = lockRange(f, true)
	if errors.Is(err, errHeld) {
		err = &db.LockedError{Path: path}
	}

	if err != nil {
		return o, errors.Join(err, f.Close())
	}

	return oldFile{f, true}, nil
}

// setAside gives the main file and its log another name, under which they still
// belong together, and removes the files that can be rebuilt.
func setAside(path, name string) error {
	var errs []error

	move := func(suffix string) {
		err := os.Rename(path+suffix, name+suffix)
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if name != "" {
		for _, suffix := range []string{"", "-wal", "-journal"} {
			move(suffix)
		}
	}

	for _, suffix := range []string{"-shm", indexSuffix, indexSuffix + "-wal", indexSuffix + "-shm", indexSuffix + "-journal"} {
		if err := os.Remove(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}

	return errors.Join(errs...)
}

// describeNew writes into the lock file that the database is another file now.
func (f *lockFile) describeNew(path string) error {
	main, err := os.Open(path)
	if err != nil {
		return err
	}

	l := locks{file: f, main: &mainFile{File: main, path: path}}

	return errors.Join(l.describe(), main.Close())
}
