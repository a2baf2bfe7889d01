package sqlsource_test

import (
	"testing"

	"redrive/internal/source"
	"redrive/internal/store/postgres/postgrestest"
)

// A pooler that gives each transaction another session changes nothing: in such a session the
// names of prepared statements mean nothing.
func TestOrigin_WorksBehindAPooler(t *testing.T) {
	for _, s := range systems {
		if s.engine != "postgres" {
			continue
		}

		t.Run(s.String(), func(t *testing.T) {
			address := s.load(t)
			through := postgrestest.Pooler(t, address)
			one, two := s.origin(t, through), s.origin(t, through)

			dead := scan(t, one, 100)
			for range 5 { // by turns, so that each meets sessions of the other
				if a, b := len(scan(t, one, 100)), len(scan(t, two, 100)); a != len(dead) || b != len(dead) {
					t.Fatalf("%d and %d records, want %d", a, b, len(dead))
				}
			}

			if got := act(t, two, source.Replay, source.Once, s.fit(t, one)); got.State != source.Done {
				t.Errorf("%+v", got)
			}

			if left := len(scan(t, one, 100)); left != len(dead)-1 {
				t.Errorf("%d of %d records are left", left, len(dead))
			}
		})
	}
}
