package store

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/store/rawtest"
	"redrive/internal/store/sqlite"
)

// BenchmarkRaw_EnqueueStatements runs nothing but the statements that a new job takes in
// the store's schema, through the bare driver: what the store could reach at most, if all
// else that it does were free. Values that are the same for all jobs are in the statements.
func BenchmarkRaw_EnqueueStatements(b *testing.B) {
	b.Run("one", func(b *testing.B) { enqueueStatements(b, 1, false) })
	b.Run("fifty-relaxed", func(b *testing.B) { enqueueStatements(b, 50, true) })
}

func enqueueStatements(b *testing.B, n int, relaxed bool) {
	s, r := rawtest.OpenFile(b, withOneJob(b), relaxed), rawtest.Open(b)
	if relaxed {
		r = rawtest.OpenRelaxed(b)
	}
	var ours, plain stopwatch
	seq := 1
	for b.Loop() {
		plain.measure(100, func() { r.Insert(100) })
		ours.measure(20*n, func() {
			for range 20 {
				enqueueBare(s, seq+1, n)
				seq += n
			}
		})
	}
	report(b, ours, plain)
}

// enqueueBare does what a commit of n new jobs does.
func enqueueBare(s *rawtest.Queue, seq, n int) {
	const job1 = `(?, ?, 'orders', 'email.send', 'available', '', 0, 1, 60000000, ?, ?, ?, '')`
	const body1 = `(?, ?, 0, '', '', '')`
	jobs, bodies := make([]any, 0, 5*n), make([]any, 0, 2*n)
	now, payload := time.Now().UnixMicro(), rawtest.Payload()
	for i := range n {
		jobs = append(jobs, seq+i, job.NewID(), now, now, now)
		bodies = append(bodies, seq+i, payload)
	}
	s.Exec("BEGIN IMMEDIATE")
	s.Exec(`INSERT INTO jobs (seq, id, queue, type, state, list_state, priority, policy_id, ttr, run_at, enqueued_at, changed_at, key)
		VALUES `+job1+strings.Repeat(", "+job1, n-1), jobs...)
	s.Exec(`INSERT INTO bodies (job_seq, payload, expires_at, trace_id, message_id, note) VALUES `+
		body1+strings.Repeat(", "+body1, n-1), bodies...)
	s.Exec(`UPDATE depths SET n = n + ? WHERE queue = 'orders' AND status = 'available'`, n)
	s.Exec(`UPDATE revision SET n = n + 1, newest = ?`, seq+n-1)
	s.Exec("COMMIT")
}

// The statements of the benchmark leave a database in which nothing is wrong.
func TestEnqueueStatements_LeaveASoundDatabase(t *testing.T) {
	path := withOneJob(t)
	t.Run("bare", func(t *testing.T) { enqueueBare(rawtest.OpenFile(t, path, false), 2, 50) })
	if got := problems(t, path); len(got) > 0 {
		t.Errorf("%q", got)
	}
	s, err := Open(t.Context(), Options{Database: sqlite.File{Path: path}})
	check(t, err)
	defer func() { check(t, s.Close()) }()
	if n := s.Snapshot().Depths[job.Status(job.Available)]; n != 51 {
		t.Errorf("%d jobs are available, not 51", n)
	}
}

// withOneJob is a database with one job, and so with the rows of its policy and its counts.
func withOneJob(tb testing.TB) (path string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "bench.db")
	s, err := Open(tb.Context(), Options{Database: sqlite.File{Path: path}})
	check(tb, err)
	_, err = s.Enqueue(tb.Context(), time.Now(), []job.Job{benchJob()})
	check(tb, err)
	check(tb, s.Close())
	return path
}
