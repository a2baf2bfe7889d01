package store_test

import (
	"path/filepath"
	"testing"

	"redrive/internal/store"
	"redrive/internal/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() storetest.Store {
		path := filepath.Join(t.TempDir(), "jobs.db")
		return func() storetest.Store {
			s, err := store.Open(t.Context(), store.Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}
