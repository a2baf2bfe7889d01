package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// note is what a lock file says of the database beside it: that there is one, and
// which file it is. The log beside the same name belongs to that file and to no
// other. A lock file that was copied knows it no more: the database was copied too.
type note struct {
	made bool
	main string // see identify; empty when it cannot be told
	lock string // the lock file itself
}

// wasMade is the first word of a note about a database that was made.
const wasMade = "made"

func (n note) String() string {
	if !n.made {
		return ""
	}
	return strings.Join([]string{wasMade, n.main, n.lock}, " ")
}

// readNote reads the note of a lock file.
func readNote(lock *os.File) (n note, err error) {
	text, err := textOf(lock)
	if err != nil {
		return note{}, err
	}
	lines := append(strings.Split(text, "\n"), "", "", "")
	words := append(strings.Split(lines[2], " "), "", "", "")
	own, err := identify(lock)
	if err != nil || words[0] != wasMade {
		return note{}, err
	}
	if words[2] != own {
		return note{made: true}, nil
	}
	return note{true, words[1], own}, nil
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
	l.file.note = note{true, main, lock}
	return l.file.write(l.url, l.key)
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
	before, err := nameBefore(m.path, mine)
	if err != nil || before == "" {
		return err
	}
	return unsafe(m.path, "%s was named %s when its process was killed, and its log still has the old name; nothing was changed. "+
		"Move the log too and start again: mv '%s-wal' '%s-wal'", m.path, before, before, m.path)
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
		name, isLock := strings.CutSuffix(filepath.Join(filepath.Dir(path), e.Name()), lockSuffix)
		if !isLock || name == path || !e.Type().IsRegular() {
			continue
		}
		if logs, err := hasLog(name); err != nil || !logs {
			continue
		}
		f, err := os.Open(name + lockSuffix)
		if err != nil { // somebody else's
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
