package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"redrive/internal/fault"
	"redrive/internal/store/health"
)

// lookAtLock is how often the lock file is looked at. It only tells others who has
// the database: that it is missing for a moment does no harm.
const lookAtLock = time.Second

// Check also moves the log into the main file as soon as the files are apart: then
// that file is the whole database, wherever it is by now, and the log can do no harm
// to a file that takes its place.
func (e *engine) Check() error {
	err := e.locks.main.check()
	if err == nil {
		e.apart = false
		if now := time.Now(); now.Sub(e.listed) >= lookAtLock {
			e.listed = now
			e.restoreLock()
		}

		return nil
	}

	if !e.apart {
		var problem error

		e.apart, problem = e.gather()
		if problem != nil {
			e.health.Log().Warn("The log could not be moved into the database file. Redrive will try again.", "path", e.path, "error", problem)
		}
	}

	return err
}

// gather moves the log into the main file and cuts it. The note about the log goes in between,
// so that a kill leaves a log too many and never one too few. It reports false when it has to be
// called again.
func (e *engine) gather() (done bool, err error) {
	moved, err := e.writer.moveLog()
	if err != nil || !moved {
		return false, err
	}

	if err := e.locks.noteLog(false); err != nil {
		return false, err
	}

	e.logged = false // until the next commit

	return e.writer.emptyLog()
}

// restoreLock is no reason to stop when it fails: a process that starts has the
// file for a moment, or its directory cannot be written. The next attempt follows.
func (e *engine) restoreLock() {
	err := e.locks.restore()
	if _, starting := errors.AsType[*health.LockedError](err); starting {
		return
	}

	if err != nil && !e.unlisted {
		e.health.Log().Warn("The lock file of the database was removed and cannot be created again.", "path", e.path, "error", err)
	}

	e.unlisted = err != nil
}

// Room writes the bytes into a file that goes at once: the log may have room of its
// own for a while, and what a file system says is free may not be ours.
func (e *engine) Room(bytes int) (err error) {
	file, err := os.CreateTemp(filepath.Dir(e.path), filepath.Base(e.path)+".room-*")
	if err != nil {
		return fmt.Errorf("look for room on the disk: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()

	if err := os.Remove(file.Name()); err != nil {
		return fmt.Errorf("look for room on the disk: %w", err)
	}

	if _, err := file.Write(make([]byte, bytes)); err != nil {
		return faultOf(e.path, fault.ErrStorageFull, err)
	}

	return nil
}

// Committed also notes, after the first commit, that the log holds jobs: when it is gone at the
// next start, although this process was killed, they are lost.
func (e *engine) Committed(rows int) {
	if !e.logged {
		e.logged = true
		if err := e.locks.noteLog(true); err != nil {
			e.health.Log().Warn("The lock file could not be written. If this process is killed and the log of the database is removed, "+
				"the next start will not know that jobs are missing.", "path", e.path, "error", err)
		}
	}

	e.checkpoints.wrote(rows)
}

// Identity is the number of the file on its device.
func (e *engine) Identity() (string, error) {
	info, err := os.Stat(e.path)
	if err != nil {
		return "", fmt.Errorf("identify the database: %w", err)
	}

	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok { // unreachable: all systems that this builds for have it
		return "", fmt.Errorf("identify the database: %s has no inode", e.path)
	}

	return fmt.Sprintf("%x:%x", stat.Dev, stat.Ino), nil
}
