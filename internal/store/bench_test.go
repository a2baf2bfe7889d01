package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// The benchmarks compare the store with the least that SQLite could do: the
// same driver, settings and file system, a table with one index, no history, no
// leases, no counters. Both sides run in turns, so that a slow minute of the
// machine meets both. "xraw" is the store's rate divided by the raw one.

const rawSchema = `CREATE TABLE raw (
		seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, queue TEXT NOT NULL, state TEXT NOT NULL,
		run_at INTEGER NOT NULL, finished_at INTEGER NOT NULL DEFAULT 0, payload BLOB NOT NULL) STRICT;
	CREATE INDEX raw_claim ON raw (queue, run_at, seq) WHERE state = 'available'`

const rawInsert = `INSERT INTO raw (id, queue, state, run_at, payload) VALUES ($1, $2, 'available', $3, $4)`

// raw is a database without a store.
type raw struct {
	tb   testing.TB
	conn *sql.Conn
	stmt map[string]*sql.Stmt
}

func openRaw(tb testing.TB) *raw {
	db, err := sql.Open("sqlite", writerDSN(filepath.Join(tb.TempDir(), "raw.db"), false))
	check(tb, err)
	conn, err := db.Conn(context.Background())
	check(tb, err)
	tb.Cleanup(func() { check(tb, conn.Close()); check(tb, db.Close()) })
	_, err = conn.ExecContext(context.Background(), rawSchema)
	check(tb, err)
	return &raw{tb, conn, map[string]*sql.Stmt{}}
}

func (r *raw) prepare(query string) *sql.Stmt {
	if r.stmt[query] == nil {
		stmt, err := r.conn.PrepareContext(context.Background(), query)
		check(r.tb, err)
		r.stmt[query] = stmt
	}
	return r.stmt[query]
}

func (r *raw) exec(query string, args ...any) {
	_, err := r.prepare(query).Exec(args...)
	check(r.tb, err)
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

var benchTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func benchJob() job.Job {
	return job.Job{Queue: "orders", Type: "email.send", Policy: retry.Default(), Timeout: time.Minute, Payload: []byte(`{"to":"someone@example.com","n":12345}`)}
}

func openBench(b *testing.B) *Store {
	s, err := Open(context.Background(), Options{Path: filepath.Join(b.TempDir(), "bench.db")})
	check(b, err)
	b.Cleanup(func() { check(b, s.Close()) })
	return s
}

// stopwatch adds up the time and the work of one side.
type stopwatch struct {
	spent time.Duration
	jobs  int
}

func (w *stopwatch) measure(jobs int, do func()) {
	start := time.Now()
	do()
	w.spent += time.Since(start)
	w.jobs += jobs
}

func (w *stopwatch) rate() float64 { return float64(w.jobs) / w.spent.Seconds() }

func report(b *testing.B, ours, raw stopwatch) {
	b.ReportMetric(ours.rate()/raw.rate(), "xraw")
	b.ReportMetric(ours.rate(), "jobs/s")
	b.ReportMetric(raw.rate(), "raw/s")
}

// BenchmarkEnqueueOneCaller: one job, one commit, one caller that waits for it.
func BenchmarkEnqueueOneCaller(b *testing.B) {
	s, r := openBench(b), openRaw(b)
	var ours, plain stopwatch
	for b.Loop() {
		plain.measure(20, func() { rawSingles(r, 20) })
		ours.measure(20, func() {
			for range 20 {
				_, err := s.Enqueue(context.Background(), benchTime, []job.Job{benchJob()})
				check(b, err)
			}
		})
	}
	report(b, ours, plain)
}

func rawSingles(r *raw, n int) {
	for range n {
		j := benchJob()
		r.exec(rawInsert, job.NewID(), j.Queue, benchTime.UnixMicro(), j.Payload)
	}
}

// BenchmarkEnqueueFiftyCallers: fifty callers share commits.
func BenchmarkEnqueueFiftyCallers(b *testing.B) {
	s, r := openBench(b), openRaw(b)
	var ours, plain stopwatch
	for b.Loop() {
		plain.measure(100, func() { rawSingles(r, 100) })
		ours.measure(50*20, func() {
			var callers sync.WaitGroup
			for range 50 {
				callers.Go(func() {
					for range 20 {
						if _, err := s.Enqueue(context.Background(), benchTime, []job.Job{benchJob()}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			callers.Wait()
		})
	}
	report(b, ours, plain)
}

// BenchmarkEnqueueThousand: a batch against one statement with a thousand rows.
func BenchmarkEnqueueThousand(b *testing.B) {
	s, r := openBench(b), openRaw(b)
	query := `INSERT INTO raw (id, queue, state, run_at, payload) VALUES (?, ?, ?, ?, ?)`
	query += strings.Repeat(", (?, ?, ?, ?, ?)", 999)
	jobs := make([]job.Job, 1000)
	for i := range jobs {
		jobs[i] = benchJob()
	}
	var ours, plain stopwatch
	for b.Loop() {
		plain.measure(1000, func() {
			var args []any
			for _, j := range jobs {
				args = append(args, job.NewID(), j.Queue, "available", benchTime.UnixMicro(), j.Payload)
			}
			r.exec(query, args...)
		})
		ours.measure(1000, func() {
			_, err := s.Enqueue(context.Background(), benchTime, jobs)
			check(b, err)
		})
	}
	report(b, ours, plain)
}

// BenchmarkExchange works off ready jobs, fifty ended and fifty begun in each
// transaction, against "one commit: complete 100, claim 100".
func BenchmarkExchange(b *testing.B) {
	s, r := openBench(b), openRaw(b)
	var ours, plain stopwatch
	for b.Loop() {
		b.StopTimer()
		fill(b, s, r, 1000)
		b.StartTimer()
		plain.measure(1000, func() { rawWorkOff(r) })
		ours.measure(1000, func() { workOff(b, s) })
	}
	report(b, ours, plain)
}

// fill makes n jobs ready on both sides.
func fill(b *testing.B, s *Store, r *raw, n int) {
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = benchJob()
	}
	_, err := s.Enqueue(context.Background(), benchTime, jobs)
	check(b, err)
	r.exec("BEGIN IMMEDIATE")
	rawSingles(r, n)
	r.exec("COMMIT")
}

func rawWorkOff(r *raw) {
	const claim = `UPDATE raw SET state = 'active' WHERE seq IN (SELECT seq FROM raw
		WHERE queue = $1 AND state = 'available' ORDER BY run_at, seq LIMIT 100) RETURNING id, payload`
	const complete = `UPDATE raw SET state = 'completed', finished_at = $2 WHERE id = $1`
	var active []string
	for first := true; first || len(active) > 0; first = false {
		r.exec("BEGIN IMMEDIATE")
		for _, id := range active {
			r.exec(complete, id, benchTime.UnixMicro())
		}
		active = active[:0]
		rows, err := r.prepare(claim).Query("orders")
		check(r.tb, err)
		for rows.Next() {
			var id string
			var payload []byte
			check(r.tb, rows.Scan(&id, &payload))
			active = append(active, id)
		}
		check(r.tb, rows.Err())
		r.exec("COMMIT")
	}
}

func workOff(b *testing.B, s *Store) {
	ctx := context.Background()
	claim := job.Claim{Worker: "bench", Now: benchTime, Lease: time.Minute, Free: map[string]int{"orders": 50}}
	var done []job.Settlement
	for first := true; first || len(done) > 0; first = false {
		claimed, stale, err := s.Exchange(ctx, done, claim)
		check(b, err)
		if len(stale) > 0 {
			b.Fatalf("%d stale settlements", len(stale))
		}
		done = done[:0]
		for _, j := range claimed {
			done = append(done, j.Settle(job.Ending{Outcome: job.Succeeded, FinishedAt: benchTime}, true, nil))
		}
	}
}
