package store

import (
	"bytes"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"redrive/internal/audit"
	"redrive/internal/fault"
	"redrive/internal/store/accounts"
	"redrive/internal/store/db"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/sqlite/sqlitetest"
)

func problems(t *testing.T, path string) (all []string) {
	t.Helper()
	found, err := Examine(t.Context(), sqlite.File{Path: path})
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
	if got := problems(t, pathOf(t, s)); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// A database that no process has open is examined without leaving a trace: SQLite would leave
// a log and its index beside it, and the next start would take them for those of a killed process.
func TestExamine_LeavesNothingBesideAClosedDatabase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "jobs.db")
	s, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
	check(t, err)
	live(t, s)
	check(t, s.Close())
	before := namesIn(t, dir)
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
	if after := namesIn(t, dir); !slices.Equal(after, before) {
		t.Errorf("%q were there before and %q are now", before, after)
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	check(t, err)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

func TestExamine_FindsWhatWasChanged(t *testing.T) {
	sound := filepath.Join(t.TempDir(), "jobs.db")
	s, err := Open(t.Context(), Options{Database: sqlite.File{Path: sound}})
	check(t, err)
	live(t, s)
	_, err = s.Discard(t.Context(), testTime, dead(t, s, 2)[0].ID, 1, audit.Actor{Name: "ana"})
	check(t, errors.Join(err, s.Close()))
	for _, change := range []string{
		`UPDATE depths SET n = n + 1 WHERE status = 'discarded'`,
		`UPDATE depths SET n = n + 1 WHERE status = 'trashed'`,
		`UPDATE counters SET failed = failed + 1`,
		`UPDATE jobs SET list_state = 'scheduled' WHERE seq = (SELECT min(seq) FROM jobs WHERE state = 'available')`,
		`UPDATE dead_letters SET refused = 1 - refused`,
		`DELETE FROM trash`,
		`UPDATE jobs SET attempts = 77 WHERE state = 'retryable'`,
		`DELETE FROM replays`,
		`INSERT INTO bodies SELECT 9999, expires_at, trace_id, message_id, note, meta, payload, envelope FROM bodies LIMIT 1`,
		`UPDATE audit_head SET seq = 99`,
		`DROP TRIGGER audit_stays`,
		`DROP TRIGGER audit_keeps; CREATE TRIGGER audit_keeps BEFORE UPDATE ON audit BEGIN SELECT 1; END`,
		`UPDATE groups SET dead = dead + 1`,
		`UPDATE groups SET refused = refused + 1`,
		`UPDATE groups SET retrying = retrying + 1`,
		`DELETE FROM groups`,
		`UPDATE reasons SET n = n + 1`,
		`UPDATE reasons SET queue = 'other'`,
		`UPDATE reasons SET type = type || 'x'`,
		`UPDATE OR REPLACE reasons SET reason = 'rule_decided'`,
		`INSERT INTO held (queue, type, n) VALUES ('orders', 'email.send', 1)`,
		`DELETE FROM labels`,
		`UPDATE counters SET succeeded = 0`,
		`DELETE FROM counters`,
		`UPDATE operations SET pending = pending + 1, done = done - 1 WHERE id = 1`,
		`UPDATE operations SET dropped = dropped + 1`,
		`UPDATE operation_items SET state = 'failed'`,
		`DELETE FROM operation_pace`,
		`INSERT INTO search_backlog (job_seq, execution) VALUES (9999, 1)`,
		`UPDATE earlier_runs SET job_seq = 9999`,
		`ATTACH DATABASE '%s-search' AS i; INSERT INTO i.search (rowid, text) VALUES (9999, 'gone')`,
		`ATTACH DATABASE '%s-search' AS i; INSERT INTO i.search_texts VALUES (9999, 'gone', '', '', '', '')`,
	} {
		path := filepath.Join(t.TempDir(), "jobs.db")
		for _, suffix := range []string{"", "-search"} {
			data, err := os.ReadFile(sound + suffix)
			check(t, errors.Join(err, os.WriteFile(path+suffix, data, 0o600)))
		}
		edit(t, path, strings.ReplaceAll(change, "%s", path))
		if got := problems(t, path); len(got) == 0 {
			t.Errorf("%s was not noticed", change)
		}
	}
}

// A damaged index is named apart from the database, with what to do: the database is
// sound, and the index will be rebuilt.
func TestExamine_NamesADamagedIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
	check(t, err)
	failWith(t, s, 100, "alpha")
	_, err = s.Search.Update(t.Context())
	check(t, errors.Join(err, s.Close()))
	index, err := os.OpenFile(path+"-search", os.O_RDWR, 0)
	check(t, err)
	size, err := index.Seek(0, io.SeekEnd)
	check(t, err)
	_, err = index.WriteAt(bytes.Repeat([]byte{0xA5}, int(size)-4096), 4096) // all but the first page
	check(t, errors.Join(err, index.Close()))
	got := problems(t, path)
	if len(got) == 0 || !strings.HasPrefix(got[0], "the search index is intact: ") || !strings.Contains(got[0], "remove the file that ends with -search") {
		t.Errorf("%q", got)
	}
	check(t, os.Remove(path+"-search"))
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("without the index: %q", got)
	}
}

func TestExamine_OfWhatIsNoDatabase(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a text":   "this is no database, but it is long enough to be taken for the head of one, perhaps, by somebody",
		"empty":    "",
		"a letter": "x",
	} {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, []byte(text), 0o600))
		if found, err := Examine(t.Context(), sqlite.File{Path: path}); !errors.Is(err, sqlite.ErrForeign) || len(found) > 0 {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
	if found, err := Examine(t.Context(), sqlite.File{Path: dir}); !errors.Is(err, sqlite.ErrForeign) || len(found) > 0 {
		t.Errorf("a directory: %v, %v", found, err)
	}
	other, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "another"))
	check(t, err)
	_, err = other.Exec(`CREATE TABLE t (a)`)
	check(t, errors.Join(err, other.Close()))
	if _, err := Examine(t.Context(), sqlite.File{Path: filepath.Join(dir, "another")}); !errors.Is(err, sqlite.ErrForeign) {
		t.Errorf("the database of another program: %v", err)
	}
}

func TestExamine_OfAnOldDatabase(t *testing.T) {
	s := open(t, Options{})
	path := pathOf(t, s)
	check(t, s.Close())
	edit(t, path, "PRAGMA user_version = 3")
	if found, err := Examine(t.Context(), sqlite.File{Path: path}); err == nil || len(found) > 0 || !strings.Contains(err.Error(), "schema 3") {
		t.Errorf("%v, %v", found, err)
	}
}

// A rollup that drifted is named with its queue, type and reason, and with both
// figures.
func TestExamine_SaysByHowMuchACountDiffers(t *testing.T) {
	s := open(t, Options{})
	live(t, s)
	other, err := sql.Open("sqlite", "file:"+pathOf(t, s))
	check(t, err)
	_, err = other.Exec(`INSERT INTO labels (kind, source, name) VALUES ('queue', '', 'q1000');
		INSERT INTO reasons (queue, type, reason, n) VALUES ('q1000', 'email.send', 'poison', -1)`)
	check(t, errors.Join(err, other.Close()))
	got := problems(t, pathOf(t, s))
	want := "counts of open dead letters by queue, type and reason match the jobs: exceptions: 1, the first is q1000 email.send poison (counted -1, found 0)"
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q", got)
	}
}

// What no migration made is named, whatever it is. A trigger runs with every write to its
// table, and a view can stand in the place of one that Redrive made.
func TestExamine_NamesWhatNoMigrationMade(t *testing.T) {
	path := sqlitetest.New(t)
	check(t, open(t, Options{Database: sqlite.File{Path: path}}).Close())
	if got := problems(t, path); len(got) > 0 {
		t.Fatalf("%q", got)
	}
	backup := filepath.Join(t.TempDir(), "backup.db")
	for statement, name := range map[string]string{
		`CREATE TRIGGER evil AFTER INSERT ON jobs BEGIN UPDATE jobs SET queue = 'x' WHERE seq = new.seq; END`: "trigger evil on jobs",
		`CREATE VIEW spy AS SELECT * FROM bodies`:                                                             "view spy",
		`CREATE TABLE notes (a)`:                                                 "table notes",
		`CREATE INDEX slow ON jobs (priority)`:                                   "index slow on jobs",
		`DROP VIEW executions; CREATE VIEW executions AS SELECT * FROM attempts`: "view executions",
	} {
		f := sqlite.File{Path: filepath.Join(t.TempDir(), "harmed.db")}
		check(t, sqlite.File{Path: path}.Backup(t.Context(), f.Path, false, unheard))
		edit(t, f.Path, statement)
		got := problems(t, f.Path)
		if len(got) != 1 || !strings.Contains(got[0], "Redrive did not make the "+name) {
			t.Errorf("%s: %q", statement, got)
		}

		check(t, f.Backup(t.Context(), backup, true, unheard))
		to := filepath.Join(t.TempDir(), "restored.db")
		_, err := sqlite.File{Path: to}.Restore(t.Context(), backup, false, unheard)
		if !errors.Is(err, fault.ErrUnsafe) || !strings.Contains(err.Error(), "the "+name) {
			t.Errorf("restored with the %s: %v", name, err)
		}
		if left := filesIn(t, filepath.Dir(to)); left != "" {
			t.Errorf("it left %s", left)
		}
	}
}

// An object that a migration made and a person removed is named as well.
func TestExamine_NamesWhatWasRemoved(t *testing.T) {
	path := sqlitetest.New(t)
	check(t, open(t, Options{Database: sqlite.File{Path: path}}).Close())
	edit(t, path, "DROP VIEW executions")
	got := problems(t, path)
	if len(got) != 1 || !strings.Contains(got[0], "the view executions was removed: restore a backup") {
		t.Errorf("%q", got)
	}
}

// A backup of an earlier version has what its migrations made, and no more.
func TestRestore_TakesAnEarlierVersion(t *testing.T) {
	for _, version := range []int64{1, 20} {
		f := sqlite.File{Path: filepath.Join(t.TempDir(), "jobs.db")}
		_, err := f.Restore(t.Context(), databaseOf(t, version), false, unheard)
		check(t, err)
		s := open(t, Options{Database: f})
		if n := s.Snapshot().Depths.Jobs(); n != 1 {
			t.Errorf("version %d: %d jobs", version, n)
		}
		check(t, s.Close())
		if got := problems(t, f.Path); len(got) > 0 {
			t.Errorf("version %d: %q", version, got)
		}
	}
}

// PostgreSQL would go through all jobs again for each row: what NOT IN lists may hold a NULL, and a
// million numbers do not fit into the memory that a query has.
func TestExamine_ListsNoJobs(t *testing.T) {
	for _, i := range invariants() {
		if strings.Contains(i.Query, "NOT IN (SELECT seq FROM jobs") {
			t.Errorf("%s: %s", i.What, i.Query)
		}
	}
}

// growing is an audit log that grows while it is read.
type growing struct {
	db.Source
	grow func()
}

func (g *growing) Query(query string, each func(*sql.Rows) error, args ...any) error {
	if strings.Contains(query, "audit_head") {
		g.grow()
		g.grow = func() {}
	}

	return g.Source.Query(query, each, args...)
}

// An entry that comes while the audit log is verified is no sign that it was changed.
func TestExamine_LetsTheAuditLogGrow(t *testing.T) {
	s := open(t, Options{})
	live(t, s)
	record := func() { check(t, s.Accounts.Record(t.Context(), audit.Entry{At: testTime, Action: "jobs.csv"})) }
	before, err := accounts.Verify(s.reader.In(t.Context()))
	check(t, err)
	after, err := accounts.Verify(&growing{s.reader.In(t.Context()), record})
	check(t, err)
	if after != before+1 {
		t.Errorf("%d entries were verified, want %d", after, before+1)
	}
}
