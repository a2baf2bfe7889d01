package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// LockedError says that another process works on the database.
type LockedError struct {
	Path string // the database
	PID  int    // the holder; 0 when it could not be told
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another process: stop it, or use another file", e.Path)
	}
	return fmt.Sprintf("%s is in use by the process with pid %d: stop it, or use another file", e.Path, e.PID)
}

// lock takes the lock file beside the database and writes this process's pid
// into it. The lock is on its own file, because closing any descriptor of the
// database would drop SQLite's locks. The kernel drops it with the process, so
// a lock file that was left behind locks nothing.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		held := &LockedError{Path: path, PID: holder(f)}
		return nil, errors.Join(held, f.Close())
	}
	if err == nil {
		err = writePID(f)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return f, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder reads the pid from a lock file that somebody else holds.
func holder(f *os.File) int {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
