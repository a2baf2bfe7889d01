package sqlsource_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/sqlsource"
)

// finishes are what the workers of the systems write when a job has succeeded, in the row of
// a key, and the attempts that the systems count then.
var finishes = map[string]struct {
	statement string
	attempts  int
}{
	"river":       {"UPDATE river_job SET state = 'completed', finalized_at = '2026-11-22 12:00:00+00', attempt = 9 WHERE id = %s", 9},
	"good-job":    {"UPDATE good_jobs SET finished_at = '2026-11-22 12:00:00', error = NULL, executions_count = 9 WHERE id = '%s'", 9},
	"oban":        {"UPDATE oban_jobs SET state = 'completed', completed_at = '2026-11-22 12:00:00', attempt = 9 WHERE id = %s", 9},
	"pg-boss":     {"UPDATE pgboss.job SET state = 'completed', completed_on = '2026-11-22 12:00:00+00', retry_count = 8 WHERE id = '%.36s'", 9},
	"solid-queue": {"UPDATE solid_queue_jobs SET finished_at = '2026-11-22 12:00:00' WHERE id = %s", 0},
}

// keepers runs a test with the database of each system that keeps what has succeeded.
func keepers(t *testing.T, do func(t *testing.T, s system, address string)) {
	for _, s := range systems {
		if _, ok := finishes[s.preset]; ok {
			t.Run(s.String(), func(t *testing.T) { do(t, s, s.load(t)) })
		}
	}
}

func succeeded(t *testing.T, o *sqlsource.Origin, records ...source.Record) []source.Success {
	t.Helper()
	var returned []source.ReplayedJob
	for i, r := range records {
		returned = append(returned, source.ReplayedJob{Seq: int64(i), Run: 2, Record: source.Record{Key: r.Key}})
	}
	all, err := o.Succeeded(t.Context(), returned)
	check(t, err)
	return all
}

func TestSucceeded_TellsWhatTheSystemKeeps(t *testing.T) {
	keepers(t, func(t *testing.T, s system, address string) {
		o := s.origin(t, address)
		report, err := o.Check(t.Context())
		check(t, err)
		if !report.Tells {
			t.Errorf("%+v", report)
		}
		dead, r := scan(t, o, 100), s.fit(t, o)
		if got := succeeded(t, o, dead...); len(got) > 0 {
			t.Errorf("dead: %+v", got)
		}
		if got := act(t, o, source.Replay, source.Once, r); got.State != source.Done {
			t.Fatalf("%+v", got)
		}
		if got := succeeded(t, o, dead...); len(got) > 0 {
			t.Errorf("replayed: %+v", got)
		}
		execute(t, address, fmt.Sprintf(finishes[s.preset].statement, r.Key))
		got := succeeded(t, o, dead...)
		if len(got) != 1 || dead[got[0].Seq].Key != r.Key || got[0].Run != 2 || got[0].Attempts != finishes[s.preset].attempts ||
			!got[0].At.Equal(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)) {
			t.Errorf("finished: %+v", got)
		}
	})
}

// TestSucceeded_IsNotSaidOfAJobThatSolidQueueRetries: the row of an attempt that failed is
// finished when the next one is enqueued, in a row of its own.
func TestSucceeded_IsNotSaidOfAJobThatSolidQueueRetries(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres", "mysql"} {
		t.Run(engine, func(t *testing.T) {
			s := systemOf("solid-queue", engine)
			address := s.load(t)
			o := s.origin(t, address)
			r := s.fit(t, o)
			act(t, o, source.Replay, source.Once, r)
			execute(t, address, `INSERT INTO solid_queue_jobs (id, queue_name, class_name, arguments, active_job_id, created_at, updated_at)
				SELECT 100, queue_name, class_name, arguments, active_job_id, created_at, updated_at FROM solid_queue_jobs WHERE id = `+r.Key)
			execute(t, address, fmt.Sprintf(finishes["solid-queue"].statement, r.Key))
			if got := succeeded(t, o, r); len(got) > 0 {
				t.Errorf("while the next attempt waits: %+v", got)
			}
			execute(t, address, fmt.Sprintf(finishes["solid-queue"].statement, "100"))
			if got := succeeded(t, o, r); len(got) != 1 {
				t.Errorf("after it has finished: %+v", got)
			}
		})
	}
}

// TestSucceeded_IsNoConditionForTheRest: where successes cannot be read, the dead letters are
// seen and replayed all the same.
func TestSucceeded_IsNoConditionForTheRest(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres", "mysql"} {
		t.Run(engine, func(t *testing.T) {
			s := systemOf("solid-queue", engine)
			address := s.load(t)
			execute(t, address, "ALTER TABLE solid_queue_jobs DROP COLUMN finished_at")
			o := s.origin(t, address)
			report, err := o.Check(t.Context())
			check(t, err)
			if report.Tells || !strings.HasPrefix(strings.Join(report.Warnings, " "), "Redrive cannot read which replayed jobs have succeeded: ") {
				t.Errorf("%+v", report)
			}
			if got := act(t, o, source.Replay, source.Once, s.fit(t, o)); got.State != source.Done {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestSucceeded_ReadsOnlyTheRowsOfItsKeys asks PostgreSQL how many rows a question took, which
// it tells when the connection has ended.
func TestSucceeded_ReadsOnlyTheRowsOfItsKeys(t *testing.T) {
	for preset, test := range map[string]struct{ fill, table, keys string }{
		"river": {`INSERT INTO river_job (args, kind, state, attempt, max_attempts, attempted_at, finalized_at)
			SELECT '{}', 'charge', 'completed', 1, 1, now(), now() FROM generate_series(1, %d) AS i`, "river_job",
			"SELECT CAST(id AS text) FROM river_job"},
		"good-job": {`INSERT INTO good_jobs (finished_at, created_at, updated_at) SELECT now(), now(), now() FROM generate_series(1, %d) AS i`,
			"good_jobs", "SELECT CAST(id AS text) FROM good_jobs"},
		"oban": {`INSERT INTO oban_jobs (worker, state, completed_at) SELECT 'w', 'completed', now() FROM generate_series(1, %d) AS i`,
			"oban_jobs", "SELECT CAST(id AS text) FROM oban_jobs"},
		"pg-boss": {`INSERT INTO pgboss.job (name, state, completed_on) SELECT 'orders', 'completed', now() FROM generate_series(1, %d) AS i`,
			"job", "SELECT id || ' ' || name FROM pgboss.job WHERE state = 'completed'"},
	} {
		t.Run(preset, func(t *testing.T) { readsOnlyItsRows(t, preset, fmt.Sprintf(test.fill, filled), test.table, test.keys) })
	}
}

// filled is how many rows a table has beside those that are asked for.
const filled = 20000

func readsOnlyItsRows(t *testing.T, name, fill, table, keys string) {
	s := systemOf(name, "postgres")
	address := s.load(t)
	execute(t, address, fill)
	execute(t, address, "ANALYZE")
	const asked = 100
	records := recordsOf(t, address, keys, asked)
	o, err := sqlsource.Open(t.Context(), address, preset.All()[name], preset.Settings{})
	check(t, err)

	// To find the keys took all rows. They are counted some time after that, so they must be
	// in the numbers before these begin at zero.
	db := open(t, address)
	defer db.Close()
	readAtLeast(t, db, table, filled)
	execute(t, address, "SELECT pg_stat_reset()")
	if got := succeeded(t, o, records...); len(got) < asked-10 { // some of the first ones are dead
		t.Errorf("%d have succeeded", len(got))
	}
	check(t, o.Close())
	read := readAtLeast(t, db, table, 1)
	if read > 10*asked {
		t.Errorf("a question about %d jobs took %d rows", asked, read)
	}
}

// recordsOf returns records with the first keys of a table, by a connection that has ended.
func recordsOf(t *testing.T, address, keys string, most int) (records []source.Record) {
	t.Helper()
	db := open(t, address)
	defer db.Close()

	found, err := db.Query(keys+" ORDER BY 1 LIMIT $1", most)
	check(t, err)
	defer found.Close()
	for found.Next() {
		r := source.Record{}
		check(t, found.Scan(&r.Key))
		records = append(records, r)
	}
	check(t, found.Err())
	return records
}

// readAtLeast waits until PostgreSQL says that so many rows of a table were read, and returns
// how many it says.
func readAtLeast(t *testing.T, db *sql.DB, table string, least int) (read int) {
	t.Helper()
	const query = `SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) FROM pg_stat_user_tables
		WHERE relname LIKE $1 OR relid IN (SELECT inhrelid FROM pg_inherits)`
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		check(t, db.QueryRow(query, table).Scan(&read))
		if read >= least {
			return read
		}
	}
	t.Fatalf("%d rows were read, and %d were to be expected", read, least)
	return 0
}
