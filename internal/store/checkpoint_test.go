package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"redrive/internal/store/db"
	"redrive/internal/store/sqlite"
)

// What was committed comes into the file while the log is still small, and
// without anybody closing it.
func TestCheckpointer_MovesPagesBesideTheWriter(t *testing.T) {
	s := open(t, Options{})
	size := func() int64 {
		info, err := os.Stat(pathOf(t, s))
		check(t, err)
		return info.Size()
	}
	before := size()
	for range 8 {
		enqueue(t, s, 1000)
	}
	wait(t, func() bool { return size() > before })
}

// Pages that are committed while others are moved keep the log from beginning anew. The
// writer moves them: otherwise it would have to move all of a large log at last.
func TestCheckpointer_LetsTheLogBeginAnewUnderLoad(t *testing.T) {
	s := open(t, Options{})
	enqueue(t, s, 1000)
	log := func() [8]byte { // the numbers of the log, which are others each time that it begins
		file, err := os.ReadFile(pathOf(t, s) + "-wal")
		check(t, err)
		return [8]byte(file[16:24])
	}
	before := log()
	entered, gate := make(chan struct{}), make(chan struct{})
	var writes sync.WaitGroup
	writes.Go(func() { // in a transaction that began before pages were moved
		err := s.writer.Do(context.Background(), 1, func(t *db.Tx) error { close(entered); <-gate; t.Touch(); return nil })
		if err != nil {
			t.Error(err)
		}
	})
	<-entered
	s.engine.Committed(10_000) // as many rows as make a checkpoint due
	other, err := sql.Open("sqlite", "file:"+pathOf(t, s))
	check(t, err)
	t.Cleanup(func() { check(t, other.Close()) })
	wait(t, func() bool {
		var busy, pages, moved int
		check(t, other.QueryRow(`PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &pages, &moved))
		return busy == 0 && pages == moved
	})
	close(gate)
	writes.Wait()
	for range 100 { // far from enough for another checkpoint
		if enqueue(t, s, 1); log() != before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the log goes on after 100 commits")
}

// A file that cannot grow while the log still has room is no problem by itself,
// and the pages come into it as soon as there is room.
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
