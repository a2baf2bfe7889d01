package workers_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// load is a server with many dead jobs, a tenth of which refund and all others charge.
type load struct {
	preset string
	server func(testing.TB) (url string)
	fill   func(b *testing.B, url string, deadLetters int)
	queued func(b *testing.B, url string) int           // jobs that the system is going to run
	busy   func(b *testing.B, url string) time.Duration // how long the server has worked
}

var loads = map[string]load{
	"Redis":      {"sidekiq", redisServer, fillSidekiq, sidekiqQueued, redisBusy},
	"PostgreSQL": {"river", postgresDatabase, fillRiver, riverQueued, postgresBusy},
}

// BenchmarkSources measures the first reading of all dead letters, the looks after it, and
// a replay of a tenth of them without a rate.
func BenchmarkSources(b *testing.B) {
	for name, l := range loads {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				l.measure(b)
			}
		})
	}
}

func (l load) measure(b *testing.B) {
	deadLetters, err := strconv.Atoi(cmp.Or(os.Getenv("REDRIVE_BENCH_LETTERS"), "20000"))
	if err != nil {
		b.Fatal(err)
	}
	url := l.server(b)
	l.fill(b, url, deadLetters)
	began := time.Now()
	d := startDashboard(b, fmt.Sprintf("sources: {shop: {preset: %s, url: %q, allow: [replay]}}\n", l.preset, url))
	d.await(func() bool { return d.source().Ready })
	mirrored := time.Since(began)
	b.ReportMetric(mirrored.Seconds(), "mirror-s")
	b.ReportMetric(float64(deadLetters)/mirrored.Seconds(), "mirror/s")
	l.look(b, d, url)
	l.replay(b, d, url, deadLetters/10)
	b.ReportMetric(d.kilobytes("VmHWM")/1000, "peak-MB")
	b.ReportMetric(d.kilobytes("RssAnon")/1000, "anon-MB")
	b.ReportMetric(0, "ns/op")
}

// settle waits until the search index is in order: the dashboard has not written to it for
// a while.
func (d *dashboard) settle() {
	d.t.Helper()
	const quiet = 15 * time.Second
	d.await(func() bool {
		for _, file := range []string{"-search", "-search-wal"} {
			info, err := os.Stat(d.path + file)
			if err != nil {
				d.t.Fatal(err)
			}
			if time.Since(info.ModTime()) < quiet {
				return false
			}
		}
		return true
	})
}

// look measures a minute in which nothing happens at the source, once the search index is
// in order.
func (l load) look(b *testing.B, d *dashboard, url string) {
	const minute = time.Minute
	began := time.Now()
	d.settle()
	b.ReportMetric(time.Since(began).Seconds(), "index-s")
	looks, took, last := 0, 0., d.source().Polled
	cpu, busy := d.processor(), l.busy(b, url)
	began = time.Now()
	for time.Since(began) < minute {
		time.Sleep(time.Second) // not more often: the answers would be counted, too
		if s := d.source(); s.Polled != last {
			looks, took, last = looks+1, took+s.took(b).Seconds(), s.Polled
		}
	}
	spent := time.Since(began).Seconds()
	b.ReportMetric(1000*took/float64(looks), "look-ms")
	b.ReportMetric(1000*(l.busy(b, url)-busy).Seconds()/float64(looks), "look-at-server-ms")
	b.ReportMetric(100*(d.processor()-cpu).Seconds()/spent, "%core")
}

// replay measures an operation on all jobs that refund, until the last one is in the
// system's own queue.
func (l load) replay(b *testing.B, d *dashboard, url string, refunds int) {
	began := time.Now()
	status := d.post("/api/v1/operations", `{"kind": "replay", "filter": "source:shop type:refund", "rate": 0, "canary": 0, "guard": false, "start": true}`)
	if status != http.StatusCreated {
		b.Fatalf("the operation answered %d", status)
	}
	d.await(func() bool { return l.queued(b, url) >= refunds })
	b.ReportMetric(float64(refunds)/time.Since(began).Seconds(), "replays/s")
	if n := l.queued(b, url); n != refunds {
		b.Fatalf("%d jobs are queued, not %d", n, refunds)
	}
}

// await waits for something that takes minutes.
func (d *dashboard) await(is func() bool) {
	d.t.Helper()
	for end := time.Now().Add(time.Hour); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatal("not after an hour")
		}
	}
}

// shownSource is the source as the API shows it.
type shownSource struct {
	Ready   bool
	Polled  string `json:"polled_at"`
	Took    string
	Problem string
}

func (d *dashboard) source() shownSource {
	d.t.Helper()
	s := get[shownSource](d, "/api/v1/sources/shop")
	if s.Problem != "" {
		d.t.Fatal(s.Problem)
	}
	return s
}

// took is how long a look took, of an ISO 8601 duration below a minute.
func (s shownSource) took(b *testing.B) time.Duration {
	took, err := time.ParseDuration(strings.ToLower(strings.TrimPrefix(s.Took, "PT")))
	if err != nil {
		b.Fatal(err)
	}
	return took
}

// processor is how long the dashboard has used a processor.
func (d *dashboard) processor() time.Duration {
	d.t.Helper()
	text, err := os.ReadFile(d.proc("stat"))
	if err != nil {
		d.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), ") ")
	ticks := 0
	for _, field := range strings.Fields(after)[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.Atoi(field)
		if err != nil {
			d.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// kilobytes is a line of the dashboard's status.
func (d *dashboard) kilobytes(name string) float64 {
	d.t.Helper()
	text, err := os.ReadFile(d.proc("status"))
	if err != nil {
		d.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), name+":")
	n, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

func (d *dashboard) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(d.cmd.Process.Pid), name)
}

// inRedis does something with a server.
func inRedis[T any](b *testing.B, url string, do func(ctx context.Context, c *redis.Client) (T, error)) T {
	b.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		b.Fatal(err)
	}
	options.ReadTimeout = time.Minute
	c := redis.NewClient(options)
	defer c.Close()
	answer, err := do(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	return answer
}

// fillSidekiq writes dead jobs in the form of Sidekiq 6, a second of its clock for each ten.
func fillSidekiq(b *testing.B, url string, deadLetters int) {
	const step = 10_000
	const script = `for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
		local class = i % 10 == 0 and 'refund' or 'charge'
		local at = string.format('%.6f', 1790000000 + i / 10)
		redis.call('ZADD', 'dead', at, string.format('{"retry":1,"queue":"orders","args":[%d,{"currency":"EUR","amount":%d}],"class":"%s",' ..
			'"jid":"%024x","created_at":%s,"enqueued_at":%s,"error_message":"card declined: order %d","error_class":"Declined",' ..
			'"failed_at":%s,"retry_count":1,"retried_at":%s}', i, i % 997, class, i, at, at, i, at, at))
	end
	return 1`
	inRedis(b, url, func(ctx context.Context, c *redis.Client) (done any, err error) {
		for i := 0; i < deadLetters && err == nil; i += step {
			err = c.Eval(ctx, script, nil, i+1, min(i+step, deadLetters)).Err()
		}
		return nil, err
	})
}

func sidekiqQueued(b *testing.B, url string) int {
	return int(inRedis(b, url, func(ctx context.Context, c *redis.Client) (int64, error) { return c.LLen(ctx, "queue:orders").Result() }))
}

// redisBusy is the time in all commands so far.
func redisBusy(b *testing.B, url string) (busy time.Duration) {
	info := inRedis(b, url, func(ctx context.Context, c *redis.Client) (string, error) {
		return c.Info(ctx, "commandstats").Result()
	})
	for _, command := range strings.Split(info, "usec=")[1:] {
		text, _, _ := strings.Cut(command, ",")
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		busy += time.Duration(n) * time.Microsecond
	}
	return busy
}

// inPostgres asks a database for a number, or nothing.
func inPostgres(b *testing.B, url, statement string, args ...any) (n float64) {
	b.Helper()
	c, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background())
	if err := c.QueryRow(b.Context(), statement, args...).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// fillRiver writes discarded jobs into the tables that River has made.
func fillRiver(b *testing.B, url string, deadLetters int) {
	s := &bench{TB: b, system: system{command: []string{"river"}}, env: append(os.Environ(), "DATABASE_URL="+url)}
	s.run("enqueue")
	inPostgres(b, url, `WITH filled AS (INSERT INTO river_job
		(state, attempt, max_attempts, attempted_at, created_at, finalized_at, scheduled_at, args, errors, kind, metadata, priority, queue)
		SELECT 'discarded', 2, 2, at, at, at, at, jsonb_build_object('order', i, 'currency', 'EUR', 'amount', i % 997),
			ARRAY[jsonb_build_object('at', at, 'error', 'card declined: order ' || i, 'trace', '', 'attempt', 1),
				jsonb_build_object('at', at, 'error', 'card declined: order ' || i, 'trace', '', 'attempt', 2)],
			CASE WHEN i % 10 = 0 THEN 'refund' ELSE 'charge' END, '{}', 1, 'orders'
		FROM (SELECT i, now() - i * interval '100 ms' AS at FROM generate_series(1, $1::int) AS i) AS numbers RETURNING 1)
		SELECT count(*) FROM filled`, deadLetters)
	c, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(b.Context(), "VACUUM ANALYZE river_job"); err != nil {
		b.Fatal(err)
	}
}

func riverQueued(b *testing.B, url string) int {
	return int(inPostgres(b, url, "SELECT count(*) FROM river_job WHERE state = 'available'"))
}

// postgresBusy is the time in all statements so far, those of the benchmark included.
func postgresBusy(b *testing.B, url string) time.Duration {
	return time.Duration(inPostgres(b, url, "SELECT active_time FROM pg_stat_database WHERE datname = current_database()") * float64(time.Millisecond))
}
