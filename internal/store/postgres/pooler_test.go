package postgres_test

import (
	"testing"

	"redrive/internal/store"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
	"redrive/internal/store/storetest"
)

// Behind a pooler that gives each transaction another session, the names of statements mean
// nothing: the store finds out, or is told by the address.
func TestPooler_GivesEachTransactionAnotherSession(t *testing.T) {
	for name, parameter := range map[string]string{"found out": "", "told": "&default_query_exec_mode=exec"} {
		t.Run(name, func(t *testing.T) {
			dsn := postgrestest.New(t)
			through := postgrestest.Pooler(t, dsn) + parameter

			for range 2 {
				s := mustOpen(t, through)
				for range 20 {
					check(t, add(t.Context(), s))
				}

				check(t, s.Close())
			}

			if n := sql(t, dsn, `SELECT count(*) FROM jobs`); n != "40" {
				t.Errorf("%s jobs are there, want 40", n)
			}
		})
	}
}

// The whole contract passes through a pooler.
func TestLong_ContractBehindAPooler(t *testing.T) {
	storetest.FewHistories(t)
	storetest.Run(t, func(t *testing.T) func() *store.Store {
		through := postgrestest.Pooler(t, postgrestest.New(t))

		return func() *store.Store {
			s, err := store.Open(t.Context(), store.Options{Database: postgres.Server{DSN: through}, Attached: storetest.Attached})
			check(t, err)

			return s
		}
	})
}
