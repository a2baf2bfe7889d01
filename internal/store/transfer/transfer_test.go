package transfer

import (
	"context"
	"database/sql"
	"errors"

	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/config"
	"redrive/internal/demo"
	"redrive/internal/fault"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/seed"
	"redrive/internal/store"
	"redrive/internal/store/location"
	"redrive/internal/store/postgres/postgrestest"

	"redrive/internal/store/moving"
	"redrive/internal/store/sqlite/sqlitetest"
	"redrive/internal/usage"
)

var ana = audit.Actor{Name: "ana", Address: "127.0.0.1"}

// day is a file in which a day of the demo happened, with accounts and a pause.
func day(t *testing.T) (path string) {
	t.Helper()
	path = sqlitetest.New(t)
	s := openStore(t, path)

	now := time.Now()
	settings := config.Default()
	desk := demo.Desk{Operations: s.Operations, Groups: s.Groups, Hide: settings.Redactor().Text}
	check(t, demo.New(1, settings).History(t.Context(), s, desk, demo.Day{End: now, Jobs: 500}, func(int, int) {}))

	check(t, s.Accounts.AddUser(t.Context(), now, access.User{Name: "ana", Role: access.Admin, Password: "$argon2id$"}, ana))
	user, err := s.Accounts.User(t.Context(), "ana")
	check(t, err)
	_, hash := access.NewSession()
	check(t, s.Accounts.StartSession(t.Context(), now, access.Session{Hash: hash, User: "ana"}, user, ana))
	check(t, s.Pause(t.Context(), now, "mail", ana))
	_, err = s.Search.Update(t.Context())
	check(t, errors.Join(err, s.Close()))

	return path
}

// raw runs a statement on a file behind its store.
func raw(t *testing.T, path, text string) {
	t.Helper()
	pool, err := sql.Open("sqlite", path)
	check(t, err)
	_, err = pool.Exec(text)
	check(t, errors.Join(err, pool.Close()))
}

func TestRun_MovesADayThereAndBack(t *testing.T) {
	path, server, back := day(t), postgrestest.New(t), filepath.Join(t.TempDir(), "back.db")
	thereAndBack(t, path, server, back)

	for _, where := range []string{server, back} {
		s := openStore(t, where)
		worksOn(t, s)
		check(t, s.Close())
		sound(t, where)
	}
}

// A database goes to another server, or to another schema of the same database. What another program has in
// both of them stays where it is.
func TestRun_MovesADayFromServerToServer(t *testing.T) {
	first, firstDo := postgrestest.Bare(t, "")
	_, err := run(day(t), first)
	check(t, err)

	elsewhere := postgrestest.NewCluster(t).DSN("postgres")
	firstDo(`CREATE TABLE theirs (id BIGINT PRIMARY KEY); INSERT INTO theirs VALUES (1); CREATE SCHEMA other`)
	postgrestest.Query(t, elsewhere, `CREATE TABLE theirs (id BIGINT PRIMARY KEY)`)

	before := contents(t, first)
	for name, to := range map[string]string{"another server": elsewhere, "another schema": first + "&search_path=other"} {
		t.Run(name, func(t *testing.T) {
			report, err := run(first, to)
			check(t, err)
			if report.Mended != 0 {
				t.Errorf("%d texts were mended", report.Mended)
			}

			compare(t, before, contents(t, to))
			sound(t, to)

			s := openStore(t, to)
			worksOn(t, s)
			check(t, s.Close())
			sound(t, to)
		})
	}

	compare(t, before, contents(t, first))
	if n := postgrestest.Query(t, elsewhere, `SELECT count(*) FROM theirs`); n != "0" {
		t.Errorf("%s rows of another program were copied", n)
	}
}

// worksOn checks that the product goes on with a copied database: numbers collide with none that
// was copied, and every failure is found.
func worksOn(t *testing.T, s *store.Store) {
	t.Helper()
	ctx, now := t.Context(), time.Now()

	if !s.Search.Reindexing() {
		t.Error("the empty search index counts as complete")
	}
	_, err := s.Search.Update(ctx)
	check(t, err)
	if s.Search.Reindexing() {
		t.Error("the search index is not complete after its update")
	}
	dead, err := s.Jobs(ctx, filter.Filter{Status: job.StatusDeadLetter}, filter.Cursor{}, 1)
	check(t, err)
	if len(dead.Jobs) == 0 {
		t.Fatal("there are no dead letters")
	}
	found, err := s.Jobs(ctx, filter.Filter{Error: dead.Jobs[0].Error.Message}, filter.Cursor{}, 5)
	check(t, err)
	if len(found.Jobs) == 0 {
		t.Errorf("no job is found by %q", dead.Jobs[0].Error.Message)
	}

	_, err = s.Replay(ctx, now, dead.Jobs[0].ID, dead.Jobs[0].Run, ana)
	check(t, err)

	// A policy that no job had before gets a number of its own.
	policy := retry.Policy{
		MaxAttempts: 1, Strategy: retry.Constant, InitialInterval: time.Second, Coefficient: 1,
		MaxInterval: 77 * time.Minute, OnExhaustion: retry.DeadLetter,
	}
	added, err := s.Enqueue(ctx, now, []job.Job{{Queue: "fresh", Type: "fresh", Policy: policy, Timeout: time.Minute, Payload: []byte(`{}`)}})
	check(t, err)
	claimed, _, err := s.Exchange(ctx, nil, job.Claim{Worker: "w", Now: now, Lease: time.Minute, Free: map[string]int{"fresh": 1}})
	check(t, err)
	if len(claimed) != 1 || claimed[0].ID != added[0].Job.ID {
		t.Fatalf("claimed %v, want the job that was enqueued", claimed)
	}
	failed := claimed[0].Settle(job.Ending{Outcome: job.Failed, Error: job.ErrorInfo{Type: "Fresh", Message: "never seen"}, FinishedAt: now}, nil)
	_, stale, err := s.Exchange(ctx, []job.Settlement{failed}, job.Claim{})
	check(t, err)
	if len(stale) > 0 {
		t.Errorf("%v is stale", stale)
	}

	check(t, s.Accounts.AddUser(ctx, now, access.User{Name: "bo", Role: access.Viewer, Password: "$argon2id$"}, ana))
}

// Each run is cut short after a few batches, also in the middle of a table. Until the last one,
// nothing but another run with the same databases may do anything with the copy.
func TestRun_GoesOnWhereItWasCutShort(t *testing.T) {
	path, server := sqlitetest.New(t), postgrestest.New(t)
	s := openStore(t, path)
	check(t, seed.Plan{Jobs: 600, Dead: 100, Seed: 1, Now: time.Now()}.Write(t.Context(), s, s.Search, func(int, int) {}))
	check(t, s.Close())
	other := sqlitetest.New(t)
	before := contents(t, path)

	for _, way := range []struct{ name, from, to string }{
		{"to a server", path, server},
		{"to a file", path, filepath.Join(t.TempDir(), "copy.db")},
		{"from a server to another one", server, postgrestest.New(t)},
	} {
		t.Run(way.name, func(t *testing.T) {
			from, to := way.from, way.to
			runs, kept := 0, int64(0)
			for {
				report, err := runFor(t.Context(), from, to, 5)
				if report.Kept < kept || runs > 0 && report.Kept == 0 {
					t.Errorf("run %d began with %d rows", runs, report.Kept)
				}
				kept = report.Kept
				runs++
				if err == nil {
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if runs == 2 {
					refusesUnfinished(t, from, to, other)
				}
			}
			if runs < 3 {
				t.Errorf("%d runs", runs)
			}
			compare(t, before, contents(t, to))
			sound(t, to)
		})
	}
}

// runFor is Run that is cut short after so many reports of its progress while it copies.
func runFor(ctx context.Context, from, to string, reports int) (Report, error) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()

	return Run(ctx, location.Of(from), location.Of(to), func(step Step, _, _ int64) {
		reports--
		if step == Copying && reports == 0 {
			cut()
		}
	})
}

// refusesUnfinished checks that an unfinished copy is refused by all that could open it.
func refusesUnfinished(t *testing.T, from, to, other string) {
	t.Helper()
	source := location.Of(from).String()
	unfinished := "a migration into it is not finished: it is to become a copy of " + source

	_, err := store.Open(t.Context(), store.Options{Database: location.Of(to).Database(false)})
	if !errors.Is(err, fault.ErrUnsafe) || !strings.Contains(err.Error(), unfinished) {
		t.Errorf("a store opens it: %v", err)
	}
	_, err = store.Examine(t.Context(), location.Of(to).Database(false))
	if !errors.Is(err, moving.ErrUnfinished) || !errors.Is(err, fault.ErrUnsafe) || !strings.Contains(err.Error(), unfinished) {
		t.Errorf("doctor looks at it: %v", err)
	}
	_, err = run(to, filepath.Join(t.TempDir(), "next.db"))
	if !errors.Is(err, moving.ErrUnfinished) {
		t.Errorf("it is copied: %v", err)
	}
	refused(t, "another source", other, to, "is to become a copy of "+source+", and not of "+other)
	if file, err := location.Of(to).File(); err == nil {
		err := file.Backup(t.Context(), filepath.Join(t.TempDir(), "copy.bak"), false, func(int64, int64) {})
		if !errors.Is(err, moving.ErrUnfinished) {
			t.Errorf("it is backed up: %v", err)
		}
	}
}

// refused checks that a migration is refused, as something that was asked wrongly.
func refused(t *testing.T, what, from, to, want string) {
	t.Helper()
	_, err := run(from, to)
	if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, new(usage.Error)) {
		t.Errorf("%s: %v, want a refusal with %q", what, err, want)
	}
}

func TestRun_RefusesWhatWasWrittenToSinceItBegan(t *testing.T) {
	path, to := sqlitetest.New(t), filepath.Join(t.TempDir(), "copy.db")
	s := openStore(t, path)
	enqueue(t, s)
	check(t, s.Close())
	if _, err := runFor(t.Context(), path, to, 1); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s = openStore(t, path)
	enqueue(t, s)
	check(t, s.Close())
	refused(t, "a source that moved on", path, to, "was written to since its migration into "+to+" began")
}

func enqueue(t *testing.T, s *store.Store) {
	t.Helper()
	_, err := s.Enqueue(t.Context(), time.Now(), []job.Job{{Queue: "q", Type: "t", Timeout: time.Minute, Payload: []byte(`{}`), Policy: retry.Default()}})
	check(t, err)
}

func TestRun_RefusesWhatCannotBeCopied(t *testing.T) {
	server, file, fresh := postgrestest.New(t), sqlitetest.New(t), func() string { return filepath.Join(t.TempDir(), "fresh.db") }

	bare, _ := postgrestest.Bare(t, "")
	refused(t, "no file", fresh(), server, "there is no database at")
	refused(t, "no tables", bare, fresh(), "there is no database at")
	refused(t, "the same file", file, file, "name the same database")
	refused(t, "the same server", server, server, "name the same database")

	for held, says := range map[string]string{server: "; stop it, and what stands by for it", sqlitetest.New(t): "is in use by the process with pid"} {
		s := openStore(t, held)
		refused(t, "a source in use", held, fresh(), says)
		check(t, s.Close())
	}
	for _, filled := range []string{postgrestest.New(t), sqlitetest.New(t)} {
		s := openStore(t, filled)
		enqueue(t, s)
		check(t, s.Close())
		refused(t, "a target with jobs", file, filled, location.Of(filled).String()+" is not empty, and was left as it is: it has rows in bodies (1), depths (1)")
	}

	old := sqlitetest.New(t)
	raw(t, old, `PRAGMA user_version = 28`)
	if _, err := run(old, server); err == nil || !strings.Contains(err.Error(), "its schema has version 28, and this program copies version 29") {
		t.Errorf("an older schema: %v", err)
	}

	wrong := sqlitetest.New(t)
	raw(t, wrong, `INSERT INTO depths (queue, status, n) VALUES ('q', 'available', 1)`)
	to := fresh()
	if _, err := run(wrong, to); err == nil || !strings.Contains(err.Error(), "is not sound, and nothing was copied") {
		t.Errorf("a source with a wrong count: %v", err)
	}
	if _, err := os.Stat(to); err == nil {
		t.Errorf("%s was made all the same", to)
	}
	if _, err := run(file, server); err != nil {
		t.Errorf("the server that was refused can no longer be filled: %v", err)
	}
}

// A file of an older version can have any bytes in its texts. In the audit log, each entry has a
// hash of them.
func TestRun_MendsTextsThatNotEveryDatabaseKeeps(t *testing.T) {
	path, server := day(t), postgrestest.New(t)
	raw(t, path, `UPDATE attempts SET trace = CAST(x'6100ff62' AS TEXT) WHERE (job_seq, execution) IN (SELECT job_seq, execution FROM attempts LIMIT 3)`)
	report, err := run(path, server)
	check(t, err)
	if report.Mended != 3 {
		t.Errorf("%d texts were mended, want 3", report.Mended)
	}
	mended := slices.ContainsFunc(contents(t, server)["attempts"], func(row string) bool { return strings.Contains(row, `trace=string "a��b"`) })
	if !mended {
		t.Error("the trace is not there")
	}
}

// An entry of the audit log that another database cannot keep would break the chain there.
func TestBatch_ChangesNoEntryOfTheAuditLog(t *testing.T) {
	var b batch
	check(t, b.add(moving.Table{Name: "audit"}, []any{int64(1), "fine"}))
	if err := b.add(moving.Table{Name: "audit"}, []any{int64(2), "a\x00b"}); err == nil || !strings.Contains(err.Error(), "it must not be changed") {
		t.Errorf("an entry with a NUL: %v", err)
	}
	check(t, b.add(moving.Table{Name: "jobs"}, []any{int64(1), "a\xffb"}))
}

// What a later version adds is copied, or it is said here why not.
func TestTables_AreCopiedOrLeftOutForAReason(t *testing.T) {
	known := map[string]bool{}
	sides := [2]map[string]moving.Table{}
	for i, where := range []string{sqlitetest.New(t), postgrestest.New(t)} {
		e, err := open(t.Context(), location.Of(where), moving.ToCopy)
		check(t, err)
		tables, err := e.engine.Tables(t.Context())
		check(t, err)

		sides[i] = map[string]moving.Table{}
		for _, table := range tables {
			sides[i][table.Name], known[table.Name] = table, true
			n, err := e.count(t.Context(), table)
			check(t, err)
			if leftOut[table.Name] == "" && (n > 0) != slices.Contains(firstRows, table.Name) {
				t.Errorf("%s of %s has %d rows when it is new", table.Name, where, n)
			}
			if len(table.Key) == 0 && n != 1 {
				t.Errorf("%s of %s has no key and %d rows", table.Name, where, n)
			}
		}
		check(t, e.close())
	}
	for name := range known {
		file, server := sides[0][name], sides[1][name]
		if leftOut[name] == "" && (file.Name == "" || server.Name == "" || !slices.Equal(file.Key, server.Key)) {
			t.Errorf("%s is neither copied nor left out: %v in a file, %v on a server", name, file, server)
		}
	}
	for name := range leftOut {
		if !known[name] {
			t.Errorf("%s is left out and is no table", name)
		}
	}
	if _, err := common([]moving.Table{{Name: "t", Columns: []string{"a"}}}, []moving.Table{{Name: "t", Columns: []string{"a", "b"}}}); err == nil {
		t.Error("a table with other columns is copied")
	}
}

// Another program can have tables in the schema in which Redrive works. What it has numbered and
// removed again stays numbered.
func TestRun_LeavesTablesOfOtherProgramsAlone(t *testing.T) {
	server, statement := postgrestest.Bare(t, "")
	statement(`CREATE TABLE theirs (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text TEXT);
		INSERT INTO theirs (text) VALUES ('a'), ('b'), ('c'); DELETE FROM theirs`)
	_, err := run(sqlitetest.New(t), server)
	check(t, err)
	statement(`INSERT INTO theirs (text) VALUES ('d');
		DO $$ BEGIN ASSERT (SELECT id FROM theirs) = 4, 'their numbers begin again'; END $$`)

	_, err = run(server, filepath.Join(t.TempDir(), "back.db"))
	check(t, err)
}
