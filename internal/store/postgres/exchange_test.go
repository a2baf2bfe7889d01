package postgres_test

import (
	"strconv"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/postgres/postgrestest"
)

// The server keeps the plan of a statement while tables grow, until it looks at them again, which
// can take a minute. Also the plans that it made when there were few jobs find each by an index.
func TestExchange_ReadsNoWholeTable(t *testing.T) {
	const few, many = 100, 3000

	for name, ending := range map[string]job.Ending{
		"succeeded":             {Outcome: job.Succeeded},
		"failed, to be retried": {Outcome: job.Failed},
		"failed permanently":    {Outcome: job.Failed, Answer: retry.Answer{Code: retry.CodeDeadLetter}},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := postgrestest.New(t)
			sql(t, dsn, `VACUUM FULL`) // an earlier test may have left large files
			read := readByScans(t, dsn)

			s := mustOpen(t, dsn)
			for range 8 {
				exchangeAll(t, s, ending, few)
			}

			exchangeAll(t, s, ending, many)
			check(t, s.Close())

			// A scan of a few pages is none of a whole table.
			read = readByScans(t, dsn) - read
			if read >= many {
				t.Errorf("%d rows were read by scans of whole tables", read)
			}
		})
	}
}

// exchangeAll makes so many jobs, and claims and ends each of them once.
func exchangeAll(t *testing.T, s *store.Store, ending job.Ending, jobs int) {
	t.Helper()

	now := time.Now().UTC().Truncate(time.Microsecond)
	ending.FinishedAt, ending.Error.Message = now, "the mail server is down"
	claim := job.Claim{Worker: "w", Now: now, Lease: time.Hour, Free: map[string]int{"orders": 100}}

	all := make([]job.Job, jobs)
	for i := range all {
		all[i] = job.Job{Queue: "orders", Type: "email.send", Policy: retry.Default(), Timeout: time.Minute, Payload: []byte("1")}
	}

	_, err := s.Enqueue(t.Context(), now, all)
	check(t, err)

	var settle []job.Settlement
	for done := 0; done < jobs; done += len(settle) {
		claimed, _, err := s.Exchange(t.Context(), settle, claim)
		check(t, err)

		if len(claimed) == 0 {
			t.Fatalf("%d of %d jobs were claimed", done, jobs)
		}

		settle = nil
		for _, j := range claimed {
			settle = append(settle, j.Settle(ending, func() float64 { return 0.5 }))
		}
	}

	_, _, err = s.Exchange(t.Context(), settle, job.Claim{Now: now})
	check(t, err)
}

// readByScans is how many rows of large tables were read so far by scans of these tables.
func readByScans(t *testing.T, dsn string) int {
	t.Helper()

	waitForStatistics(t, dsn)

	text := sql(t, dsn, `SELECT sum(seq_tup_read) FROM pg_stat_user_tables
		WHERE relname IN ('jobs', 'bodies', 'attempts', 'dead_letters', 'search_backlog')`)
	rows, err := strconv.Atoi(text)
	check(t, err)

	return rows
}
