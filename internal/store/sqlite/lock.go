package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"redrive/internal/pause"
	"redrive/internal/store/health"
)

// locks keep other processes away from a database for as long as this one works
// on it: the lock file beside it, which says who that is, and a lock on the main
// file itself, which holds whatever name leads there. The kernel drops both with
// the process, so what was left behind locks nothing.
type locks struct {
	main *mainFile

	mu     sync.Mutex
	file   *lockFile
	url    string // where this process answers requests, once it does
	key    string // what it takes for the word of its own user
	logged bool   // see note
}

// How long a lock is waited for. After a kill it can still be held for a moment:
// by the process itself, which takes time to end, and by a child that it had just
// forked, which has its files until it runs its program.
const (
	retryEvery  = 10 * time.Millisecond
	graceAlive  = 250 * time.Millisecond // while the holder lives
	graceUnsure = 2 * time.Second        // while it is dead or unknown
)

// lock takes both locks. When one of them is already held, the error is a
// *health.LockedError.
func lock(ctx context.Context, path string) (*locks, error) {
	began := time.Now()
	for {
		l, err := tryLock(path)
		held, ok := errors.AsType[*health.LockedError](err)
		// What this process itself has open is not given up by waiting for it.
		if !ok || held.PID == os.Getpid() {
			return l, err
		}

		grace := graceUnsure
		if alive(held.PID) {
			grace = graceAlive
		}

		if time.Since(began) >= grace || !pause.For(ctx, retryEvery) {
			return nil, err
		}
	}
}

// alive reports whether a process with the pid runs.
func alive(pid int) bool { return pid != 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func tryLock(path string) (*locks, error) {
	file, err := takeLockFile(path)
	if err != nil {
		return nil, err
	}

	// The lock file is ours, so that no other process makes or opens the main file meanwhile.
	main, err := openMain(path, file.note)
	if err != nil {
		return nil, errors.Join(err, file.abandon())
	}

	// Only what this process knows is in the lock file from here on: the note of the one before is
	// carried over, as far as it speaks of this file.
	logged, err := file.note.ofLog(main)
	if err == nil {
		err = file.write("", "")
	}

	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), main.Close(), file.abandon())
	}

	return &locks{file: file, main: main, logged: logged}, nil
}

// restore recreates the lock file after it was removed. The lock on the main file has
// kept other processes away meanwhile, but only the lock file says which process has
// the database open, and later that there was one.
func (l *locks) restore() error {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.file.current() {
		return nil
	}

	file, err := takeLockFile(l.main.path)
	if err != nil {
		return err
	}

	old := l.file
	l.file = file

	return errors.Join(l.describe(), old.Close())
}

// Close comes after SQLite's last connection was closed.
func (l *locks) Close() error { return errors.Join(l.main.Close(), l.file.Close()) }

// abandon is Close after a start that failed.
func (l *locks) abandon() error { return errors.Join(l.main.Close(), l.file.abandon()) }

// lockSuffix is appended to the name of the main file to name the lock file.
const lockSuffix = ".lock"

// lockFile is an open and locked lock file. Its lines are the pid of the newest
// process, where that answers requests, what it says of the database, and its key.
type lockFile struct {
	*os.File
	created bool // by this process
	note    note
}

// takeLockFile opens and locks the lock file of a database, and makes it when
// there is none.
func takeLockFile(path string) (*lockFile, error) {
	f, err := openLockFile(path + lockSuffix)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil, fmt.Errorf("open the lock file: %w; the user of this program must be able to write to %s, because files that "+
			"belong to the database are kept beside it: give it the right, or use another file", err, filepath.Dir(path))
	}

	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}

	// The kernel drops this lock with the process.
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		held := &health.LockedError{Path: path}
		held.PID, held.URL, held.Key = f.holder()
		if held.PID == os.Getpid() && !isOpen(path) { // of an earlier life, or of another container
			held.PID = 0
		}

		return nil, errors.Join(held, f.Close())
	}

	// The process that had it may have removed it between the two.
	if err == nil && !f.current() {
		return nil, errors.Join(&health.LockedError{Path: path}, f.Close()) // it is tried again
	}

	if err == nil {
		err = f.check(path)
		if err == nil {
			f.note, err = readNote(f.File)
		}
	}

	if err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return f, nil
}

// Holder tells which process has the database open and where that answers requests,
// as Open would find it, and opens nothing: a database of an earlier version stays as
// it is. It returns nil when no process has it open, and fs.ErrNotExist when there is
// no such file.
func (f File) Holder() (*health.LockedError, error) {
	path, err := existing(f.Path)
	if err != nil {
		return nil, err
	}

	name := path + lockSuffix
	if err := checkBeside(name); err != nil {
		return nil, err
	}

	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read the lock file: %w", err)
	}

	// A lock that can be shared is held by no process: the file was left behind.
	l := &lockFile{File: file}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(err, l.Close())
	}

	held := &health.LockedError{Path: path}
	held.PID, held.URL, held.Key = l.holder()

	return held, l.Close()
}

// openLockFile follows no link: what that leads to would be overwritten.
func openLockFile(name string) (*lockFile, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return &lockFile{File: f, created: true}, nil
	}

	if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}

	if err := checkBeside(name); err != nil {
		return nil, err
	}

	f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)

	return &lockFile{File: f}, err
}

// check refuses a file of another program that has the name of a lock file.
func (f *lockFile) check(path string) error {
	text, err := f.text()
	first, _, _ := strings.Cut(text, "\n")
	if _, not := strconv.Atoi(first); err == nil && text != "" && not != nil {
		err = unsafe(path, "%s is not a lock file of Redrive, and would be overwritten; move it away, or use another database", f.Name())
	}

	return err
}

// current reports false for a file that its creator has removed since it was
// opened: the next process would lock another one.
func (f *lockFile) current() bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}

	there, err := os.Lstat(f.Name())

	return err == nil && os.SameFile(mine, there)
}

// abandon closes the file, and removes it when there was none before.
func (f *lockFile) abandon() error {
	var err error
	if f.created && f.current() {
		err = os.Remove(f.Name()) // while it is locked: no other process works under it
	}

	return errors.Join(err, f.Close())
}

// write writes that this process holds the lock, where it answers requests, and the
// key, unless others than the user of this process could read it.
func (f *lockFile) write(url, key string) error {
	if private, err := f.private(); err != nil {
		return err
	} else if !private {
		key = ""
	}

	text := fmt.Appendf(nil, "%d\n%s\n%s\n%s\n", os.Getpid(), url, f.note, key)
	if _, err := f.WriteAt(text, 0); err != nil { // before the rest goes: a kill must not lose the word
		return err
	}

	return f.Truncate(int64(len(text)))
}

// private reports whether only the user of this process can read the file.
func (f *lockFile) private() (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}

	stat, ok := info.Sys().(*syscall.Stat_t)

	return ok && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0, nil
}

// holder reads who locked the file last. A pid that is not there is 0.
func (f *lockFile) holder() (pid int, url, key string) {
	text, err := f.text()
	if err != nil {
		return 0, "", ""
	}

	// An earlier version, or a kill, leaves fewer lines.
	lines := append(strings.Split(text, "\n"), "", "", "", "")

	pid, err = strconv.Atoi(lines[0])
	if err != nil || pid < 0 {
		pid = 0
	}

	return pid, lines[1], lines[3]
}

func (f *lockFile) text() (string, error) { return textOf(f.File) }

func textOf(f *os.File) (string, error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1024))
	return string(text), err
}

// Announce writes where this process answers requests, for other programs on
// this machine that find the database in use.
func (e *engine) Announce(url, key string) error { return e.locks.announce(url, key) }

// Hasten has nothing to do: a file is waited for seconds only.
func (*engine) Hasten() {}

func (l *locks) announce(url, key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.url, l.key = url, key

	return l.file.write(url, key)
}
