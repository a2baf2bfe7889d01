// Package sqlitetest gives tests empty databases. To make one takes as long as most
// of the tests themselves, above all with the race detector, so these are copies of
// one that is made once in each process.
package sqlitetest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"redrive/internal/store/db"
	"redrive/internal/store/sqlite"
)

// A list that takes long on a busy machine is no failure of a test.
func init() { db.Patience = 10 * time.Minute }

// New returns the path of an empty database in a folder of its own.
func New(tb testing.TB) (path string) {
	tb.Helper()
	content, err := empty()
	if err != nil {
		tb.Fatal(err)
	}
	path = filepath.Join(tb.TempDir(), "redrive.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// empty is the content of an empty database.
var empty = sync.OnceValues(func() (content []byte, err error) {
	dir, err := os.MkdirTemp("", "redrive-empty")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "redrive.db")
	engine, err := sqlite.File{Path: path, Relaxed: true}.Open(context.Background(), db.NewHealth(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	if err := engine.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})
