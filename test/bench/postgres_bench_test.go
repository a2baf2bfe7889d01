package bench_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/db"
	"redrive/internal/store/postgres"
	"redrive/internal/store/postgres/postgrestest"
	"redrive/internal/store/rawtest"
	"redrive/internal/store/sqlite"
)

// BenchmarkPostgres measures exchanges of a store on PostgreSQL, each of which ends a hundred jobs
// and claims a hundred, as a ratio of the same work elsewhere: in turns, so that a slow moment of
// the machine meets both, and as the median of the rounds. Every commit waits for the disk.
//
//   - "xsqlite": beside SQLite, with a server that is half a millisecond away in each direction.
//     It must be 0.3 or more for jobs that succeed, and 0.2 or more for those that become dead
//     letters.
//   - "xraw": beside the plainest queue on the same server (see rawPostgres), without that
//     distance. It must be 0.5 or more.
//   - "xclean": while a session keeps the server from cleaning up, beside a database where none
//     does, after the jobs that REDRIVE_BENCH_EXCHANGED says. It must be 0.7 or more.
//
// Then it measures what a job writes (see logged), and how long a takeover takes (see takeover).
func BenchmarkPostgres(b *testing.B) {
	empty := postgrestest.Durable(b)
	jobs, err := strconv.Atoi(cmp.Or(os.Getenv("REDRIVE_BENCH_EXCHANGED"), "25000"))
	if err != nil {
		b.Fatal(err)
	}

	turn := max(jobs/10, 2*exchangeBatch)
	succeed, die := job.Ending{Outcome: job.Succeeded}, job.Ending{Outcome: job.Failed, Answer: retry.Answer{Code: retry.CodeDeadLetter}}

	distant := func(b *testing.B, ending job.Ending) {
		far := newExchanging(b, postgres.Server{DSN: postgrestest.Distant(b, empty(), time.Millisecond/2)}, ending)
		near := newExchanging(b, sqlite.File{Path: filepath.Join(b.TempDir(), "redrive.db")}, ending)
		compare(b, turn, "xsqlite", far, near)
	}

	b.Run("distant/succeeded", func(b *testing.B) { distant(b, succeed) })
	b.Run("distant/dead", func(b *testing.B) { distant(b, die) })

	b.Run("near/succeeded", func(b *testing.B) {
		compare(b, turn, "xraw", newExchanging(b, postgres.Server{DSN: empty()}, succeed), newRawPostgres(b, empty()))
	})

	b.Run("old-snapshot", func(b *testing.B) {
		held := empty()
		keepSnapshot(b, held)
		beside, clean := newExchanging(b, postgres.Server{DSN: held}, succeed), newExchanging(b, postgres.Server{DSN: empty()}, succeed)
		beside.workOff(jobs)
		clean.workOff(jobs)
		compare(b, turn, "xclean", beside, clean)
	})

	b.Run("log/succeeded", func(b *testing.B) { logged(b, empty, jobs, succeed) })
	b.Run("log/dead", func(b *testing.B) { logged(b, empty, jobs, die) })

	b.Run("takeover/killed", func(b *testing.B) { takeover(b, empty(), os.Kill) })
	b.Run("takeover/stopped", func(b *testing.B) { takeover(b, empty(), syscall.SIGTERM) })
}

// exchangeBatch is how many jobs one exchange ends, and how many it claims.
const exchangeBatch = 100

// side is one of the two that are compared. It returns how long it took to work off n new jobs.
type side interface{ workOff(n int) time.Duration }

// compare reports how fast the first side is, in jobs a second and as a ratio of the second.
func compare(b *testing.B, n int, unit string, ours, theirs side) {
	const rounds = 9

	b.Helper()

	// What only the first jobs meet is not measured.
	ours.workOff(n)
	theirs.workOff(n)

	for b.Loop() {
		var rates, others, ratios []float64
		for round := range rounds {
			first, second := ours, theirs
			if round%2 == 1 {
				first, second = theirs, ours
			}

			one, two := first.workOff(n), second.workOff(n)
			if round%2 == 1 {
				one, two = two, one
			}

			rates, others = append(rates, float64(n)/one.Seconds()), append(others, float64(n)/two.Seconds())
			ratios = append(ratios, two.Seconds()/one.Seconds())
		}

		b.ReportMetric(median(ratios), unit) // which sorts them
		b.ReportMetric(ratios[0], "least")
		b.ReportMetric(ratios[rounds-1], "most")
		b.ReportMetric(median(rates), "jobs/s")
		b.ReportMetric(median(others), "others/s")
	}
}

// exchanging is a store whose jobs end all in the same way.
type exchanging struct {
	b      *testing.B
	store  *store.Store
	ending job.Ending
	failed int
}

func newExchanging(b *testing.B, on db.Database, ending job.Ending) *exchanging {
	b.Helper()

	opened, err := store.Open(b.Context(), store.Options{Database: on})
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() {
		err := opened.Close()
		if err != nil {
			b.Error(err)
		}
	})

	return &exchanging{b: b, store: opened, ending: ending}
}

func (e *exchanging) workOff(n int) time.Duration {
	e.b.Helper()

	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = job.Job{Queue: "orders", Type: "email.send", Policy: retry.Default(), Timeout: time.Minute, Payload: rawtest.Payload()}
	}

	_, err := e.store.Enqueue(e.b.Context(), time.Now(), jobs)
	if err != nil {
		e.b.Fatal(err)
	}

	runtime.GC()

	begin := time.Now()

	var ended []job.Settlement
	for first := true; first || len(ended) > 0; first = false {
		ended = e.exchange(ended)
	}

	return time.Since(begin)
}

// exchange settles what has ended, and ends what it claims.
func (e *exchanging) exchange(settle []job.Settlement) (ended []job.Settlement) {
	e.b.Helper()

	claim := job.Claim{Worker: "bench", Now: time.Now(), Lease: time.Minute, Free: map[string]int{"orders": exchangeBatch}}

	claimed, stale, err := e.store.Exchange(e.b.Context(), settle, claim)
	if err != nil || len(stale) > 0 {
		e.b.Fatalf("%d settlements are stale: %v", len(stale), err)
	}

	for _, j := range claimed {
		ending := e.ending
		ending.FinishedAt = claim.Now
		if ending.Outcome == job.Failed {
			e.failed++
			ending.Error = job.ErrorInfo{Type: "upstream.unavailable", Message: fmt.Sprintf("POST /v2/captures/%d: 503", e.failed)}
		}

		ended = append(ended, j.Settle(ending, nil))
	}

	return ended
}

// keepSnapshot leaves a transaction open that could still read what the database has now, until
// the end of the benchmark.
func keepSnapshot(b *testing.B, dsn string) {
	b.Helper()

	conn := connectRaw(b, dsn)
	for _, text := range []string{`BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT count(*) FROM jobs`} {
		_, err := conn.Exec(b.Context(), text)
		if err != nil {
			b.Fatal(err)
		}
	}
}

// rawPostgres is the queue of package rawtest as a good programmer writes it for PostgreSQL: one
// table, one index that claims follow, one connection, prepared statements that take a hundred
// jobs each, and the claim in the transaction that completes the jobs before.
type rawPostgres struct {
	b    *testing.B
	conn *pgx.Conn
}

const rawPostgresSchema = `DROP TABLE jobs; CREATE TABLE jobs (
		seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, queue TEXT NOT NULL, type TEXT NOT NULL,
		state TEXT NOT NULL, priority BIGINT NOT NULL, run_at BIGINT NOT NULL, finished_at BIGINT NOT NULL DEFAULT 0,
		payload BYTEA NOT NULL);
	CREATE INDEX ready ON jobs (queue, priority DESC, run_at, seq) WHERE state = 'available'`

// newRawPostgres puts the queue into a database in place of the store's jobs.
func newRawPostgres(b *testing.B, dsn string) *rawPostgres {
	b.Helper()

	conn := connectRaw(b, dsn)

	_, err := conn.Exec(b.Context(), `DROP VIEW executions; `+rawPostgresSchema)
	if err != nil {
		b.Fatal(err)
	}

	return &rawPostgres{b, conn}
}

// connectRaw connects until the end of the benchmark.
func connectRaw(b *testing.B, dsn string) *pgx.Conn {
	b.Helper()

	conn, err := pgx.Connect(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { _ = conn.Close(b.Context()) })

	return conn
}

func (q *rawPostgres) workOff(n int) time.Duration {
	q.b.Helper()

	fresh := make([][]any, n)
	for i := range fresh {
		fresh[i] = []any{job.NewID(), "orders", "email.send", "available", 0, time.Now().UnixMicro(), rawtest.Payload()}
	}

	columns := []string{"id", "queue", "type", "state", "priority", "run_at", "payload"}
	_, err := q.conn.CopyFrom(q.b.Context(), pgx.Identifier{"jobs"}, columns, pgx.CopyFromRows(fresh))
	if err != nil {
		q.b.Fatal(err)
	}

	runtime.GC()

	begin := time.Now()

	var active []int64
	for first := true; first || len(active) > 0; first = false {
		active, err = q.exchange(active)
		if err != nil {
			q.b.Fatal(err)
		}
	}

	return time.Since(begin)
}

// exchange completes jobs and claims others, in one transaction.
func (q *rawPostgres) exchange(done []int64) (active []int64, err error) {
	const complete = `UPDATE jobs SET state = 'completed', finished_at = $1 WHERE seq = ANY ($2) AND state = 'active'`
	const claim = `UPDATE jobs SET state = 'active' FROM (
			SELECT seq FROM jobs WHERE queue = $1 AND state = 'available'
			ORDER BY priority DESC, run_at, seq LIMIT $2 FOR UPDATE SKIP LOCKED) AS next
		WHERE jobs.seq = next.seq RETURNING jobs.seq, id, type, payload`

	ctx := q.b.Context()

	err = pgx.BeginFunc(ctx, q.conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, complete, time.Now().UnixMicro(), done)
		if err != nil {
			return err
		}

		rows, err := tx.Query(ctx, claim, "orders", exchangeBatch)
		if err != nil {
			return err
		}

		active, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (seq int64, err error) {
			var id, typ string
			var payload []byte
			err = row.Scan(&seq, &id, &typ, &payload)

			return seq, err
		})

		return err
	})

	return active, err
}
