package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// note is what a lock file says of the database beside it: that there is one, and
// which file it is. The log beside the same name belongs to that file and to no
// other. A lock file that was copied no longer knows it: the database was copied too.
type note struct {
	made   bool
	main   string // see identify; empty when it cannot be told
	lock   string // the lock file itself
	logged bool   // the log of the database has held jobs since it was opened, and was not yet moved into it
}

// The words of a note: the first of one about a database that was made, and the last while
// its log holds jobs. Earlier versions do not write the last one, and do not read it.
const (
	wasMade   = "made"
	wasLogged = "logged"
)

func (n note) String() string {
	if !n.made {
		return ""
	}

	words := []string{wasMade, n.main, n.lock}
	if n.logged {
		words = append(words, wasLogged)
	}

	return strings.Join(words, " ")
}

// readNote reads the note of a lock file.
func readNote(lock *os.File) (n note, err error) {
	text, err := textOf(lock)
	if err != nil {
		return note{}, err
	}

	lines := append(strings.Split(text, "\n"), "", "", "")

	// The third line is the note. One that was copied names another file than the one it is in.
	words := append(strings.Split(lines[2], " "), "", "", "", "")
	own, err := identify(lock)
	if err != nil || words[0] != wasMade {
		return note{}, err
	}

	if words[2] != own {
		return note{made: true}, nil
	}

	return note{true, words[1], own, words[3] == wasLogged}, nil
}

// noteMade writes that there is a database now: when it is gone one day, none is
// made in its place.
func (l *locks) noteMade() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.describe()
}

// noteGone takes back noteMade.
func (l *locks) noteGone() error {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.file.note = note{}

	return l.file.write("", "")
}

// describe fills the lock file. l.mu is held.
func (l *locks) describe() error {
	main, err := identify(l.main.File)
	lock, problem := identify(l.file.File)
	if err := errors.Join(err, problem); err != nil {
		return err
	}

	l.file.note = note{true, main, lock, l.logged}

	return l.file.write(l.url, l.key)
}

// noteLog writes that the log of the database holds jobs from now on, or that it holds none
// any more. The log is on the disk before the first is written, and the second before the
// log is removed: a power cut leaves no note about a log that is rightly missing.
func (l *locks) noteLog(holds bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.logged == holds {
		return nil
	}

	if holds {
		if err := syncLog(l.main.path); err != nil {
			return err
		}
	}

	before := l.logged

	l.logged = holds
	err := l.describe()
	if err == nil && !holds {
		err = l.file.Sync()
	}

	if err != nil {
		l.logged = before
	}

	return err
}

// syncLog waits until the log of a database is on the disk, with its name.
func syncLog(path string) error {
	log, err := os.Open(path + "-wal")
	if err != nil {
		return err
	}

	if err := errors.Join(log.Sync(), log.Close()); err != nil {
		return err
	}

	return syncDir(filepath.Dir(path))
}

// ofLog reports whether the note says that the log of this main file holds jobs. What it says
// of another file, in whose place this one was put, says nothing about this one.
func (n note) ofLog(m *mainFile) (bool, error) {
	if !n.logged {
		return false, nil
	}

	mine, err := identify(m.File)
	if err != nil || mine != n.main {
		return false, err
	}

	return hasLog(m.path)
}

// checkLog refuses a main file beside the log of another one, which would be
// written into it, and one whose log was left behind under its name of before.
func (n note) checkLog(m *mainFile) error {
	mine, err := identify(m.File)
	if err != nil || mine == "" {
		return err
	}

	logs, err := hasLog(m.path)
	if err != nil {
		return err
	}

	if logs {
		if n.main == "" || n.main == mine {
			return nil
		}

		return unsafe(m.path, "%s is not the file that the log %s-wal belongs to; nothing was changed. "+
			"Put the right file back, or move the log away and keep it: mv '%s-wal' '%s-wal.saved'. "+
			"If this is a copy of the right file, remove %s.lock; then start again",
			m.path, m.path, m.path, m.path, m.path)
	}

	// There is no log here. It may have stayed behind under the name that the file had before.
	before, err := nameBefore(m.path, mine)
	if err != nil {
		return err
	}

	if before == "" {
		return n.checkLeft(m.path, mine)
	}

	return unsafe(m.path, "%s was named %s when its process was killed, and its log still has the old name; nothing was changed. "+
		"Move the log too and start again: mv '%s-wal' '%s-wal'", m.path, before, before, m.path)
}

// checkLeft refuses a main file without the log that held the newest jobs when its process
// was killed. It is asked when there is no log.
func (n note) checkLeft(path, main string) error {
	if !n.logged || n.main != main {
		return nil
	}

	return unsafe(path, "the log %s-wal is missing or empty, but it held the newest jobs when the last process was killed; nothing was "+
		"changed. Put it back beside %s and start again. If it is lost, or if another program has moved it into the database, "+
		"remove %s.lock to start with the jobs that %s holds", path, path, path, path)
}

// checkLog is the same for a caller that only reads the database at a path. While a process
// has the database open, the log belongs to that process.
func checkLog(path string) (err error) {
	if isOpen(path) {
		return nil
	}

	logs, err := hasLog(path)

	if err != nil || logs {
		return err
	}

	// No log. What the lock file says decides whether there has to be one, unless another process,
	// whose log it is then, has the database open.
	lock, err := os.Open(path + lockSuffix)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}

	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()

	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}

	if err != nil {
		return err
	}

	before, err := readNote(lock)
	if err != nil {
		return err
	}

	main, err := os.Open(path)
	if err != nil {
		return err
	}

	mine, err := identify(main)
	if err := errors.Join(err, main.Close()); err != nil {
		return err
	}

	if mine == "" {
		return nil
	}

	return before.checkLeft(path, mine)
}

// hasLog reports whether there is something in the log of a database.
func hasLog(path string) (bool, error) {
	log, err := os.Lstat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}

	return err == nil && log.Size() > 0, err
}

// nameBefore looks in the directory of the file for another name that it had, and
// where its log still is.
func nameBefore(path, mine string) (string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrPermission) { // it can be used and not looked through
		return "", nil
	}

	if err != nil {
		return "", err
	}

	for _, e := range entries {
		// Each lock file names a database, by its own name and in its note.
		name, isLock := strings.CutSuffix(filepath.Join(filepath.Dir(path), e.Name()), lockSuffix)
		if !isLock || name == path || !e.Type().IsRegular() {
			continue
		}

		if logs, err := hasLog(name); err != nil || !logs {
			continue
		}

		f, err := os.Open(name + lockSuffix)
		if err != nil { // the file of another user
			continue
		}

		n, err := readNote(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}

		if n.main == mine {
			return name, nil
		}
	}

	return "", nil
}
