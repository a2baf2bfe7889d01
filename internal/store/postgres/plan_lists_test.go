package postgres_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/db"
	"redrive/internal/store/postgres/postgrestest"
)

// unindexedLists are lists of which no index has all conditions.
func unindexedLists() (all []filter.Filter) {
	of := []filter.Filter{
		{Class: "none"}, {Attempts: filter.Span{Min: 9}}, {Run: filter.Span{Min: 9}}, {Type: "none.*"}, {Reason: retry.RuleDecided},
	}

	for _, status := range []job.Status{"", job.Status(job.Completed), job.Status(job.Discarded), job.StatusDeadLetter} {
		for _, f := range of {
			f.Status = status
			if status != job.StatusDeadLetter || f.Reason == "" { // these have an index
				all = append(all, f)
			}
		}
	}

	return append(all, filter.Filter{Queue: "none"}, filter.Filter{Type: "none"}, filter.Filter{From: filledAt}, filter.Filter{To: filledAt.Add(-almostAll)},
		filter.Filter{Status: job.StatusDeadLetter, Queue: "orders", Type: "none"}, filter.Filter{Class: "none", Sort: filter.Oldest},
		filter.Filter{Status: job.StatusDeadLetter, Class: "none", Sort: filter.Oldest},
		filter.Filter{Source: "shop", Class: "none"}, filter.Filter{Status: job.StatusDeadLetter, Source: "shop", Class: "none"},
		filter.Filter{Status: job.Status(job.Discarded), Source: "shop", Class: "none"}, filter.Filter{Queue: "shop:orders", Type: "none"},
		filter.Filter{Status: job.StatusDeadLetter, Group: "c4ca4238a0b923820dcc509a6f75849b", Class: "none"})
}

// A list of which no index has all conditions is read window by window: no query of it looks at more
// jobs than a window has, and finds those by an index. So do the query that counts it, and the one
// that tells its kinds.
func TestPlans_OfOtherListsLookAtFewJobs(t *testing.T) {
	dsn := postgrestest.New(t)
	sql(t, dsn, filled)

	r := recorderTo(t, dsn)
	s := mustOpen(t, r.dsn)

	asked := askedByLists(t, r, s, 50, unindexedLists()...)
	check(t, s.Close())
	looksAtFewJobs(t, dsn, asked)
}

// looksAtFewJobs runs queries on a database, before the server knows how many rows there are, and
// after.
func looksAtFewJobs(t *testing.T, dsn string, asked map[string]example) {
	t.Helper()

	conn := connect(t, dsn)
	looked := 0
	for _, counted := range []bool{false, true} {
		if counted {
			sql(t, dsn, `VACUUM ANALYZE`)
		}

		for _, text := range slices.Sorted(maps.Keys(asked)) {
			// Until the server has counted, it sorts what is left of a partial index.
			if !counted && strings.Contains(text, " OFFSET ") {
				continue
			}

			for _, plan := range (planner{t, conn, text, asked[text]}).plans(true) {
				looked++
				rows := 0.0
				plan.Plan.walk(func(n node) {
					if n.Relation == "jobs" || n.Relation == "search_texts" {
						rows += (n.Rows + n.Filtered + n.Rechecked) * n.Loops
					}
				})

				if rows > 3*float64(db.Window) {
					t.Errorf("counted: %v: a query looks at %.0f jobs: %s\n%s", counted, rows, text, plan.text)
				}
			}
		}
	}

	if looked < 8 {
		t.Errorf("only %d plans were looked at", looked)
	}
}

// What is counted in advance is not counted again.
func TestPlans_OfCountsThatAreKnown(t *testing.T) {
	r := recorderTo(t, postgrestest.New(t))
	s := mustOpen(t, r.dsn)

	before := r.asked()
	for _, f := range []filter.Filter{
		{}, {Queue: "orders"}, {Status: job.Status(job.Discarded)}, {Status: job.Status(job.Completed), Queue: "orders"},
		{Status: job.StatusDeadLetter}, {Status: job.StatusDeadLetter, Type: "email.send", Reason: retry.RuleDecided},
	} {
		_, _, err := s.Count(t.Context(), f, 50)
		check(t, err)
	}

	for text := range r.asked() {
		_, known := before[text]
		if !known && strings.Contains(text, "jobs") {
			t.Errorf("a count looks at jobs: %s", text)
		}
	}
}

// A list of a text that many jobs have is read window by window, too, and finds all of them.
func TestPlans_OfCommonTextsLookAtFewJobs(t *testing.T) {
	dsn, r, s := searched(t)

	common := filter.Filter{Text: "timeout"}
	deadLetters := filter.Filter{Error: "timeout", Status: job.StatusDeadLetter, Queue: "queue-3"}
	nowhere := filter.Filter{Text: "failed"} // documents of jobs that are not there
	asked := askedByLists(t, r, s, 50, common, deadLetters, nowhere, filter.Filter{Text: "timeout", Queue: "none"},
		filter.Filter{Text: "timeout", Sort: filter.Oldest})

	for f, query := range map[filter.Filter]string{
		common: `SELECT count(*) FROM search_texts JOIN jobs ON seq = job_seq WHERE failure LIKE '%timeout%'`,
		deadLetters: `SELECT count(*) FROM search_texts JOIN jobs ON seq = job_seq
			WHERE failure LIKE '%timeout%' AND letter = 'stored' AND queue = 'queue-3'`,
		nowhere: `SELECT 0`,
	} {
		n, _, err := s.Count(t.Context(), f, 1_000_000)
		check(t, err)

		if want := postgrestest.Query(t, dsn, query); strconv.Itoa(n) != want {
			t.Errorf("%+v finds %d, want %s", f, n, want)
		}
	}

	check(t, s.Close())
	looksAtFewJobs(t, dsn, asked)
}

// The index finds the documents of a text that few jobs have, also for a short page: the server expects to
// find so few jobs soon by looking at one after the other.
func TestPlans_OfRareTextsLookAtFewJobs(t *testing.T) {
	dsn, r, s := searched(t)
	asked := askedByLists(t, r, s, 1, filter.Filter{Text: "message 47119 timeout"}, filter.Filter{Payload: "47119"})
	check(t, s.Close())
	looksAtFewJobs(t, dsn, asked)
}

// searched is a large database that the server has counted.
func searched(t *testing.T) (dsn string, r *recorder, s *store.Store) {
	t.Helper()

	dsn = postgrestest.New(t)
	sql(t, dsn, filled)
	sql(t, dsn, `VACUUM ANALYZE`)
	r = recorderTo(t, dsn)

	return dsn, r, mustOpen(t, r.dsn)
}

// askedByLists are the queries of lists and of what is counted about them, as far as the limit.
func askedByLists(t *testing.T, r *recorder, s *store.Store, limit int, all ...filter.Filter) map[string]example {
	t.Helper()

	before := r.asked()
	for _, f := range all {
		_, err := s.Jobs(t.Context(), f, filter.Cursor{}, limit)
		check(t, err)
		_, _, err = s.Count(t.Context(), f, limit)
		check(t, err)
		_, err = s.Tally(t.Context(), f, limit)
		check(t, err)
		_, err = s.WholeJobs(t.Context(), f, filter.Cursor{}, limit)
		check(t, err)

		if f.Status == job.StatusDeadLetter {
			_, err = s.DeadLetters(t.Context(), f, filter.Cursor{}, limit)
			check(t, err)
		}
	}

	asked := r.asked()
	maps.DeleteFunc(asked, func(text string, _ example) bool {
		_, known := before[text]
		return known || !readsTables(text)
	})

	return asked
}

// Jobs that wait by the thousand are newer than all dead letters. The server, for which it is dear to look
// up rows as in a much larger database, would expect that most dead letters are in the first window, and
// read all jobs.
func TestPlans_OfListsBelowAFlood(t *testing.T) {
	const setting = `DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I %s', current_database()); END $$`
	const flood = `UPDATE jobs SET state = 'discarded', list_state = 'discarded', letter = 'stored' WHERE state = 'completed';
		INSERT INTO jobs (seq, id, queue, type, state, list_state, priority, policy_id, ttr, run_at, enqueued_at, changed_at)
		SELECT 100000 + n, 'flood-' || n, 'queue-2', 'type.7', 'available', '', 0, 1, 1, 1772600767000000, 1772600767000000, 1772600767000000
		FROM generate_series(1, 100000) AS waiting(n)`

	dsn := postgrestest.New(t)
	sql(t, dsn, filled+";"+flood)
	sql(t, dsn, `VACUUM ANALYZE`)
	sql(t, dsn, fmt.Sprintf(setting, "SET random_page_cost = 40"))

	r := recorderTo(t, dsn)
	s := mustOpen(t, r.dsn)
	asked := askedByLists(t, r, s, 50, filter.Filter{Status: job.StatusDeadLetter, Class: "none"},
		filter.Filter{Status: job.StatusDeadLetter, Queue: "queue-3", Class: "none"})
	check(t, s.Close())
	looksAtFewJobs(t, dsn, asked)
	sql(t, dsn, fmt.Sprintf(setting, "RESET random_page_cost")) // later tests get the database
}
