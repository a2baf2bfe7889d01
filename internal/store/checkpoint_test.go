package store

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"redrive/internal/store/sqlite"
)

// What was committed is moved into the file while the log is still small, and
// without the store being closed.
func TestCheckpointer_MovesPagesBesideTheWriter(t *testing.T) {
	s := open(t, Options{})
	size := func() int64 {
		info, err := os.Stat(pathOf(t, s))
		check(t, err)
		return info.Size()
	}
	before := size()
	for range 4 {
		enqueue(t, s, 1000)
	}
	wait(t, func() bool { return size() > before })
}

// A file that cannot grow while the log still has room is not a problem on its own:
// the pages are moved into it as soon as there is room.
func TestCheckpointer_WaitsForRoomByItself(t *testing.T) {
	const size = 16 << 20
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skip("a small disk cannot be mounted here:", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(dir, 0)) })
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	check(t, err)
	t.Cleanup(func() { check(t, log.Close()) })
	s, err := Open(t.Context(), Options{Database: sqlite.File{Path: filepath.Join(dir, "jobs.db")}, Log: slog.New(slog.NewTextHandler(log, nil))})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	enqueue(t, s, 500)
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, size), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	before, err := os.Stat(pathOf(t, s))
	check(t, err)
	s.engine.Committed(10_000) // as many rows as make a checkpoint due
	wait(t, func() bool {
		info, err := log.Stat()
		return err == nil && info.Size() > 0
	})
	if s.Problem() != nil {
		t.Errorf("the problem is %v", s.Problem())
	}
	check(t, os.Remove(filler))
	wait(t, func() bool {
		after, err := os.Stat(pathOf(t, s))
		return err == nil && after.Size() > before.Size()
	})
}
