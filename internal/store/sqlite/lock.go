package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"redrive/internal/store/db"
)

// lock takes the lock file beside the database and writes this process's pid
// into it. The lock is on its own file, because closing any descriptor of the
// database would drop SQLite's locks. The kernel drops it with the process, so
// a lock file that was left behind locks nothing.
func lock(path string) (*lockFile, error) {
	f, err := openLock(path + ".lock")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil, fmt.Errorf("open the lock file: %w; the user of this program must be able to write to %s, because files that belong to the database are kept beside it: give it the right, or use another file", err, filepath.Dir(path))
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
