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

// Every behaviour of the store, with a tenth of the random histories. None holds a row that others
// need while it waits for an answer, and what they ask for follows indexes in a large database. It
// takes longer than the other tests of this package together.
func TestLong_Contract(t *testing.T) {
	asked := &askedFor{examples: map[string]example{}}

	// The behaviours run beside each other, and have all ended when this has.
	t.Run("behaviours", func(t *testing.T) {
		storetest.FewHistories(t)
		storetest.Run(t, func(t *testing.T) func() *store.Store { return recorded(t, asked) })
	})

	t.Run("plans", func(t *testing.T) {
		dsn := postgrestest.New(t)
		sql(t, dsn, filled)
		looksAtPlans(t, dsn, asked.withoutLists())
	})
}

// recorded is a new database whose statements are kept, and read when the behaviour has ended.
func recorded(t *testing.T, asked *askedFor) func() *store.Store {
	r := recorderTo(t, postgrestest.New(t))
	t.Cleanup(func() {
		asked.add(r)
		for _, fault := range r.faults() {
			t.Errorf("shared rows are locked over a trip:\n%s", fault)
		}
	})

	return func() *store.Store {
		s, err := store.Open(t.Context(), store.Options{Database: postgres.Server{DSN: r.dsn}, Attached: storetest.Attached})
		check(t, err)

		return s
	}
}
