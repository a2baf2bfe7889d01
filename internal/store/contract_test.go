package store_test

import (
	"path/filepath"
	"testing"

	"redrive/internal/store"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() *store.Store {
		path := filepath.Join(t.TempDir(), "jobs.db")
		return func() *store.Store {
			s, err := store.Open(t.Context(), store.Options{Database: sqlite.File{Path: path}})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}
