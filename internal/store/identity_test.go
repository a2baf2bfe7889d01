package store

import (
	"os"
	"path/filepath"
	"testing"

	"redrive/internal/store/sqlite"
)

// A database is the same under each of its names, and a copy is another one.
func TestIdentity_IsThatOfTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "jobs.db")
	identity := func(path string) string {
		t.Helper()
		s, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
		check(t, err)
		found, err := s.Identity()
		check(t, err)
		check(t, s.Close())
		return found
	}

	want := identity(file)
	check(t, os.Symlink(file, filepath.Join(dir, "symlink.db")))
	for _, name := range []string{"symlink.db", "missing/../jobs.db"} {
		if got := identity(dir + "/" + name); got != want { // not Join, which would shorten it
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}

	content, err := os.ReadFile(file)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, "copy.db"), content, 0o600))
	if got := identity(filepath.Join(dir, "copy.db")); got == want {
		t.Error("a copy is the same database")
	}
}
