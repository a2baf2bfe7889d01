package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"redrive/internal/fault"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/store/db"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/sqlite/sqlitetest"
)

// An index that does not belong to the database is rebuilt, whatever happened to
// either of them; one that does is kept. A search finds nothing that does not exist,
// and in the end it finds everything.
func TestIndex_IsMadeAgainUnlessItBelongsToTheDatabase(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(t *testing.T, path string) // between two processes
		kept bool
	}{
		{"nothing", func(*testing.T, string) {}, true},
		{"a crash before the database says that the index has more", func(t *testing.T, path string) {
			edit(t, path, `INSERT INTO search_backlog (job_seq, execution) VALUES (2, 1)`)
			edit(t, path+"-search", `UPDATE search_state SET before = mark, mark = 'next'`)
		}, true},
		{"the index was removed", func(t *testing.T, path string) { check(t, os.Remove(path+"-search")) }, false},
		{"the index is empty", func(t *testing.T, path string) { check(t, os.Truncate(path+"-search", 0)) }, false},
		{"the index is no database", func(t *testing.T, path string) {
			check(t, os.WriteFile(path+"-search", []byte("a letter, and not a database, which is long enough to be taken for the head of one"), 0o600))
		}, false},
		{"the index has another version", func(t *testing.T, path string) { edit(t, path+"-search", `PRAGMA user_version = 9`) }, false},
		{"the index is older", func(t *testing.T, path string) { edit(t, path, `UPDATE redaction SET index_mark = 'next'`) }, false},
		{"the database is older", func(t *testing.T, path string) {
			edit(t, path+"-search", `UPDATE search_state SET before = mark, mark = 'next', revision = revision + 100`)
		}, false},
		{"the index is that of another database", func(t *testing.T, path string) {
			edit(t, path+"-search", `UPDATE search_state SET before = 'one', mark = 'other'`)
		}, false},
		{"the state of the index is damaged", func(t *testing.T, path string) { damageTable(t, path+"-search", "search_state") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := sqlitetest.New(t)
			first, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
			check(t, err)
			for range 3 { // three transactions of the index
				failWith(t, first, 2, "alpha")
				_, err = first.Search.Update(t.Context())
				check(t, err)
			}
			check(t, first.Close())
			c.harm(t, path)

			s := open(t, Options{Database: sqlite.File{Path: path}})
			list, err := s.Jobs(t.Context(), filter.Filter{Text: "alpha"}, filter.Cursor{}, 100)
			if c.kept && (len(list.Jobs) != 9 || err != nil) || !c.kept && (len(list.Jobs) != 0 || !errors.Is(err, context.DeadlineExceeded)) {
				t.Errorf("%d jobs are found at once, %v", len(list.Jobs), err)
			}
			failWith(t, s, 1, "alpha")
			_, err = s.Search.Update(t.Context())
			check(t, err)
			if n := finds(t, s, "alpha"); n != 11 || s.Search.Reindexing() {
				t.Errorf("%d of 11 jobs are found", n)
			}
			if got := problems(t, path); len(got) > 0 {
				t.Errorf("%q", got)
			}
			check(t, s.Close())
			again := open(t, Options{Database: sqlite.File{Path: path}})
			if n := finds(t, again, "alpha"); n != 11 {
				t.Errorf("after another start %d of 11 jobs are found", n)
			}
		})
	}
}

// A backup that is restored beside the index of later times finds its own failures,
// and no job by the texts of one that had its number.
func TestIndex_IsMadeAgainForARestoredBackup(t *testing.T) {
	path := sqlitetest.New(t)
	s, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
	check(t, err)
	failWith(t, s, 3, "alpha")
	_, err = s.Search.Update(t.Context())
	check(t, err)
	edit(t, path, `VACUUM INTO '`+path+`.copy'`)
	failWith(t, s, 3, "bravo")
	_, err = s.Search.Update(t.Context()) // one transaction of the index
	check(t, errors.Join(err, s.Close()))
	check(t, os.Remove(path+".lock"))
	check(t, os.Rename(path+".copy", path))

	s = open(t, Options{Database: sqlite.File{Path: path}})
	_, err = s.Enqueue(t.Context(), testTime, []job.Job{benchJob(), benchJob(), benchJob(), benchJob()}) // with the numbers of those that are gone
	check(t, err)
	_, err = s.Search.Update(t.Context())
	check(t, err)
	if a, b := finds(t, s, "alpha"), finds(t, s, "bravo"); a != 4 || b != 0 {
		t.Errorf("%d and %d jobs are found, want 4 and 0", a, b)
	}
}

// Damage of the index that shows while the program runs ends searches, which say what
// to do, and nothing else.
func TestIndex_WhenDamagedStopsNothingElse(t *testing.T) {
	path := sqlitetest.New(t)
	first, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
	check(t, err)
	failWith(t, first, 3, "alpha")
	_, err = first.Search.Update(t.Context())
	check(t, errors.Join(err, first.Close()))
	damageTable(t, path+"-search", "search_texts")

	s := open(t, Options{Database: sqlite.File{Path: path}})
	_, err = s.Jobs(t.Context(), filter.Filter{Text: "alpha"}, filter.Cursor{}, 100)
	if !errors.Is(err, fault.ErrUnsafe) || !strings.Contains(err.Error(), "remove the file") || !strings.Contains(err.Error(), path+"-search") {
		t.Errorf("a search says %v", err)
	}
	failWith(t, s, 3, "bravo")
	if _, err := s.Search.Update(t.Context()); !errors.Is(err, fault.ErrUnsafe) {
		t.Errorf("the index is filled: %v", err)
	}
	if list, err := s.Jobs(t.Context(), filter.Filter{}, filter.Cursor{}, 100); len(list.Jobs) != 8 || err != nil || s.Problem() != nil {
		t.Errorf("%d jobs are listed, %v, %v", len(list.Jobs), err, s.Problem())
	}
	check(t, s.Close())
	check(t, os.Remove(path+"-search"))
	s = open(t, Options{Database: sqlite.File{Path: path}})
	_, err = s.Search.Update(t.Context())
	check(t, err)
	if a, b := finds(t, s, "alpha"), finds(t, s, "bravo"); a != 4 || b != 4 {
		t.Errorf("%d and %d jobs are found, want 4 and 4", a, b)
	}
}

// damageTable overwrites the first page of a table.
func damageTable(t *testing.T, path, table string) {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+path)
	check(t, err)
	var page int64
	check(t, pool.QueryRow(`SELECT rootpage FROM sqlite_schema WHERE name = ?`, table).Scan(&page))
	check(t, pool.Close())
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	_, err = file.WriteAt(bytes.Repeat([]byte{0xa5}, 4096), (page-1)*4096)
	check(t, errors.Join(err, file.Close()))
}

// A connection that is opened while the index is not in its place reads everything
// else.
func TestIndex_IsNotNeededToRead(t *testing.T) {
	s := open(t, Options{})
	failWith(t, s, 3, "alpha")
	check(t, os.Remove(pathOf(t, s)+"-search"))
	s.engine.Reads().SetMaxIdleConns(0) // every query opens a connection
	if list, err := s.Jobs(t.Context(), filter.Filter{}, filter.Cursor{}, 100); len(list.Jobs) != 4 || err != nil {
		t.Errorf("%d jobs are listed, %v", len(list.Jobs), err)
	}
	_, err := s.Jobs(t.Context(), filter.Filter{Text: "alpha"}, filter.Cursor{}, 100)
	if err == nil || !strings.Contains(err.Error(), "is not in its place") || !strings.Contains(err.Error(), "restart this program") || s.Problem() != nil {
		t.Errorf("a search says %v, the store %v", err, s.Problem())
	}
}

// A database of another program is not removed because it is where the index would be.
func TestIndex_KeepsWhatBelongsToOthers(t *testing.T) {
	path := sqlitetest.New(t)
	check(t, os.Remove(path+"-search"))
	edit(t, path+"-search", `CREATE TABLE notes (text)`, `INSERT INTO notes VALUES ('mine')`)
	check(t, os.Chmod(path+"-search", 0o600))
	s := open(t, Options{Database: sqlite.File{Path: path}})
	failWith(t, s, 1, "alpha")
	if _, err := s.Search.Update(t.Context()); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("the index is filled: %v", err)
	}
	edit(t, path+"-search", `UPDATE notes SET text = 'still mine'`)
}

// While the database cannot be written, the index does not run away from it.
func TestIndex_StaysBesideADatabaseThatRefuses(t *testing.T) {
	path := sqlitetest.New(t)
	s, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
	check(t, err)
	failWith(t, s, 3, "alpha")
	edit(t, path, `CREATE TRIGGER refuse BEFORE UPDATE ON redaction BEGIN SELECT raise(ABORT, 'no'); END`)
	for range 3 {
		if _, err := s.Search.Update(t.Context()); err == nil {
			t.Fatal("nothing was refused")
		}
	}
	edit(t, path, `DROP TRIGGER refuse`)
	check(t, s.Close())
	s = open(t, Options{Database: sqlite.File{Path: path}})
	if s.Search.Reindexing() {
		t.Error("the index is being rebuilt")
	}
}

// A job that is removed while it is made searchable leaves nothing behind, and its
// texts are out of the index with the next sweep.
func TestIndex_ForgetsWhatIsRemoved(t *testing.T) {
	s := open(t, Options{})
	failWith(t, s, 3, "alpha")
	_, err := s.Search.Update(t.Context())
	check(t, err)
	failWith(t, s, 3, "bravo") // not searchable yet
	for _, when := range []string{"before the sweep", "after it"} {
		done, err := s.Sweep.Prune(t.Context(), testTime.Add(48*time.Hour), retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Hour}})
		if err != nil || when == "before the sweep" && done.Of(retention.DeadLetters) == 0 {
			t.Fatalf("%+v, %v", done, err)
		}
		if got := problems(t, pathOf(t, s)); len(got) > 0 {
			t.Errorf("%s: %q", when, got)
		}
		_, err = s.Search.Update(t.Context())
		check(t, err)
	}
	left, err := s.Jobs(t.Context(), filter.Filter{Status: job.StatusDeadLetter}, filter.Cursor{}, 100)
	check(t, err)
	var texts, waiting int
	check(t, s.engine.Reads().QueryRow(`SELECT (SELECT count(*) FROM search_texts), (SELECT count(*) FROM search_backlog)`).Scan(&texts, &waiting))
	if texts != len(left.Jobs) || waiting != 0 {
		t.Errorf("%d texts are left of %d jobs, %d wait", texts, len(left.Jobs), waiting)
	}
}

// Everything but searching works while the index cannot be opened.
func TestIndex_IsNotNeededToStart(t *testing.T) {
	path := sqlitetest.New(t)
	first, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
	check(t, err)
	failWith(t, first, 3, "alpha")
	_, err = first.Search.Update(t.Context())
	check(t, errors.Join(err, first.Close()))
	other, err := sql.Open("sqlite", "file:"+path+"-search?_pragma=journal_mode(delete)&_txlock=exclusive")
	check(t, err)
	held, err := other.Begin()
	check(t, err)

	s, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
	check(t, err)
	failWith(t, s, 3, "bravo")
	if _, err := s.Jobs(t.Context(), filter.Filter{Text: "alpha"}, filter.Cursor{}, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a search answers %v", err)
	}
	if list, err := s.Jobs(t.Context(), filter.Filter{}, filter.Cursor{}, 100); len(list.Jobs) != 8 || err != nil {
		t.Errorf("%d jobs are listed, %v", len(list.Jobs), err)
	}
	if _, err := s.Search.Update(t.Context()); !errors.Is(err, fault.ErrBusy) || !strings.Contains(err.Error(), path+"-search") {
		t.Errorf("the index is filled: %v", err)
	}
	check(t, errors.Join(s.Close(), held.Rollback(), other.Close()))

	s = open(t, Options{Database: sqlite.File{Path: path}})
	_, err = s.Search.Update(t.Context())
	check(t, err)
	if a, b := finds(t, s, "alpha"), finds(t, s, "bravo"); a != 4 || b != 4 {
		t.Errorf("%d and %d jobs are found, want 4 and 4", a, b)
	}
}

// A caller that still writes to the index after the store was closed is told so.
func TestIndex_RefusesWorkAfterTheEnd(t *testing.T) {
	s := open(t, Options{})
	check(t, s.Close())
	if _, err := s.Search.Tidy(t.Context()); !errors.Is(err, db.ErrClosed) {
		t.Errorf("%v", err)
	}
}
