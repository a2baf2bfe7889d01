package sqlsource_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"redrive/internal/fingerprint"
	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/sqlsource"
)

var update = flag.Bool("update", false, "write the golden files")

// system is a database as the real program left it.
type system struct {
	preset, engine, file string
	more                 []string // what is done to it after it is loaded
	settings             preset.Settings
	work                 string   // lists the rows of the queue to which jobs go back
	unfit                []string // keys of records that cannot be replayed
}

func (s system) String() string { return s.preset + " " + s.engine }

var berlin = preset.Settings{Zone: "Europe/Berlin"}

// captured makes the table of the listener in docs/sources.md, and fills it as the
// listener does, with rows that the real program made.
func captured(create string) []string {
	return []string{create, `INSERT INTO queue_failed (job_id, channel, job, pushed_at, ttr, priority, attempt, exception, error, failed_at)
		SELECT id, channel, job, pushed_at, ttr, priority, attempt, 'RuntimeException', 'Payment gateway timeout', done_at
		FROM queue WHERE id IN (1, 4, 7) ORDER BY id`}
}

// solid lists the jobs of Solid Queue, each with its execution.
const solid = `SELECT j.*, r.queue_name AS ready_in, r.priority AS ready_priority, r.created_at AS ready_at,
	s.queue_name AS scheduled_in, s.priority AS scheduled_priority, s.scheduled_at AS scheduled_for, s.created_at AS scheduled_on
	FROM solid_queue_jobs AS j LEFT JOIN solid_queue_ready_executions AS r ON r.job_id = j.id
	LEFT JOIN solid_queue_scheduled_executions AS s ON s.job_id = j.id ORDER BY j.id`

var systems = []system{
	{"laravel", "sqlite", "laravel/sqlite-dump.sql", nil, berlin, "SELECT * FROM jobs ORDER BY id", nil},
	{"laravel", "postgres", "laravel/postgres-dump.sql", nil, berlin, "SELECT * FROM public.jobs ORDER BY id", nil},
	{"laravel", "mysql", "", nil, berlin, "SELECT * FROM jobs ORDER BY id", nil},
	{"initphp", "sqlite", "initphp-queue/sqlite-dump.sql", nil, preset.Settings{}, "SELECT * FROM jobs ORDER BY id", []string{"4"}},
	{"initphp", "mysql", "initphp-queue/mariadb-dump.sql", nil, preset.Settings{}, "SELECT * FROM jobs ORDER BY id", []string{"4"}},
	{"yii2-db", "sqlite", "yii2-queue/sqlite-dump.sql", nil, preset.Settings{}, "SELECT * FROM queue ORDER BY id", []string{"2"}},
	{"yii2-db", "postgres", "yii2-queue/postgres-dump.sql", captured(`CREATE TABLE queue_failed (
		id serial PRIMARY KEY, job_id integer NOT NULL, channel varchar(255) NOT NULL, job bytea NOT NULL, pushed_at integer NOT NULL,
		ttr integer NOT NULL, priority integer NOT NULL, attempt integer NOT NULL, exception varchar(255), error text, failed_at integer NOT NULL)`),
		preset.Settings{}, "SELECT * FROM queue ORDER BY id", []string{"3"}},
	{"yii2-db", "mysql", "yii2-queue/mariadb-dump.sql", captured(`CREATE TABLE queue_failed (
		id int AUTO_INCREMENT PRIMARY KEY, job_id int NOT NULL, channel varchar(255) NOT NULL, job longblob NOT NULL, pushed_at int NOT NULL,
		ttr int NOT NULL, priority int NOT NULL, attempt int NOT NULL, exception varchar(255), error longtext, failed_at int NOT NULL)`),
		preset.Settings{}, "SELECT * FROM queue ORDER BY id", []string{"3"}},
	{"river", "postgres", "river/postgres-dump.sql", nil, preset.Settings{}, "SELECT * FROM river_job ORDER BY id", nil},
	{"daycry", "sqlite", "daycry-jobs/sqlite-dump.sql", nil, preset.Settings{}, "SELECT * FROM queues ORDER BY id", nil},
	{"daycry", "mysql", "daycry-jobs/mariadb-dump.sql", nil, preset.Settings{}, "SELECT * FROM queues ORDER BY id", nil},
	{"graphile-worker", "postgres", "graphile-worker/postgres-dump.sql", nil, preset.Settings{},
		"SELECT * FROM graphile_worker._private_jobs ORDER BY id", nil},
	{"pg-boss", "postgres", "pg-boss/postgres-dump-v10.sql", []string{"UPDATE pgboss.job SET keep_until = start_after + interval '1 hour'"}, preset.Settings{}, "SELECT * FROM pgboss.job ORDER BY id", nil},
	{"oban", "postgres", "written/oban.sql", nil, preset.Settings{}, "SELECT * FROM oban_jobs ORDER BY id", nil},
	{"good-job", "postgres", "written/good-job.sql", nil, preset.Settings{}, "SELECT * FROM good_jobs ORDER BY id", nil},
	{"solid-queue", "sqlite", "written/solid-queue-sqlite.sql", nil, preset.Settings{}, solid, []string{"2"}},
	{"solid-queue", "postgres", "written/solid-queue-postgres.sql", nil, preset.Settings{}, solid, []string{"2"}},
	{"solid-queue", "mysql", "written/solid-queue-mysql.sql", nil, preset.Settings{}, solid, []string{"2"}},
}

// origins opens the same database, each with connections of its own.
func (s system) origin(t *testing.T, address string) *sqlsource.Origin {
	t.Helper()
	o, err := openURL(t, address, s)
	check(t, err)
	t.Cleanup(func() { check(t, o.Close()) })
	return o
}

func openURL(t *testing.T, address string, s system) (*sqlsource.Origin, error) {
	return sqlsource.Open(t.Context(), address, preset.All()[s.preset], s.settings)
}

// load makes the database of a system.
func (s system) load(t *testing.T) (address string) {
	t.Helper()
	if s.file == "" {
		return laravelInMariaDB(t)
	}
	return loaded(t, s.engine, s.file, s.more...)
}

// laravelInMariaDB has the tables that Laravel makes in MySQL, with the failed jobs that
// it left in SQLite.
func laravelInMariaDB(t *testing.T) (address string) {
	t.Helper()
	address = newDatabase(t, "mysql")
	execute(t, address, `CREATE TABLE failed_jobs (id bigint unsigned AUTO_INCREMENT PRIMARY KEY, uuid varchar(255) NOT NULL UNIQUE, connection text NOT NULL,
			queue text NOT NULL, payload longtext NOT NULL, exception longtext NOT NULL, failed_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP);
		CREATE TABLE jobs (id bigint unsigned AUTO_INCREMENT PRIMARY KEY, queue varchar(255) NOT NULL, payload longtext NOT NULL,
			attempts tinyint unsigned NOT NULL, reserved_at int unsigned, available_at int unsigned NOT NULL, created_at int unsigned NOT NULL,
			KEY jobs_queue_index (queue))`)
	from, to := open(t, loaded(t, "sqlite", "laravel/sqlite-dump.sql")), open(t, address)
	defer from.Close()
	defer to.Close()
	found, err := from.Query("SELECT id, uuid, connection, queue, payload, exception, failed_at || '' FROM failed_jobs ORDER BY id")
	check(t, err)
	defer found.Close()
	for found.Next() {
		row := make([]any, 7)
		for i := range row {
			row[i] = new(string)
		}
		check(t, found.Scan(row...))
		_, err := to.Exec("INSERT INTO failed_jobs VALUES (?, ?, ?, ?, ?, ?, ?)", row...)
		check(t, err)
	}
	check(t, found.Err())
	return address
}

// each runs a test with the database of each system.
func each(t *testing.T, do func(t *testing.T, s system, address string)) {
	for _, s := range systems {
		t.Run(s.String(), func(t *testing.T) { do(t, s, s.load(t)) })
	}
}

func scan(t *testing.T, o *sqlsource.Origin, limit int) (all []source.Record) {
	t.Helper()
	places := map[string]bool{}
	for after := ""; ; {
		page, err := o.Scan(t.Context(), after, limit)
		check(t, err)
		page.Complete(page.Records)
		all = append(all, page.Records...)
		if after = page.Next; after == "" {
			return all
		}
		if places[after] {
			t.Fatalf("the list comes to %q twice", after)
		}
		places[after] = true
	}
}

// fit is the newest record that can be replayed.
func (s system) fit(t *testing.T, o *sqlsource.Origin) source.Record {
	t.Helper()
	for _, r := range scan(t, o, 100) {
		if !slices.Contains(s.unfit, r.Key) {
			return r
		}
	}
	t.Fatal("no record can be replayed")
	return source.Record{}
}

func act(t *testing.T, o *sqlsource.Origin, k source.Kind, m source.Mode, r source.Record) source.Result {
	t.Helper()
	results, err := o.Act(t.Context(), []source.Act{{ID: 7, Kind: k, Mode: m, Record: r}})
	check(t, err)
	if len(results) != 1 || results[0].ID != 7 {
		t.Fatalf("results %+v", results)
	}
	if w := results[0].Why; w != "" && !strings.HasSuffix(w, ".") {
		t.Errorf("%q is not a sentence", w)
	}
	return results[0]
}

// rows are those of a query, each in one line: the names of the columns and the values.
func rows(t *testing.T, address, query string) (all []string) {
	t.Helper()
	db := open(t, address)
	defer db.Close()
	found, err := db.Query(query)
	check(t, err)
	defer found.Close()
	columns, err := found.Columns()
	check(t, err)
	for found.Next() {
		cells, places := make([]any, len(columns)), make([]any, len(columns))
		for i := range cells {
			places[i] = &cells[i]
		}
		check(t, found.Scan(places...))
		var line strings.Builder
		for i, c := range columns {
			fmt.Fprintf(&line, "%s=%s ", c, cell(cells[i]))
		}
		all = append(all, strings.TrimSpace(line.String()))
	}
	check(t, found.Err())
	return all
}

func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		return visible(string(v))
	case string:
		return visible(v)
	case time.Time:
		return v.UTC().Format("2006-01-02 15:04:05.999999")
	}
	return fmt.Sprint(v)
}

// visible is a text as a golden file can have it.
func visible(text string) string {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return strconv.Quote(text)
	}
	return text
}

// added are the rows that were not there before, with the time of the test and those some
// hours later taken out.
func added(before, after []string, began time.Time) (all []string) {
	for _, row := range after {
		if !slices.Contains(before, row) {
			all = append(all, timeless(row, began))
		}
	}
	return all
}

var instant = regexp.MustCompile(`\b\d{10}\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?`)

func timeless(row string, began time.Time) string {
	return instant.ReplaceAllStringFunc(row, func(text string) string {
		at, err := time.Parse("2006-01-02 15:04:05", text)
		if seconds, number := strconv.ParseInt(text, 10, 64); number == nil {
			at, err = time.Unix(seconds, 0), nil
		}
		for later, word := range map[time.Duration]string{0: "(now)", time.Hour: "(in an hour)", 2 * time.Hour: "(in two hours)"} {
			if err == nil && at.After(began.Add(later-2*time.Second)) && at.Before(time.Now().Add(later+2*time.Second)) {
				return word
			}
		}
		return text
	})
}

// golden compares what a test got with the file of its name.
func golden(t *testing.T, got string) {
	t.Helper()
	file := filepath.Join("testdata", regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(strings.TrimPrefix(t.Name(), "Test"), "-")+".golden")
	if *update {
		check(t, os.MkdirAll("testdata", 0o755))
		check(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	check(t, err)
	if got != string(want) {
		t.Errorf("%s differs from what was got:\n%s", file, got)
	}
}

// shown is a record as the golden files have it.
type shown struct {
	Key, Lineage, VersionToken, Place, Queue, Type string
	Payload, Meta                                  string `json:",omitempty"`
	Class, Error, Trace                            string `json:",omitempty"`
	Group                                          string
	Attempts, Limit                                int `json:",omitempty"`
	FailedAt, CreatedAt                            time.Time
	History                                        []source.Failure `json:",omitempty"`
	Warnings                                       []string         `json:",omitempty"`
}

func show(r source.Record) shown {
	trace, _, _ := strings.Cut(r.Trace, "\n")
	return shown{
		r.Key, r.Lineage, r.VersionToken, r.Place, r.Queue, r.Type, visible(string(r.Payload)), string(r.Meta), r.Error.Type, r.Error.Message, trace,
		fingerprint.Of(r.Type, r.Error.Type, r.Error.Message, r.Trace).Fingerprint, r.Attempts, r.Limit, r.FailedAt, r.CreatedAt, r.History, r.Warnings,
	}
}

func TestOrigin_ShowsEveryRecord(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		for _, r := range scan(t, s.origin(t, address), 100) {
			check(t, e.Encode(show(r)))
		}
		golden(t, text.String())
	})
}

func TestOrigin_PagesMeetEachRecordOnce(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		o := s.origin(t, address)
		all := scan(t, o, 100)
		for _, limit := range []int{1, 2} {
			for i, r := range scan(t, o, limit) {
				if i >= len(all) || r.Key != all[i].Key {
					t.Fatalf("in pages of %d, record %d is %s", limit, i, r.Key)
				}
			}
			if n := len(scan(t, o, limit)); n != len(all) {
				t.Errorf("in pages of %d there are %d records of %d", limit, n, len(all))
			}
		}
	})
}

// Every record is replayed in each mode: what its queue has then is a golden.
func TestOrigin_Replay(t *testing.T) {
	for _, mode := range []source.Mode{source.Once, source.Fresh} {
		t.Run(string(mode), func(t *testing.T) {
			each(t, func(t *testing.T, s system, address string) {
				o := s.origin(t, address)
				r := s.fit(t, o)
				dead, before, began := len(scan(t, o, 100)), rows(t, address, s.work), time.Now()
				if got := act(t, o, source.Replay, mode, r); got.State != source.Done {
					t.Fatalf("%+v", got)
				}
				text := r.Key + ": done\n"
				if n := len(scan(t, o, 100)); n != dead-1 {
					t.Errorf("%d of %d records lie dead", n, dead)
				}
				after := rows(t, address, s.work)
				if got := act(t, o, source.Replay, mode, r); got.State != source.Gone {
					t.Errorf("a second time: %+v", got)
				}
				if again := rows(t, address, s.work); !slices.Equal(after, again) {
					t.Errorf("the second time changed %q", again)
				}
				for _, r := range scan(t, o, 100) {
					got := act(t, o, source.Replay, mode, r)
					text += strings.TrimSpace(fmt.Sprintf("%s: %s %s", r.Key, got.State, got.Why)) + "\n"
				}
				golden(t, text+strings.Join(added(before, rows(t, address, s.work), began), "\n")+"\n")
			})
		})
	}
}

func TestOrigin_AnotherVersionTokenIsChanged(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		o := s.origin(t, address)
		r := s.fit(t, o)
		before, present := rows(t, address, s.work), scan(t, o, 100)
		for _, k := range []source.Kind{source.Replay, source.Discard} {
			seen := r
			seen.VersionToken = other(r.VersionToken)
			if got := act(t, o, k, source.Once, seen); got.State != source.Changed || got.Why == "" {
				t.Errorf("%s: %+v", k, got)
			}
		}
		if after := rows(t, address, s.work); !slices.Equal(before, after) {
			t.Errorf("the queue changed: %q", after)
		}
		if n := len(scan(t, o, 100)); n != len(present) {
			t.Errorf("%d of %d records lie dead", n, len(present))
		}
	})
}

// other is a witness of the same type that is not the one.
func other(version string) string {
	if n, err := strconv.Atoi(version); err == nil {
		return strconv.Itoa(n + 1)
	}
	if at, err := time.Parse(time.RFC3339Nano, version); err == nil {
		return at.Add(-time.Microsecond).Format(time.RFC3339Nano)
	}
	return "00000000-0000-0000-0000-000000000000"
}

func TestOrigin_OfReplaysAtOnceOneWins(t *testing.T) { ofReplaysOneWins(t, 3) }

func TestLong_OriginOfTwentyReplaysOneWins(t *testing.T) { ofReplaysOneWins(t, 20) }

func ofReplaysOneWins(t *testing.T, n int) {
	t.Helper()
	each(t, func(t *testing.T, s system, address string) {
		r := s.fit(t, s.origin(t, address))
		before, began := rows(t, address, s.work), time.Now()
		results, failures := make([]source.Result, n), make([]error, n)
		var start, end sync.WaitGroup
		start.Add(1)
		for i := range results {
			o := s.origin(t, address)
			end.Go(func() {
				start.Wait()
				got, err := o.Act(context.Background(), []source.Act{{Kind: source.Replay, Mode: source.Once, Record: r}})
				if failures[i] = err; err == nil {
					results[i] = got[0]
				}
			})
		}
		start.Done()
		end.Wait()
		check(t, errors.Join(failures...))
		won := 0
		for _, got := range results {
			switch got.State {
			case source.Done:
				won++
			case source.Gone:
			default:
				t.Errorf("%+v", got)
			}
		}
		if new := added(before, rows(t, address, s.work), began); won != 1 || len(new) != 1 {
			t.Errorf("%d won, and the queue has %q", won, new)
		}
	})
}

func TestOrigin_Discard(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		o := s.origin(t, address)
		all := scan(t, o, 100)
		before := rows(t, address, s.work)
		for _, r := range all {
			if got := act(t, o, source.Discard, "", r); got.State != source.Done {
				t.Errorf("%s: %+v", r.Key, got)
			}
			if got := act(t, o, source.Discard, "", r); got.State != source.Gone {
				t.Errorf("%s, a second time: %+v", r.Key, got)
			}
		}
		if left := scan(t, o, 100); len(left) > 0 {
			t.Errorf("%d records are left", len(left))
		}
		if new := added(before, rows(t, address, s.work), time.Now()); len(new) > 0 {
			t.Errorf("the queue has %q", new)
		}
	})
}

func TestOrigin_WhatCannotRunIsRefused(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		o := s.origin(t, address)
		for _, r := range scan(t, o, 100) {
			if !slices.Contains(s.unfit, r.Key) {
				continue
			}
			before := rows(t, address, s.work)
			if got := act(t, o, source.Replay, source.Once, r); got.State != source.Refused || got.Why == "" {
				t.Errorf("%s: %+v", r.Key, got)
			}
			if after := rows(t, address, s.work); !slices.Equal(before, after) {
				t.Errorf("%s: the queue has %q", r.Key, after)
			}
		}
	})
}

// What a source was not told is asked for again when it is back, and never unknown.
func TestOrigin_SaysWhatItWasNotTold(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		o := s.origin(t, address)
		r := s.fit(t, o)
		away, leave := context.WithCancel(t.Context())
		leave()
		asked := []source.Act{
			{ID: 1, Kind: source.Replay, Mode: source.Once, Record: r}, {ID: 2, Kind: source.Discard, Record: r},
		}
		results, err := o.Act(away, asked)
		if err == nil || !slices.EqualFunc(results, asked, func(r source.Result, a source.Act) bool { return r.ID == a.ID && r.State == source.Asked }) {
			t.Errorf("%+v, %v", results, err)
		}
	})
}

func TestOrigin_FindsWhatIsThere(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		o := s.origin(t, address)
		r := s.fit(t, o)
		find := func(r source.Record) source.State {
			results, err := o.Find(t.Context(), []source.Act{{Kind: source.Replay, Record: r}})
			check(t, err)
			return results[0].State
		}
		seen := r
		seen.VersionToken = other(r.VersionToken)
		if got := find(r); got != source.Asked {
			t.Errorf("as it was: %s", got)
		}
		if got := find(seen); got != source.Changed {
			t.Errorf("with another witness: %s", got)
		}
		act(t, o, source.Replay, source.Once, r)
		want := source.Gone
		if p := preset.All()[s.preset]; p.Alive != "" || p.Pushed != "" {
			want = source.Done
		}
		if got := find(r); got != want {
			t.Errorf("replayed: %s", got)
		}
	})
}

// reader gives a user who can only read, and the URL with that user.
func reader(t *testing.T, engine, address string) string {
	t.Helper()
	name := fmt.Sprintf("reader%d", databases.Add(1))
	switch engine {
	case "postgres":
		execute(t, address, `CREATE ROLE `+name+` LOGIN BYPASSRLS; DO $$ DECLARE s text; BEGIN
			FOR s IN SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema' LOOP
				EXECUTE format('GRANT USAGE ON SCHEMA %I TO `+name+`', s); EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO `+name+`', s);
			END LOOP; END $$`)
		return strings.Replace(address, "postgres@", name+"@", 1)
	case "mysql":
		execute(t, address, "CREATE USER "+name+"@'%'; GRANT SELECT ON "+address[strings.LastIndex(address, "/")+1:]+".* TO "+name+"@'%'")
		return strings.Replace(address, "root@", name+"@", 1)
	}
	return address + "?mode=ro"
}

func TestOrigin_RightsToReadAreEnoughToSee(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		all := s.origin(t, address)
		whole, err := all.Check(t.Context())
		check(t, err)
		if !slices.Equal(whole.May, []source.Kind{source.Replay, source.Discard}) {
			t.Errorf("with all rights: %+v", whole)
		}
		o := s.origin(t, reader(t, s.engine, address))
		report, err := o.Check(t.Context())
		check(t, err)
		if len(report.May) != 0 || len(report.Warnings) < 2 || report.Version == "" {
			t.Errorf("with rights to read: %+v", report)
		}
		r := s.fit(t, o)
		for _, k := range []source.Kind{source.Replay, source.Discard} {
			got := act(t, o, k, source.Once, r)
			if got.State != source.Refused || !strings.Contains(got.Why, "rights") {
				t.Errorf("%s: %+v", k, got)
			}
		}
	})
}
