package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"redrive/internal/store/health"
)

// Restore puts a copy of a database in the place of this one, or where there is
// none. No process may have the database open: it returns a *health.LockedError. What is
// there is kept under the name that it returns; without replace it returns
// fs.ErrExist instead.
func (f File) Restore(ctx context.Context, from string, replace bool, tell Progress) (kept string, err error) {
	path, err := resolve(f.Path)
	if err != nil {
		return "", err
	}

	from, err = existing(from)
	if err != nil {
		return "", err
	}

	if from == path {
		return "", fmt.Errorf("%s is the database itself; name its backup", from)
	}

	// No process may open the database until the copy has its name.
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

	// The copy is complete and checked before anything of the old database is touched.
	copied, err := copyTo(ctx, from, filepath.Dir(path), tell)
	if err != nil {
		return "", err
	}

	if err := checkSchema(ctx, copied, from); err != nil {
		return "", errors.Join(err, os.Remove(copied))
	}

	// What is there is kept, under a name that tells when.
	if old.there {
		kept = path + ".replaced-" + time.Now().UTC().Format("20060102T150405Z")
	}

	if err := errors.Join(setAside(path, kept), nameCopy(copied, path)); err != nil {
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
		err = &health.LockedError{Path: path}
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
