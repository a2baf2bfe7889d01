package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"

	"redrive/internal/store/health"
)

// mainFile is the main file of the database, open and locked (see lockRange) for
// as long as the process works on it. It is closed after SQLite's connections:
// closing any descriptor of a file drops the locks that SQLite holds on it.
type mainFile struct {
	*os.File
	path   string
	what   os.FileInfo
	beside map[string]os.FileInfo // the log and its index, once SQLite has them open
}

// opened are the main files that this process has open. None of them is opened
// again, not even to find it locked, because it would have to be closed again.
var opened = struct {
	sync.Mutex
	files []*mainFile
}{}

// isOpen reports whether this process has the file open as a database.
func isOpen(path string) bool {
	opened.Lock()
	defer opened.Unlock()
	return openAlready(path)
}

func openAlready(path string) bool {
	what, err := os.Stat(path)
	if err != nil {
		return false
	}

	for _, f := range opened.files {
		if os.SameFile(f.what, what) {
			return true
		}
	}

	return false
}

// openMain opens and locks the main file, and makes it for its owner alone when
// there is none.
func openMain(path string, before note) (*mainFile, error) {
	opened.Lock()
	defer opened.Unlock()

	if openAlready(path) {
		return nil, &health.LockedError{Path: path, PID: os.Getpid()}
	}

	if err := errors.Join(checkNames(path), checkThere(path, before.made)); err != nil {
		return nil, err
	}

	// From here on the file may be made, so every later check that fails leaves it empty at most.
	f, writable, err := openFile(path)
	if err != nil {
		return nil, err
	}

	m := &mainFile{File: f, path: path, beside: map[string]os.FileInfo{}}

	m.what, err = f.Stat()
	if err == nil {
		err = lockRange(f, writable)
	}

	if errors.Is(err, errHeld) {
		err = &health.LockedError{Path: path}
	}

	if err == nil {
		err = checkHeader(f, path)
	}

	if err == nil {
		err = before.checkLog(m)
	}

	if err != nil {
		return nil, errors.Join(err, f.Close())
	}

	opened.files = append(opened.files, m)

	return m, nil
}

// openFile opens the file for reading alone where it cannot be written: what is
// there can still be looked at.
func openFile(path string) (f *os.File, writable bool, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
		return f, false, err
	}

	return f, true, err
}

// errHeld says that another process has a lock.
var errHeld = errors.New("another process holds the lock")

// Close makes the file free for others.
func (m *mainFile) Close() error {
	opened.Lock()
	defer opened.Unlock()

	for i, f := range opened.files {
		if f == m {
			opened.files = append(opened.files[:i], opened.files[i+1:]...)
			break
		}
	}

	return m.File.Close()
}

// besides are the files that SQLite keeps beside the main one: the log, its index,
// and the journal of the time before there is a log.
var besides = []string{"-wal", "-shm", "-journal"}

// filesOf are the names of the files that SQLite keeps for a database and its index.
func filesOf(path string) (names []string) {
	for _, main := range []string{path, path + indexSuffix} {
		names = append(names, main)
		for _, suffix := range besides {
			names = append(names, main+suffix)
		}
	}

	return names
}

// checkNames refuses files that other names lead to, or that every user may
// write. The log is stored beside the name under which a file was opened: under
// another name it would be missing, and with it the newest jobs.
func checkNames(path string) error {
	what, err := os.Lstat(path)
	if err == nil && what.IsDir() {
		return fmt.Errorf("%s is %w: it is a directory", path, ErrForeign)
	}

	if err == nil && what.Mode().IsRegular() && isMount(path) {
		return unsafe(path, "the database file %s is mounted as a single file, so its log would lie elsewhere and be lost; "+
			"mount its directory", path)
	}

	var open []string
	for _, name := range filesOf(path) {
		err := checkBeside(name)
		if errors.Is(err, errOpenToAll) {
			open = append(open, "'"+name+"'")
		} else if err != nil {
			return err
		}
	}

	if len(open) > 0 {
		return unsafe(path, "every user of this machine can write to the database %s; find out why, then run chmod o-w %s",
			path, strings.Join(open, " "))
	}

	return nil
}

var errOpenToAll = errors.New("every user can write to it")

// checkBeside refuses a file of the database that is not a file of its own.
func checkBeside(name string) error {
	what, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case what.Mode()&os.ModeSymlink != 0:
		return unsafe(name, "%s is a symbolic link, and its target would be overwritten; remove the link", name)
	case !what.Mode().IsRegular():
		return unsafe(name, "%s is not a regular file; move it away, or use another database", name)
	case names(what) > 1:
		return unsafe(name, "%s has %d names (hard links), and the log of a database lies beside one of them; "+
			"find them with find -samefile '%s', keep the one beside its log, and remove or copy the others", name, names(what), name)
	case what.Mode().Perm()&0o002 != 0:
		return unsafe(name, "%w; find out why, then run chmod o-w '%s'", errOpenToAll, name)
	}

	return nil
}

// names is how many names a file has.
func names(what os.FileInfo) uint64 {
	if stat, ok := what.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}

// checkThere refuses to make a new database in the place of one that is gone.
func checkThere(path string, made bool) error {
	what, err := os.Lstat(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}

	if err == nil && what.Size() > 0 {
		return nil
	}

	state := "empty"
	if missing {
		state = "missing"
	}

	// The log without its file would be written into a new one.
	log, err := os.Lstat(path + "-wal")
	if err == nil && log.Size() > 0 {
		return unsafe(path, "the database file %s is %s, but its log %s-wal holds %d bytes of the newest jobs; nothing was changed. "+
			"Put the file back beside its log and start again. If it is lost, move the log away and keep it: mv '%s-wal' '%s-wal.saved'",
			path, state, path, log.Size(), path, path)
	}

	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	if made {
		return unsafe(path, "the database file %s is %s, but %s.lock says that there was one when this program last ran; "+
			"nothing was changed. Put it back and start again, or remove %s.lock for a new, empty database", path, state, path, path)
	}

	return nil
}

// check returns an error that says what to do unless the path still leads to the
// open file, and those beside it are those that SQLite has open.
func (m *mainFile) check() error {
	if err := m.checkPath(); err != nil {
		return err
	}

	for suffix, mine := range m.beside {
		there, err := os.Lstat(m.path + suffix)
		if err != nil || !os.SameFile(mine, there) {
			return unsafe(m.path, "%s%s, which belongs to the database, was moved, removed or replaced while this program has it open; "+
				"nothing is written any more. Everything written so far is in %s: start this program again", m.path, suffix, m.path)
		}
	}

	return nil
}

// checkPath is check of the main file alone.
func (m *mainFile) checkPath() error {
	there, err := os.Lstat(m.path)
	if err == nil && os.SameFile(m.what, there) {
		return nil
	}

	// The path leads elsewhere. What became of our own file decides what can be done.
	mine, problem := m.Stat()
	switch {
	case problem == nil && names(mine) == 0:
		return unsafe(m.path, "the database file %s was removed while this program has it open; nothing is written any longer. Its content "+
			"is lost when the program ends: save it first with cp /proc/%d/fd/%d '%s.saved', then stop the program and rename the copy",
			m.path, os.Getpid(), m.Fd(), m.path)
	case errors.Is(err, fs.ErrNotExist):
		return unsafe(m.path, "the database file %s was moved away while this program has it open; nothing is written any longer. "+
			"Everything written so far is in the file that was moved: move it back, and work continues automatically", m.path)
	case err != nil:
		return unsafe(m.path, "the database file %s cannot be checked (%w); nothing is written until it can be", m.path, err)
	}

	return unsafe(m.path, "the database file %s was replaced by another file while this program has it open; nothing is written "+
		"any more. Everything written so far is in the original file: put it back, and work continues automatically; "+
		"or stop this program, and the next start takes the other file", m.path)
}

// remember takes the files beside the main one for those that SQLite has open,
// which it has from its first transaction on. Where it cannot share memory there
// are none.
func (m *mainFile) remember() {
	for _, suffix := range []string{"-wal", "-shm"} {
		if m.beside[suffix] == nil {
			if what, err := os.Lstat(m.path + suffix); err == nil {
				m.beside[suffix] = what
			}
		}
	}
}
