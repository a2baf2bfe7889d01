package sqlsource_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/sqlsource"
)

// unindexed are the presets whose list reads a whole table, and say so among their
// hazards or in docs/sources.md.
var unindexed = []string{"pg-boss", "daycry"}

func TestCheck_WarnsWhenTheListReadsTheWholeTable(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		report, err := s.origin(t, address).Check(t.Context())
		check(t, err)
		warns := slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.HasPrefix(w, "No index fits") })
		if want := slices.Contains(unindexed, s.preset) && s.engine != "mysql"; warns != want { // MySQL reads few rows at once
			t.Errorf("it warns: %t, want %t: %q", warns, want, report.Warnings)
		}
	})
}

func TestCheck_RefusesRowsThatAreHidden(t *testing.T) {
	s := systemOf("graphile-worker", "postgres")
	address := s.load(t)
	name := fmt.Sprintf("stranger%d", databases.Add(1))
	execute(t, address, "CREATE ROLE "+name+" LOGIN; GRANT USAGE ON SCHEMA graphile_worker TO "+name+
		"; GRANT SELECT ON ALL TABLES IN SCHEMA graphile_worker TO "+name)
	_, err := s.origin(t, strings.Replace(address, "postgres@", name+"@", 1)).Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "row level security hides the rows") {
		t.Errorf("%v", err)
	}
}

func TestCheck_AServerWithoutWritesAllowsNothing(t *testing.T) {
	s := systemOf("river", "postgres")
	o := s.origin(t, s.load(t)+"?default_transaction_read_only=on")
	report, err := o.Check(t.Context())
	check(t, err)
	if len(report.May) != 0 {
		t.Errorf("%+v", report)
	}
	if got := act(t, o, source.Discard, "", scan(t, o, 10)[0]); got.State != source.Refused {
		t.Errorf("%+v", got)
	}
}

// TestOrigin_PgBossShowsAFailureOnce holds what a queue with a dead letter queue leaves:
// the failed job, and a copy of it that is an ordinary job.
func TestOrigin_PgBossShowsAFailureOnce(t *testing.T) {
	s := systemOf("pg-boss", "postgres")
	for _, r := range scan(t, s.origin(t, s.load(t)), 100) {
		if r.Queue == "orders.dlq" {
			t.Errorf("the copy %s is shown", r.Key)
		}
	}
}

func TestOrigin_SolidQueueCountsExecutionsFromZero(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres", "mysql"} {
		t.Run(engine, func(t *testing.T) {
			s := systemOf("solid-queue", engine)
			address := s.load(t)
			o := s.origin(t, address)
			act(t, o, source.Replay, source.Once, s.fit(t, o))
			got := rows(t, address, "SELECT arguments FROM solid_queue_jobs WHERE id = 1")
			const want = `arguments={"job_class":"MailJob","job_id":"aj-1","arguments":[{"_aj_globalid":"gid://shop/User/1"},9007199254740993],` +
				`"executions":0,"exception_executions":{}}`
			if !slices.Equal(got, []string{want}) {
				t.Errorf("%q", got)
			}
			act(t, o, source.Discard, "", scan(t, o, 10)[0])
			if left := rows(t, address, "SELECT id FROM solid_queue_failed_executions"); len(left) > 0 {
				t.Errorf("a discard leaves %q", left)
			}
		})
	}
}

// TestScan_OfRiverReadsOnlyItsPage asks PostgreSQL how many rows the two first pages took,
// which it tells when the connection has ended.
func TestScan_OfRiverReadsOnlyItsPage(t *testing.T) {
	const page = 100
	address := loaded(t, "postgres", "river/postgres-dump.sql",
		`INSERT INTO river_job (args, kind, state, attempt, max_attempts, attempted_at, finalized_at)
		SELECT '{}', 'charge', 'discarded', 1, 1, now(), now() - i * interval '1 s' FROM generate_series(1, 20000) AS i`,
		`ANALYZE river_job; SELECT pg_stat_reset()`)
	o, err := sqlsource.Open(t.Context(), address, preset.All()["river"], preset.Settings{})
	check(t, err)
	first, err := o.Scan(t.Context(), "", page)
	check(t, err)
	_, err = o.Scan(t.Context(), first.Next, page)
	check(t, err)
	check(t, o.Close())
	db := open(t, address)
	defer db.Close()
	read := 0
	for end := time.Now().Add(time.Minute); read == 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		check(t, db.QueryRow(`SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'river_job'`).Scan(&read))
	}
	if read == 0 || read > 10*page {
		t.Errorf("two pages of %d records took %d rows", page, read)
	}
}
