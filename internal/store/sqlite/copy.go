package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Progress is told how many bytes of a copy are written, out of about how many.
type Progress func(done, all int64)

// Backup writes a complete copy of the database to another file, also while a
// program has it open: one state of it, without the search index, which is rebuilt
// later. The copy is checked and on the disk before it has its name. It returns
// fs.ErrExist when there is a file of that name, unless replace is set, and ErrNoFile
// for anything else of that name.
func (f File) Backup(ctx context.Context, to string, replace bool, tell Progress) error {
	from, err := existing(f.Path)
	if err != nil {
		return denied(f.Path, err)
	}

	to, err = filepath.Abs(to)
	if err != nil {
		return err
	}

	if err := checkTarget(to, from, replace); err != nil {
		return err
	}

	copied, err := copyTo(ctx, from, filepath.Dir(to), tell)
	if err != nil {
		return err
	}

	if replace {
		return nameCopy(copied, to)
	}

	return nameNewCopy(copied, to)
}

// ErrNoFile says that a name belongs to something that is no file, and is kept.
var ErrNoFile = errors.New("not a regular file")

// checkTarget returns an error unless the name is free, or that of a file that may be
// replaced. What a link leads to is not looked at: it may be anything, and the link
// would be gone.
func checkTarget(to, database string, replace bool) error {
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

// copyTo writes a copy of the database into a new file of a directory, checks it and
// waits until it is on the disk.
func copyTo(ctx context.Context, from, dir string, tell Progress) (copied string, err error) {
	if err := copyable(ctx, from); err != nil {
		return "", err
	}

	// A name of its own until the copy is complete: half a backup must not pass for one.
	f, err := os.CreateTemp(dir, ".redrive-copy-*") // for its owner alone
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the directory %s does not exist; create it (mkdir -p %s)", dir, dir)
	}

	if err != nil {
		return "", unwritable(dir, err)
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			err = errors.Join(err, removeCopy(f.Name()))
		}
	}()

	pool, err := sql.Open("sqlite", dsn(from, append(safety(), "mode=ro", pragma("busy_timeout", "2000"))...))
	if err != nil {
		return "", err
	}

	// One transaction reads it all, so that the copy is one state of the database.
	err = wholeOrOlder(ctx, pool, from)
	if err == nil {
		err = vacuum(ctx, pool, f, tell)
	}

	if err == nil {
		err = soundCopy(ctx, pool, from, f.Name())
	} else {
		err = atFault(from, f, err)
	}

	if err := errors.Join(err, pool.Close()); err != nil {
		return f.Name(), err
	}

	// A name that lasts longer than its content would be worse than no backup.
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

// nameCopy gives a copy its name.
func nameCopy(copied, to string) error {
	if err := os.Rename(copied, to); err != nil {
		return errors.Join(err, os.Remove(copied))
	}
	return syncDir(filepath.Dir(to))
}

// nameNewCopy is nameCopy for a name that is free. What got the name meanwhile stays: then
// it returns fs.ErrExist.
func nameNewCopy(copied, to string) error {
	err := os.Link(copied, to)
	if err != nil && !errors.Is(err, fs.ErrExist) { // some disks have no hard links
		var mine *os.File

		mine, err = os.OpenFile(to, os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = errors.Join(mine.Close(), nameCopy(copied, to))
			if err != nil {
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
