// Package bench_test measures the whole program.
package bench_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"redrive/internal/app"
	"redrive/internal/config"
	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/rawtest"
	"redrive/internal/store/sqlite"
)

// TestMain measures under the limit of memory that the program has.
func TestMain(m *testing.M) {
	release := app.OccupyProcess(config.Default(), slog.New(slog.DiscardHandler))
	code := m.Run()
	release()
	os.Exit(code)
}

// BenchmarkProduct works off ready jobs with everything on that the product has:
// pages, a browser that watches, the search index, error groups and metrics. It
// does so once with jobs that succeed, and once with jobs that fail twice first,
// each time with a text of its own, in turns with the raw statements (see
// rawtest). REDRIVE_BENCH_EXECUTIONS says how many executions a turn has.
//
// "ratio" is the rate of executions with failures divided by that without, and
// must be 0.5 or more. "lag-s" is the age of the oldest failure that no search
// finds, the greatest that was seen, and must stay below 5; "end-lag-s" is that age
// a second after the last execution, and must be below 1.
func BenchmarkProduct(b *testing.B) {
	executions, turns := 100_000, 3
	if text := os.Getenv("REDRIVE_BENCH_EXECUTIONS"); text != "" {
		var err error
		if executions, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		var jobs, xraw, rates, ratios []float64
		var worst worked
		for range turns {
			raw, smooth, rough := rawRate(b, 20_000), workOff(b, executions, 0), workOff(b, executions/3, 2)
			jobs, xraw = append(jobs, smooth.rate), append(xraw, smooth.rate/raw)
			rates, ratios = append(rates, rough.rate), append(ratios, rough.rate/smooth.rate)
			worst.lag, worst.endLag = max(worst.lag, rough.lag), max(worst.endLag, rough.endLag)
		}
		b.ReportMetric(median(jobs), "jobs/s")
		b.ReportMetric(median(xraw), "xraw")
		b.ReportMetric(median(rates), "executions/s")
		b.ReportMetric(median(ratios), "ratio")
		b.ReportMetric(worst.lag.Seconds(), "lag-s")
		b.ReportMetric(worst.endLag.Seconds(), "end-lag-s")
	}
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// rawRate returns the raw jobs per second.
func rawRate(b *testing.B, n int) float64 {
	q := rawtest.Open(b)
	q.Fill(n)
	begin := time.Now()
	q.WorkOff()
	return float64(n) / time.Since(begin).Seconds()
}

// worked is what one turn of the product did.
type worked struct {
	rate        float64 // executions a second
	lag, endLag time.Duration
}

// workOff runs the product on a new database until n jobs have succeeded, each of
// which fails so many times first. The database is sound afterwards.
func workOff(b *testing.B, n, failures int) (w worked) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "redrive.db")
	a := startProduct(b, path, failures)
	fillProduct(b, a, n)
	watchCounts(b, a)
	runtime.GC() // what was left of the turn before
	lag := newLagMeter(b, path)
	begin := time.Now()
	a.Pause(false)
	for a.Store().Snapshot().Totals.Succeeded < int64(n) {
		time.Sleep(time.Millisecond)
		if failures > 0 {
			w.lag = max(w.lag, lag.sometimes())
		}
	}
	w.rate = float64(n*(failures+1)) / time.Since(begin).Seconds()
	if failures > 0 {
		time.Sleep(time.Second)
		w.endLag = lag.now()
	}
	if err := a.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	examine(b, path)
	return w
}

// startProduct starts everything but the engine's claims.
func startProduct(b *testing.B, path string, failures int) *app.App {
	b.Helper()
	settings, err := config.Parse("redrive.yaml", []byte("queues: {orders: {workers: 50}}"))
	if err != nil {
		b.Fatal(err)
	}
	var number atomic.Int64
	handle := func(_ context.Context, j job.Job) error {
		if j.Attempts >= failures {
			return nil
		}
		return &job.Failure{ErrorInfo: job.ErrorInfo{
			Type:    "upstream.unavailable",
			Message: fmt.Sprintf("POST https://api.paylane.example/v2/captures/%d: 503 Service Unavailable", number.Add(7919)),
		}}
	}
	a, err := app.Start(b.Context(), app.Parts{
		Listen: "127.0.0.1:0", DB: path, Config: settings, Log: slog.New(slog.DiscardHandler),
		Handlers: func(string) (engine.Handler, bool) { return handle, true },
	})
	if err != nil {
		b.Fatal(err)
	}
	a.Pause(true)
	return a
}

// fillProduct makes n jobs ready, whose retries wait for nothing.
func fillProduct(b *testing.B, a *app.App, n int) {
	b.Helper()
	j := job.Job{Queue: "orders", Type: "payment.capture", Timeout: time.Minute, Policy: retry.Default()}
	j.Policy.Strategy, j.Policy.Jitter = retry.Immediate, retry.Jitter{}
	all := make([]job.Job, n)
	for i := range all {
		j.Payload = fmt.Appendf(nil, `{"order":%d,"customer":"customer.%d@mail.example","amount":%d,"currency":"EUR","sku":"MK-%d"}`,
			1_000_000+i, i*7919%1_000_003, i*31%90_000, i%900)
		all[i] = j
	}
	for batch := range slices.Chunk(all, 1000) {
		if _, err := a.Store().Enqueue(b.Context(), time.Now(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

// watchCounts is a browser that shows a page, until the app stops.
func watchCounts(b *testing.B, a *app.App) {
	b.Helper()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(a.URL(), "http")+"/live", nil)
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		defer conn.Close()
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	}()
}

// lagMeter reads, beside the product, how old the oldest failure is that cannot be
// found yet.
type lagMeter struct {
	b    *testing.B
	pool *sql.DB
	next time.Time
}

func newLagMeter(b *testing.B, path string) *lagMeter {
	b.Helper()
	pool, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { pool.Close() })
	return &lagMeter{b: b, pool: pool}
}

func (m *lagMeter) now() time.Duration {
	m.b.Helper()
	const query = `SELECT coalesce(min(finished_at), 0) FROM search_backlog AS w CROSS JOIN attempts AS a
		ON a.job_seq = w.job_seq AND a.execution = w.execution`
	var oldest int64
	if err := m.pool.QueryRowContext(m.b.Context(), query).Scan(&oldest); err != nil {
		m.b.Fatal(err)
	}
	if oldest == 0 {
		return 0
	}
	return time.Since(time.UnixMicro(oldest))
}

// sometimes is now, but only twice a second: it costs the product some time.
func (m *lagMeter) sometimes() time.Duration {
	if time.Now().Before(m.next) {
		return 0
	}
	defer func() { m.next = time.Now().Add(time.Second / 2) }()
	return m.now()
}

// examine is dashboard doctor.
func examine(b testing.TB, path string) {
	b.Helper()
	found, err := store.Examine(b.Context(), sqlite.File{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range found {
		if f.Problem != "" {
			b.Errorf("%s: %s", f.What, f.Problem)
		}
	}
}
