package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/store/sqlite"
)

// dead enqueues jobs that fail permanently, and returns them.
func dead(t *testing.T, s *Store, n int) []job.Job {
	t.Helper()
	for range n {
		enqueue(t, s, 1)
	}
	claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{Worker: "w", Now: testTime, Lease: time.Minute, Free: map[string]int{"orders": n}})
	check(t, err)
	var settle []job.Settlement
	for i, j := range claimed {
		at := testTime.Add(time.Duration(i) * time.Second)
		settle = append(settle, j.Settle(job.Ending{Outcome: job.Failed, FinishedAt: at, Answer: retry.Answer{Code: retry.CodeDeadLetter}}, nil))
	}
	_, _, err = s.Exchange(t.Context(), settle, job.Claim{})
	check(t, err)
	return claimed
}

// A start counts the dead letters of the last day by the hour, and not all that are kept.
func TestOpen_CountsDeadLettersOfTheLastDay(t *testing.T) {
	file := sqlite.File{Path: filepath.Join(t.TempDir(), "jobs.db")}
	s := open(t, Options{Database: file})
	for _, age := range []time.Duration{72 * time.Hour, 25 * time.Hour, 23 * time.Hour, 0} {
		j := testJob("{}")
		j.State, j.Reason = job.Discarded, retry.MissingURN
		_, err := s.Enqueue(t.Context(), testTime.Add(-age), []job.Job{j})
		check(t, err)
	}
	check(t, s.Close())
	s = open(t, Options{Database: file})
	open, err := s.Counters.DeadLetters(t.Context(), 0)
	check(t, err)
	if open.Recent != 2 {
		t.Errorf("it counted %d dead letters, want the 2 of the last day", open.Recent)
	}
	usage, err := s.Sweep.DeadLetterUsage(t.Context(), testTime)
	check(t, err)
	if usage.Open != 4 || usage.LastDay != 2 {
		t.Errorf("%+v; want 4 letters, 2 of them of the last day", usage)
	}
}

// What people discard in the very transaction that prunes is no longer too many.
func TestPrune_CountsWhatIsCommittedWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		deadLetters, limits := dead(t, s, 10), retention.Limits{Count: 7}
		_, err := s.Sweep.Forecast(t.Context(), testTime.Add(time.Hour), limits)
		check(t, err)
		release := block(t, s)
		var callers sync.WaitGroup
		for _, j := range deadLetters[7:] {
			callers.Go(func() {
				if _, err := s.Discard(context.Background(), testTime, j.ID, 1, audit.Actor{Name: "ana"}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // it stands in the queue
		}
		callers.Go(func() {
			if done, err := s.Sweep.Prune(context.Background(), testTime.Add(time.Hour), limits); done.Of(retention.OverCount) != 0 || err != nil {
				t.Errorf("%d letters were pruned, %v; want none", done.Of(retention.OverCount), err)
			}
		})
		synctest.Wait() // it stands in the queue
		release()
		callers.Wait()
		if n := s.Snapshot().Depths[job.StatusDeadLetter]; n != 7 {
			t.Errorf("%d letters are left, want 7", n)
		}
	})
}

func TestPrune_LeavesNoRowOfAJobBehind(t *testing.T) {
	s := open(t, Options{})
	old := dead(t, s, 1)[0]
	priority := 1
	_, err := s.ReplayWith(t.Context(), testTime, old.ID, 1, job.Edit{Priority: &priority}, audit.Actor{Name: "ana"})
	check(t, err)
	claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{Worker: "w", Now: testTime, Lease: time.Minute, Free: map[string]int{"orders": 1}})
	check(t, err)
	again := claimed[0].Settle(job.Ending{Outcome: job.Failed, FinishedAt: testTime, Answer: retry.Answer{Code: retry.CodeDeadLetter}}, nil)
	_, _, err = s.Exchange(t.Context(), []job.Settlement{again}, job.Claim{})
	check(t, err)
	dead(t, s, 2)
	rows := func(table, seq string) (n int) {
		err := s.reader.In(t.Context()).Query("SELECT count(*) FROM "+table+" WHERE "+seq+" = $1",
			func(rows *sql.Rows) error { return rows.Scan(&n) }, old.Seq)
		check(t, err)
		return n
	}
	tables := map[string]string{
		"jobs": "seq", "bodies": "job_seq", "attempts": "job_seq", "dead_letters": "job_seq", "replays": "job_seq", "earlier_runs": "job_seq",
	}
	for table, seq := range tables {
		if rows(table, seq) == 0 {
			t.Errorf("%s has no row of the job before", table)
		}
	}
	limits := retention.Limits{Count: 2}
	_, err = s.Sweep.Forecast(t.Context(), testTime.Add(time.Hour), limits)
	check(t, err)
	if done, err := s.Sweep.Prune(t.Context(), testTime.Add(time.Hour), limits); done.Of(retention.OverCount) != 1 || err != nil {
		t.Fatalf("%d letters were pruned, %v; want 1", done.Of(retention.OverCount), err)
	}
	for table, seq := range tables {
		if n := rows(table, seq); n != 0 {
			t.Errorf("%s still has %d rows of the job", table, n)
		}
	}
}
