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
func TestClaim_DoesNotWalkOverDeadRows(t *testing.T) { walksOverNoDeadRows(t, job.Available, nothing) }

func TestLong_ClaimOfDueJobsDoesNotWalkOverDeadRows(t *testing.T) {
	walksOverNoDeadRows(t, job.Scheduled, nothing)
}

// Neither do they where urgent jobs come all the time, so that no claim is in one
// priority only.
func TestClaim_OfSeveralPrioritiesDoesNotWalkOverDeadRows(t *testing.T) {
	walksOverNoDeadRows(t, job.Available, urgent)
}

// Neither do pages that show for how long the next job of a queue has waited.
func TestQueues_DoNotWalkOverDeadRows(t *testing.T) { walksOverNoDeadRows(t, job.Available, queues) }

func TestQueues_OfSeveralPrioritiesDoNotWalkOverDeadRows(t *testing.T) {
	walksOverNoDeadRows(t, job.Available, func(t *testing.T, s *store.Store, now time.Time) {
		urgent(t, s, now)
		queues(t, s, now)

		// The urgent ones run now, so that the next job is one of a lower priority.
		_, _, err := s.Exchange(t.Context(), nil, job.Claim{Worker: "w", Now: now, Lease: time.Hour, Free: map[string]int{"orders": 10}})
		check(t, err)
		queues(t, s, now)
	})
}

func TestLong_QueuesOfDueJobsDoNotWalkOverDeadRows(t *testing.T) {
	walksOverNoDeadRows(t, job.Scheduled, queues)
}

// Neither does the search for leases that have ended.
func TestLeases_DoNotWalkOverDeadRows(t *testing.T) { walksOverNoDeadRows(t, job.Available, leases) }

func nothing(*testing.T, *store.Store, time.Time) {}

// urgent adds some jobs that claims take first.
func urgent(t *testing.T, s *store.Store, now time.Time) {
	all := make([]job.Job, 10)
	for i := range all {
		all[i] = job.Job{Queue: "orders", Type: "email.send", Priority: 5 + i%2, Policy: retry.Default(), Timeout: time.Minute, Payload: []byte("1")}
	}

	_, err := s.Enqueue(t.Context(), now, all)
	check(t, err)
}

func queues(t *testing.T, s *store.Store, now time.Time) {
	for range 5 {
		_, err := s.Counters.Queues(t.Context(), now, []string{"orders"})
		check(t, err)
	}
}

func leases(t *testing.T, s *store.Store, now time.Time) {
	_, err := s.Leases(t.Context(), now)
	check(t, err)
}

// look reads something beside the claims.
type look func(t *testing.T, s *store.Store, now time.Time)

func walksOverNoDeadRows(t *testing.T, state job.State, and look) {
	alone, entriesAlone := costOfClaims(t, state, false, and)
	beside, entriesBeside := costOfClaims(t, state, true, and)
	t.Logf("%d blocks and %d entries; %d and %d beside an old transaction", alone, entriesAlone, beside, entriesBeside)

	if beside > alone*3/2 {
		t.Errorf("%d blocks are read, and %d beside an old transaction", alone, beside)
	}

	// A look can meet the jobs of the claim before it: each of 6000 jobs in 10 looks.
	if entriesBeside > entriesAlone*3/2+60_000 {
		t.Errorf("%d entries are read, and %d beside an old transaction", entriesAlone, entriesBeside)
	}
}

// costOfClaims is how many blocks of the table of jobs and its indexes, and how many entries of the
// lists of jobs that wait, were looked at while the jobs of a queue were claimed and completed, with a
// look after each claim.
func costOfClaims(t *testing.T, state job.State, beside bool, and look) (blocks, entries int64) {
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
	blocks, entries = blocksOf(t, dsn, "jobs"), entriesOf(t, dsn)

	if beside {
		old, err := pgconn.Connect(t.Context(), dsn)
		check(t, err)
		defer old.Close(t.Context())

		_, err = old.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM jobs`).ReadAll()
		check(t, err)
	}

	s = mustOpen(t, dsn)
	workOff(t, s, job.Claim{Worker: "w", Now: now.Add(time.Hour), Lease: time.Hour, Free: map[string]int{"orders": batch}}, jobs, and)
	check(t, s.Close())

	return blocksOf(t, dsn, "jobs") - blocks, entriesOf(t, dsn) - entries
}

// workOff claims and completes as many jobs as there are, with a look after each claim.
func workOff(t *testing.T, s *store.Store, claim job.Claim, jobs int, and look) {
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
		and(t, s, claim.Now)
		claim.Now = claim.Now.Add(time.Millisecond)
	}
}

// blocksOf is how many blocks of a table and its indexes were looked at so far.
func blocksOf(t *testing.T, dsn, table string) int64 {
	t.Helper()

	waitForStatistics(t, dsn)

	const query = `SELECT heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read FROM pg_statio_user_tables WHERE relname = '`

	return number(t, sql(t, dsn, query+table+`'`))
}

// entriesOf is how many entries of the lists of jobs that wait were looked at so far, also those of
// rows that are no longer there.
func entriesOf(t *testing.T, dsn string) int64 {
	t.Helper()

	waitForStatistics(t, dsn)

	const query = `SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE indexrelname IN ('jobs_claim', 'jobs_due')`

	return number(t, sql(t, dsn, query))
}

// number is an answer of the server.
func number(t *testing.T, text string) int64 {
	t.Helper()

	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("%q: %w", text, err))
	}

	return n
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

// The server keeps the plan of a claim. One that was made while few jobs waited, as far as it had
// counted, does not read and sort all that wait later.
func TestClaim_FollowsItsIndexInAFlood(t *testing.T) {
	const jobs, claims, batch = 6000, 20, 10

	dsn := postgrestest.New(t)
	sql(t, dsn, filled)
	sql(t, dsn, `DELETE FROM jobs WHERE state = 'available'; UPDATE depths SET n = 0 WHERE status = 'available'`)
	sql(t, dsn, `VACUUM ANALYZE`)

	s := mustOpen(t, dsn)
	claim := job.Claim{Worker: "w", Now: filledAt, Lease: time.Hour, Free: map[string]int{"mail": batch}}
	add := func(n int) {
		all := make([]job.Job, n)
		for i := range all {
			all[i] = job.Job{
				Queue: "mail", Type: "email.send", Priority: i % 3, Policy: retry.Default(), Timeout: time.Minute, Payload: []byte("1"),
			}
		}

		_, err := s.Enqueue(t.Context(), filledAt, all)
		check(t, err)
	}

	for range 20 {
		add(3)
		workOff(t, s, claim, 3, nothing)
	}

	check(t, s.Close())
	few := blocksOf(t, dsn, "bodies")

	s = mustOpen(t, dsn)
	for range 20 {
		add(3)
		workOff(t, s, claim, 3, nothing)
	}

	add(jobs)
	workOff(t, s, claim, claims*batch, nothing)
	check(t, s.Close())

	// Each job has a body, to which a few blocks of the index lead.
	blocks := blocksOf(t, dsn, "bodies") - few
	t.Logf("%d blocks", blocks)
	if blocks > 10*jobs {
		t.Errorf("%d blocks with bodies are read to add %d jobs and claim %d", blocks, jobs, claims*batch)
	}
}
