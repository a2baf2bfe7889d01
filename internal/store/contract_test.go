package store_test

import (
	"testing"

	"redrive/internal/store"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/sqlite/sqlitetest"
	"redrive/internal/store/storetest"
)

// Here with a tenth of the random histories.
func TestContract(t *testing.T) {
	storetest.FewHistories(t)
	storetest.Run(t, relaxed)
}

func TestLong_ContractOfRandomHistories(t *testing.T) { storetest.RunRandom(t, relaxed) }

// relaxed is a database that does not wait for the disk.
func relaxed(t *testing.T) func() *store.Store {
	path := sqlitetest.New(t)
	return func() *store.Store {
		s, err := store.Open(t.Context(), store.Options{Database: sqlite.File{Path: path, Relaxed: true}, Attached: storetest.Attached})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}
