package store

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"redrive/internal/job"
)

func problems(t *testing.T, path string) (all []string) {
	t.Helper()
	found, err := Examine(t.Context(), path)
	check(t, err)
	if len(found) < 10 {
		t.Errorf("only %d things were looked at", len(found))
	}
	for _, f := range found {
		if f.Problem != "" {
			all = append(all, f.What+": "+f.Problem)
		}
	}
	return all
}

func TestExamine_FindsNothingWrongBesideARunningStore(t *testing.T) {
	s := open(t, Options{})
	live(t, s)
	if got := problems(t, s.path); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

func TestExamine_FindsWhatWasChanged(t *testing.T) {
	for _, change := range []string{
		`UPDATE depths SET n = n + 1 WHERE status = 'discarded'`,
		`UPDATE depths SET n = n + 1 WHERE status = 'trashed'`,
		`UPDATE counters SET failed = failed + 1`,
		`UPDATE jobs SET shelf = 'scheduled' WHERE seq = (SELECT min(seq) FROM jobs WHERE state = 'available')`,
		`UPDATE dead_letters SET open = 1 - open`,
		`DELETE FROM trash`,
		`UPDATE jobs SET attempts = 77 WHERE state = 'retryable'`,
		`DELETE FROM replays`,
		`INSERT INTO bodies SELECT 9999, expires_at, trace_id, message_id, note, meta, payload, envelope FROM bodies LIMIT 1`,
		`UPDATE audit_head SET seq = 99`,
	} {
		s := open(t, Options{})
		live(t, s)
		_, err := s.Discard(t.Context(), testTime, dead(t, s, 1)[0].ID, 1, job.Actor{Name: "ana"})
		check(t, err)
		other, err := sql.Open("sqlite", dsn(s.path))
		check(t, err)
		_, err = other.Exec(change)
		check(t, errors.Join(err, other.Close()))
		if got := problems(t, s.path); len(got) == 0 {
			t.Errorf("%s was not noticed", change)
		}
	}
}

func TestExamine_OfWhatIsNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	check(t, os.WriteFile(path, []byte("this is no database, but it is long enough to be taken for the head of one, perhaps, by somebody"), 0o600))
	if _, err := Examine(t.Context(), path); err == nil {
		t.Error("it was taken for a database")
	}
}
