package sqlsource_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/redissource/redistest"
	"redrive/internal/source/sqlsource"
)

var engines = []string{"sqlite", "postgres", "mysql"}

// upgradedLaravel makes the tables of a Laravel application that was upgraded from version
// 7: its failed jobs may have no uuid, or an empty one.
func upgradedLaravel(t *testing.T, engine, connection string) (address string) {
	t.Helper()
	address = newDatabase(t, engine)
	id := map[string]string{
		"sqlite":   "integer PRIMARY KEY AUTOINCREMENT",
		"postgres": "bigserial PRIMARY KEY",
		"mysql":    "bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY",
	}[engine]
	execute(t, address, `CREATE TABLE failed_jobs (id `+id+`, uuid varchar(255) NULL UNIQUE, connection text NOT NULL, queue text NOT NULL,
		payload text NOT NULL, exception text NOT NULL, failed_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)`)
	execute(t, address, `CREATE TABLE jobs (id `+id+`, queue varchar(255) NOT NULL, payload text NOT NULL, attempts int NOT NULL,
		reserved_at int NULL, available_at int NOT NULL, created_at int NOT NULL)`)
	for i, uuid := range []string{"NULL", "'55555555-5555-4555-8555-555555555555'", "NULL", "NULL", "''"} {
		execute(t, address, fmt.Sprintf(`INSERT INTO failed_jobs (uuid, connection, queue, payload, exception)
			VALUES (%s, '%s', 'mail', '{"uuid":"%d","job":"Mail@handle"}', 'RuntimeException: mailbox full')`, uuid, connection, i))
	}
	return address
}

// keysOfUpgraded are those of the failed jobs of upgradedLaravel, the newest first.
var keysOfUpgraded = []string{"5", "4", "3", "55555555-5555-4555-8555-555555555555", "1"}

// isThere finds a record where it was read.
func isThere(t *testing.T, o *sqlsource.Origin, r source.Record) {
	t.Helper()
	found, err := o.Find(t.Context(), []source.Act{{Kind: source.Discard, Record: r}})
	check(t, err)
	if found[0].State != source.Asked {
		t.Errorf("%s is not found: %+v", r.Key, found[0])
	}
}

// keysOf are the keys of records.
func keysOf(all []source.Record) (keys []string) {
	for _, r := range all {
		keys = append(keys, r.Key)
	}
	return keys
}

// Rows without a uuid are known by their id, and one with a uuid by that.
func TestSource_ARecordOfLaravelWithoutAUUIDIsShownAndReplayed(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			address := upgradedLaravel(t, engine, "database")
			s := system{preset: "laravel", engine: engine}
			o := s.origin(t, address)
			all := scan(t, o, 2)
			if got := keysOf(all); !slices.Equal(got, keysOfUpgraded) {
				t.Fatalf("keys %q", got)
			}
			if all[0].Lineage != "4" || all[1].Lineage != "3" { // of the payload: the next run has it, too
				t.Errorf("their runs are joined by %q and %q", all[0].Lineage, all[1].Lineage)
			}

			// Each is found by its key. One is discarded, the others are replayed, each once.
			kinds := []source.Kind{source.Replay, source.Replay, source.Discard, source.Replay, source.Replay}
			for i, r := range all {
				isThere(t, o, r)
				if got := act(t, o, kinds[i], source.Once, r); got.State != source.Done {
					t.Errorf("%s of %s: %+v", kinds[i], r.Key, got)
				}
				if got := act(t, o, source.Replay, source.Once, r); got.State != source.Gone {
					t.Errorf("%s a second time: %+v", r.Key, got)
				}
			}
			want := []string{`payload={"uuid":"0","job":"Mail@handle"}`, `payload={"uuid":"1","job":"Mail@handle"}`, `payload={"uuid":"3","job":"Mail@handle"}`,
				`payload={"uuid":"4","job":"Mail@handle"}`}
			if got := rows(t, address, "SELECT payload FROM jobs ORDER BY payload"); !slices.Equal(got, want) {
				t.Errorf("in the queue: %q", got)
			}
		})
	}
}

func TestWork_ARecordOfLaravelWithoutAUUIDIsPushed(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			queue := redistest.Start(t)
			s := system{preset: "laravel-redis", engine: engine}
			o := s.attachWork(t, upgradedLaravel(t, engine, "redis"), redistest.URL(queue))
			all := scan(t, o, 10)
			if got := keysOf(all); !slices.Equal(got, keysOfUpgraded) {
				t.Fatalf("keys %q", got)
			}
			for _, r := range all {
				isThere(t, o, r)
				if got := act(t, o, source.Replay, source.Once, r); got.State != source.Done {
					t.Errorf("%s: %+v", r.Key, got)
				}
			}
			if n := queue.LLen(t.Context(), "laravel_database_queues:mail").Val(); n != 5 {
				t.Errorf("%d jobs in the queue", n)
			}
		})
	}
}

// The check counts the rows without a uuid and names a statement that gives them one. After
// it, each has a key that Laravel knows, too.
func TestCheck_SaysHowManyRowsOfLaravelHaveNoUUID(t *testing.T) {
	for _, engine := range engines {
		for name, connection := range map[string]string{"laravel": "database", "laravel-redis": "redis"} {
			t.Run(engine+" "+name, func(t *testing.T) {
				address := upgradedLaravel(t, engine, connection)
				o := system{preset: name, engine: engine}.origin(t, address)
				mend := mendOf(t, o, "4 rows of failed_jobs have no uuid. ")
				execute(t, address, mend)
				for _, key := range keysOf(scan(t, o, 10)) {
					if len(key) < 32 {
						t.Errorf("after %s, a row has the key %q", mend, key)
					}
				}
			})
		}
	}
}

// mendOf is the statement in the warning of a check that begins with these words.
func mendOf(t *testing.T, o interface {
	Check(ctx context.Context) (source.Report, error)
}, words string) string {
	t.Helper()
	report, err := o.Check(t.Context())
	check(t, err)
	for _, w := range report.Warnings {
		if _, mend, ok := strings.Cut(w, ": "); ok && strings.HasPrefix(w, words) {
			return mend
		}
	}
	t.Fatalf("no warning begins with %q: %q", words, report.Warnings)
	return ""
}

// looseTable is a table of failed jobs whose column id is neither unique nor filled.
func looseTable(t *testing.T, engine string) (address string, s system) {
	t.Helper()
	address = newDatabase(t, engine)
	execute(t, address, "CREATE TABLE dead (id bigint NULL, body text, died_at varchar(32))")
	execute(t, address, "CREATE TABLE work (body text)")
	execute(t, address, `INSERT INTO dead VALUES (1, '{"n":1}', '10:00'), (2, '{"n":2}', '10:01'), (2, '{"n":3}', '10:02'),
		(NULL, '{"n":4}', '10:03'), (NULL, '{"n":5}', '10:04')`)
	return address, system{preset: "table", engine: engine, settings: preset.Settings{
		Names: map[string]string{"table": "dead", "payload": "body", "witness": "died_at"},
		Replay: []string{"INSERT INTO work (body) SELECT body FROM {table} WHERE id = :key",
			"DELETE FROM {table} WHERE id = :key AND died_at = :witness"},
		Discard: []string{"DELETE FROM {table} WHERE id = :key AND died_at = :witness"},
	}}
}

func TestCheck_SaysHowManyRowsHaveNoKeyOfTheirOwn(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			address, s := looseTable(t, engine)
			o := s.origin(t, address)
			mendOf(t, o, "2 rows of dead have the same id as another row. ")
			execute(t, address, mendOf(t, o, "2 rows of dead have no id. "))

			// In SQLite the statement gives each row an id; elsewhere it adds a column to name as the key.
			if engine != "sqlite" {
				s.settings.Names["key"] = "row_id"
			}
			fixed := s.origin(t, address)
			report, err := fixed.Check(t.Context())
			check(t, err)
			keys := keysOf(scan(t, fixed, 2))
			slices.Sort(keys)
			if n := len(slices.Compact(keys)); n != 5 {
				t.Errorf("%d keys of 5 rows: %q", n, keys)
			}
			for _, w := range report.Warnings {
				if strings.Contains(w, " rows of dead have ") {
					t.Errorf("it still warns: %s", w)
				}
			}
		})
	}
}

// Of a large table, the check looks at some rows only, so there can be more of them.
func TestCheck_OfALargeTableCountsAtLeast(t *testing.T) {
	address, s := looseTable(t, "sqlite")
	o := s.origin(t, address)
	const more = `WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i+1 FROM n WHERE i < %d) INSERT INTO dead SELECT i, '{}', '11:00' FROM n`

	execute(t, address, fmt.Sprintf(more, 100_004)) // 100,000 rows with the five
	mendOf(t, o, "2 rows of dead have the same id as another row. ")

	execute(t, address, "INSERT INTO dead VALUES (NULL, '{}', '12:00')")
	mendOf(t, o, "At least 3 rows of dead have no id. ")
	mendOf(t, o, "At least 2 rows of dead have the same id as another row. ")
}

// refusedBy are the names of the records of a source that are refused, and each with its
// reason.
func refusedBy(t *testing.T, o *sqlsource.Origin, limit int) (keys []string, why map[string]string) {
	t.Helper()
	why = map[string]string{}
	for after := ""; ; {
		page, err := o.Scan(t.Context(), after, limit)
		check(t, err)
		for _, r := range page.Refused {
			keys, why[r.Key] = append(keys, r.Key), r.Why
		}
		if after = page.Next; after == "" {
			slices.Sort(keys)
			return keys, why
		}
	}
}

// A statement that names the key alone would insert both rows, and delete one. So neither is
// taken over, and a row that was read before the other came is not acted on.
func TestSource_ARowWhoseKeyAnotherRowHasIsNotReplayed(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			address, s := looseTable(t, engine)
			o := s.origin(t, address)
			all := scan(t, o, 10)
			if got := keysOf(all); !slices.Equal(got, []string{"1"}) {
				t.Fatalf("records %q", got)
			}
			execute(t, address, `INSERT INTO dead VALUES (1, '{"n":6}', '10:05')`)
			if got := act(t, o, source.Replay, source.Once, all[0]); got.State != source.Refused {
				t.Errorf("%+v", got)
			}
			execute(t, address, "DELETE FROM dead WHERE died_at = '10:05'")
			if got := act(t, o, source.Replay, source.Once, all[0]); got.State != source.Done {
				t.Errorf("%+v", got)
			}
			if got := rows(t, address, "SELECT body FROM work"); !slices.Equal(got, []string{`body={"n":1}`}) {
				t.Errorf("in the queue: %q", got)
			}
		})
	}
}

// Each row without a key of its own is refused, with what tells it from the others and with
// the reason, until the table was mended and checked again.
func TestSource_RowsWithoutAKeyOfTheirOwnAreRefusedOneByOne(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			address, s := looseTable(t, engine)
			execute(t, address, "INSERT INTO dead VALUES (NULL, '{}', '10:04')")
			o := s.origin(t, address)
			_, err := o.Check(t.Context())
			check(t, err)
			keys, why := refusedBy(t, o, 10)
			if want := []string{"2 (10:01)", "2 (10:02)", "no id (10:03)", "no id (10:04)", "no id (10:04), row 2"}; !slices.Equal(keys, want) {
				t.Errorf("refused are %q, want %q", keys, want)
			}
			if got := why["2 (10:01)"]; got != "2 rows of dead have this id, so that no act could be on one of them alone." {
				t.Error(got)
			}
			if got := why["no id (10:03)"]; got != "It has no id, so that nothing names it for an act." {
				t.Error(got)
			}

			execute(t, address, "DELETE FROM dead WHERE id IS NULL OR died_at = '10:01'")
			_, err = o.Check(t.Context())
			check(t, err)
			if keys, _ := refusedBy(t, o, 10); len(keys) > 0 {
				t.Errorf("refused are %q", keys)
			}
			if got := keysOf(scan(t, o, 10)); !slices.Equal(got, []string{"2", "1"}) {
				t.Errorf("records %q", got)
			}
		})
	}
}

// The rows of a key come together, however long the pages are.
func TestSource_RowsOfOneKeyAreRefusedAlsoAcrossPages(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			address, s := looseTable(t, engine)
			execute(t, address, "DELETE FROM dead")
			for i, key := range []int{1, 2, 2, 3, 4, 4, 4, 5, 6, 6} {
				execute(t, address, fmt.Sprintf("INSERT INTO dead VALUES (%d, '{}', 't%d')", key, i))
			}
			o := s.origin(t, address)
			_, err := o.Check(t.Context())
			check(t, err)
			for limit := 3; limit < 12; limit++ { // as many as the rows of a key
				keys, _ := refusedBy(t, o, limit)
				if want := []string{"2 (t1)", "2 (t2)", "4 (t4)", "4 (t5)", "4 (t6)", "6 (t8)", "6 (t9)"}; !slices.Equal(keys, want) {
					t.Errorf("pages of %d: refused are %q, want %q", limit, keys, want)
				}
				if got := keysOf(scan(t, o, limit)); !slices.Equal(got, []string{"5", "3", "1"}) {
					t.Errorf("pages of %d: records %q", limit, got)
				}
			}
		})
	}
}

// Of rows of Laravel with one uuid, each is found and acted on as itself.
func TestSource_ARowOfLaravelIsFoundAmongOthersWithItsUUID(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			address := upgradedLaravel(t, engine, "database")
			execute(t, address, map[string]string{
				"sqlite":   "CREATE TABLE loose AS SELECT * FROM failed_jobs; DROP TABLE failed_jobs; ALTER TABLE loose RENAME TO failed_jobs",
				"postgres": "ALTER TABLE failed_jobs DROP CONSTRAINT failed_jobs_uuid_key",
				"mysql":    "ALTER TABLE failed_jobs DROP INDEX uuid",
			}[engine])
			execute(t, address, "UPDATE failed_jobs SET uuid = '55555555-5555-4555-8555-555555555555'")
			o := system{preset: "laravel", engine: engine}.origin(t, address)
			report, err := o.Check(t.Context())
			check(t, err)
			if report.Shared != "A newer row of failed_jobs has the same uuid. This one is shown when that has left." {
				t.Errorf("it says of the others: %q", report.Shared)
			}

			all := scan(t, o, 10)
			for i, r := range all {
				for n, other := range all {
					want := source.Asked
					if n < i { // it was discarded
						want = source.Changed
					}
					found, err := o.Find(t.Context(), []source.Act{{Kind: source.Discard, Record: other}})
					check(t, err)
					if found[0].State != want {
						t.Errorf("the row %s is %s, want %s", other.VersionToken, found[0].State, want)
					}
				}
				if got := act(t, o, source.Discard, source.Once, r); got.State != source.Done {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}

// A row belongs to the preset of its queue connection: with both attached, each row is
// counted once.
func TestSource_ARowOfAnotherQueueConnectionIsLeftToItsPreset(t *testing.T) {
	for _, s := range []system{systemOf("laravel", "sqlite"), systemOf("laravel", "mysql")} {
		t.Run(s.engine, func(t *testing.T) {
			address := s.load(t)
			redis := twoStores[0]
			redis.engine = s.engine
			here, there := keysOf(scan(t, s.origin(t, address), 10)), keysOf(scan(t, redis.origin(t, address), 10))
			both := slices.Concat(here, there)
			slices.Sort(both)
			if len(here) != 3 || len(there) != 3 || len(slices.Compact(both)) != 6 {
				t.Errorf("laravel has %q, laravel-redis has %q", here, there)
			}

			// What is not shown is said, with the connections.
			report, err := s.origin(t, address).Check(t.Context())
			check(t, err)
			if !slices.ContainsFunc(report.Warnings, func(w string) bool {
				return strings.HasPrefix(w, "3 more rows of failed_jobs are not shown here: redis (3). They failed on another queue connection.")
			}) {
				t.Errorf("%q", report.Warnings)
			}
		})
	}
}
