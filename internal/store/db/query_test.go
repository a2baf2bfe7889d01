package db_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"redrive/internal/store/db"
	"redrive/internal/store/health"
	"redrive/internal/store/sqlite"
)

// opened is an open database, with its writer and its reader.
type opened struct {
	path   string
	engine db.Engine
	writer *db.Writer
	reader *db.Reader
}

// open opens a new database for the test.
func open(t *testing.T, participants ...db.Participant) opened {
	t.Helper()
	health := health.New(slog.New(slog.DiscardHandler))
	path := filepath.Join(t.TempDir(), "jobs.db")
	engine, err := sqlite.File{Path: path, Relaxed: true}.Open(t.Context(), health)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(error) bool { return false }
	probe := func(t *db.Tx) error { return t.Run("UPDATE revision SET n = n") }
	writer, err := db.NewWriter(t.Context(), engine, health, db.Options{Refused: refused, Probe: probe})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range participants {
		writer.Register(p)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(writer.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return opened{path, engine, writer, db.NewReader(engine, health, 16)}
}

// sources runs do with every kind of source that queries can have.
func (o opened) sources(t *testing.T, do func(kind string, src db.Source)) {
	t.Helper()
	do("a reader", o.reader.In(t.Context()))
	err := o.reader.Consistently(t.Context(), func(src db.Source) error {
		do("a snapshot", src)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = o.writer.Do(context.Background(), 1, func(tx *db.Tx) error {
		do("a transaction", tx)
		do("what a transaction has written", tx.Written())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What is asked for is made such as what is stored: a NUL is an error of some databases,
// and a text that was cleaned when it was written is found by what its caller sent.
func TestSources_CleanWhatTheyAreAskedFor(t *testing.T) {
	open(t).sources(t, func(kind string, src db.Source) {
		args := []any{"a\x00b\xffc", []byte("\x00"), int64(7)}
		got, err := db.Value[string](src, "SELECT $1 || length($2) || $3", args...)
		if want := "a\uFFFDb\uFFFDc17"; got != want || err != nil {
			t.Errorf("%s was asked for %q, %v, want %q", kind, got, err, want)
		}
		if args[0] != "a\x00b\xffc" {
			t.Errorf("%s changed the argument of its caller to %q", kind, args[0])
		}
		all, err := db.All(src, "SELECT value FROM json_each($1) ORDER BY value",
			func(text *string) []any { return []any{text} }, db.Texts{"b\x00", "a"})
		if want := []string{"a", "b\uFFFD"}; !slices.Equal(all, want) || err != nil {
			t.Errorf("%s was asked for %q, %v, want %q", kind, all, err, want)
		}
		all, err = db.All(src, "SELECT value ->> 1 FROM json_each($1) ORDER BY 1",
			func(text *string) []any { return []any{text} }, db.Rows([][2]any{{1, "a\x00"}, {2, `b\u0000`}}))
		if want := []string{"a\uFFFD", `b\u0000`}; !slices.Equal(all, want) || err != nil {
			t.Errorf("%s was asked for rows with %q, %v, want %q", kind, all, err, want)
		}
	})
}

// The id of a job is a conflict, and whatever else is taken is not.
func TestEngine_NamesTheValueThatIsTaken(t *testing.T) {
	o := open(t)
	for _, c := range []struct{ insert, want string }{
		{`INSERT INTO policies (policy, origins) VALUES ('a', 'b'), ('a', 'b')`, "policies.policy, policies.origins"},
		{`INSERT INTO policies (id, policy, origins) VALUES (1, 'a', ''), (1, 'b', '')`, "policies.id"},
		{`INSERT INTO queues (name, paused_at, paused_by) VALUES ('a', 1, ''), ('a', 1, '')`, "queues.name"},
		{`INSERT INTO queues (name) VALUES (NULL)`, ""},
		{`INSERT INTO nothing (name) VALUES ('a')`, ""},
	} {
		err := o.writer.Do(t.Context(), 1, func(tx *db.Tx) error { return tx.Run(c.insert) })
		if got := o.engine.Taken(fmt.Errorf("insert: %w", err)); got != c.want || err == nil {
			t.Errorf("after %s, %q is taken, want %q: %v", c.insert, got, c.want, err)
		}
	}
	if got := o.engine.Taken(nil); got != "" {
		t.Errorf("%q is taken without an error", got)
	}
}

// No number and no text is an empty list, also for NOT IN, and not a list with NULL.
func TestSources_TakeListsOfNumbersAndTexts(t *testing.T) {
	open(t).sources(t, func(kind string, src db.Source) {
		for _, c := range []struct {
			list any
			want string
		}{
			{db.Numbers{3, -1, 1 << 62}, "-1 3 4611686018427387904"},
			{db.Numbers(nil), ""},
			{db.Texts{`"quoted"`, "<ö>", ""}, ` "quoted" <ö>`},
			{db.Texts(nil), ""},
		} {
			const query = "SELECT coalesce(group_concat(value, ' '), '') FROM (SELECT value FROM json_each($1) ORDER BY value)"
			if got, err := db.Value[string](src, query, c.list); got != c.want || err != nil {
				t.Errorf("%s got %q of %#v, %v, want %q", kind, got, c.list, err, c.want)
			}
		}
	})
}
