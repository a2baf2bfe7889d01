package store_test

import (
	"testing"

	"redrive/internal/store"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/sqlite/sqlitetest"
	"redrive/internal/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() *store.Store {
		path := sqlitetest.New(t)
		return func() *store.Store {
			s, err := store.Open(t.Context(), store.Options{Database: sqlite.File{Path: path, Relaxed: true}})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}
