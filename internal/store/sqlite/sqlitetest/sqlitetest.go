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
	"redrive/internal/store/health"
	"redrive/internal/store/sqlite"
)

// A list that takes long on a busy machine is no failure of a test. The lists of tests are short, and
// are read in several windows all the same.
func init() { db.Patience, db.Window = 10*time.Minute, 50 }

// New returns the path of an empty database in a folder of its own.
func New(tb testing.TB) (path string) {
	tb.Helper()

	files, err := empty()
	if err != nil {
		tb.Fatal(err)
	}

	path = filepath.Join(tb.TempDir(), name)
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), file), content, 0o600); err != nil {
			tb.Fatal(err)
		}
	}

	return path
}

// name is that of the main file, with which the names of the others begin.
const name = "redrive.db"

// empty is the content of the files of an empty database, by name: the main one and the
// index of texts, which belongs to it.
var empty = sync.OnceValues(func() (files map[string][]byte, err error) {
	dir, err := os.MkdirTemp("", "redrive-empty")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	engine, err := sqlite.File{Path: filepath.Join(dir, name), Relaxed: true}.Open(context.Background(), health.New(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}

	if err := engine.Close(); err != nil {
		return nil, err
	}

	files = map[string][]byte{}
	for _, file := range []string{name, name + "-search"} {
		files[file], err = os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
	}

	return files, nil
})
