package groups

import (
	"database/sql"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"redrive/internal/failures"
	"redrive/internal/store/db"
)

// interrupted is a source whose rows are closed while they are read, as the end
// of a deadline closes them.
type interrupted struct{ pool *sql.DB }

func (s interrupted) Query(_ string, each func(*sql.Rows) error, _ ...any) error {
	rows, err := s.pool.Query("SELECT 1")
	if err != nil {
		return err
	}
	rows.Next()
	if err := rows.Close(); err != nil {
		return err
	}
	return each(rows)
}

func TestReading_EndsWithAnErrorWhenItsTimeIsUp(t *testing.T) {
	pool, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	src, now := interrupted{pool}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, read := range map[string]func(db.Source) error{
		"queues and hours": func(src db.Source) error { return addParts(src, now, []failures.Group{{}}) },
		"hours": func(src db.Source) error {
			_, err := groupHours(src, 1, firstHour(now))
			return err
		},
		"the top": func(src db.Source) error {
			_, err := topGroups(src, firstHour(now), 5)
			return err
		},
	} {
		if err := read(src); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
