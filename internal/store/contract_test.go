package store_test

import (
	"flag"
	"testing"

	"redrive/internal/store"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/sqlite/sqlitetest"
	"redrive/internal/store/storetest"
)

// Here with a tenth of the random histories.
func TestContract(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	if all := checks.Value.String(); all == checks.DefValue {
		set := func(n string) {
			if err := checks.Value.Set(n); err != nil {
				t.Fatal(err)
			}
		}
		set("10")
		t.Cleanup(func() { set(all) })
	}
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
