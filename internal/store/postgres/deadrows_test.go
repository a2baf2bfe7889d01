package postgres_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/postgres/postgrestest"
)

// Beside a transaction that could see them, the entries of claimed jobs stay in the indexes.
// Claims do not walk over them: they read about as many blocks as without it. If they did, these
// would be three times as many.
func TestClaim_DoesNotWalkOverDeadRows(t *testing.T) { walksOverNoDeadRows(t, job.Available) }

func TestLong_ClaimOfDueJobsDoesNotWalkOverDeadRows(t *testing.T) {
	walksOverNoDeadRows(t, job.Scheduled)
}

func walksOverNoDeadRows(t *testing.T, state job.State) {
	alone := blocksOfClaims(t, state, false)
	beside := blocksOfClaims(t, state, true)
	t.Logf("%d blocks, and %d beside an old transaction", alone, beside)

	if beside > alone*3/2 {
		t.Errorf("claims read %d blocks, and %d beside an old transaction", alone, beside)
	}
}

// blocksOfClaims is how many blocks of the table of jobs and its indexes were looked at while all
// jobs of a queue were claimed and completed.
func blocksOfClaims(t *testing.T, state job.State, beside bool) (blocks int64) {
	t.Helper()

	const jobs, batch = 6000, 100

	dsn := postgrestest.New(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	s := mustOpen(t, dsn)
	for range jobs / 1000 {
		all := make([]job.Job, 1000)
		for i := range all {
			all[i] = job.Job{Queue: "orders", Type: "email.send", Priority: i % 3, Policy: retry.Default(), Timeout: time.Minute, Payload: []byte("1")}
			if state == job.Scheduled {
				all[i].RunAt = now.Add(time.Duration(i+1) * time.Second)
			}
		}

		_, err := s.Enqueue(t.Context(), now, all)
		check(t, err)
	}

	check(t, s.Close())
	sql(t, dsn, `VACUUM ANALYZE`)
	before := blocksOfJobs(t, dsn)

	if beside {
		old, err := pgconn.Connect(t.Context(), dsn)
		check(t, err)
		defer old.Close(t.Context())

		_, err = old.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM jobs`).ReadAll()
		check(t, err)
	}

	s = mustOpen(t, dsn)
	workOff(t, s, job.Claim{Worker: "w", Now: now.Add(time.Hour), Lease: time.Hour, Free: map[string]int{"orders": batch}}, jobs)
	check(t, s.Close())

	return blocksOfJobs(t, dsn) - before
}

// workOff claims and completes as many jobs as there are.
func workOff(t *testing.T, s *store.Store, claim job.Claim, jobs int) {
	t.Helper()

	var settle []job.Settlement
	done := 0
	for done < jobs {
		claimed, _, err := s.Exchange(t.Context(), settle, claim)
		check(t, err)

		if len(claimed) == 0 {
			t.Fatalf("%d of %d jobs were claimed", done, jobs)
		}

		settle = nil
		for _, j := range claimed {
			settle = append(settle, j.Settle(job.Ending{Outcome: job.Succeeded, FinishedAt: claim.Now}, func() float64 { return 0.5 }))
		}

		done += len(claimed)
	}
}

// blocksOfJobs is how many of these blocks were looked at so far.
func blocksOfJobs(t *testing.T, dsn string) int64 {
	t.Helper()

	const query = `SELECT heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read FROM pg_statio_user_tables WHERE relname = 'jobs'`

	waitForStatistics(t, dsn)

	text := sql(t, dsn, query)
	blocks, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("%q: %w", text, err))
	}

	return blocks
}

// waitForStatistics waits until the processes of the server that served connections of a store have
// written their statistics, which they do when they end.
func waitForStatistics(t *testing.T, dsn string) {
	t.Helper()
	sql(t, dsn, `SET statement_timeout = '2min'; DO $$ BEGIN
		WHILE EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'redrive%') LOOP
			PERFORM pg_sleep(0.01);
			PERFORM pg_stat_clear_snapshot();
		END LOOP; END $$`)
}
