package postgres_test

import (
	"testing"

	"redrive/internal/store"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
	"redrive/internal/store/storetest"
)

func TestMain(m *testing.M) {
	postgres.EmptyForTest = postgrestest.New
	postgrestest.Run(m)
}

// Here with a tenth of the random histories.
func TestContract(t *testing.T) {
	storetest.FewHistories(t)
	storetest.Run(t, empty)
}

func TestLong_ContractOfRandomHistories(t *testing.T) { storetest.RunRandom(t, empty) }

// empty is a new database.
func empty(t *testing.T) func() *store.Store {
	dsn := postgrestest.New(t)
	return func() *store.Store {
		s, err := store.Open(t.Context(), store.Options{Database: postgres.Server{DSN: dsn}, Attached: storetest.Attached})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}
