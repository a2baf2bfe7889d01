package bench_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/app"
	"redrive/internal/config"
	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store/rawtest"
	"redrive/test/rig"
)

// BenchmarkGrowth measures the product on histories of ten thousand jobs and more,
// each ten times as large as the one before, up to REDRIVE_BENCH_GROWTH jobs, and
// prints a table. Where REDRIVE_BENCH_DOCS names a folder, the table goes into
// benchmarks.md there, and growth.svg beside it shows it. See make bench-growth.
func BenchmarkGrowth(b *testing.B) {
	largest, err := strconv.Atoi(os.Getenv("REDRIVE_BENCH_GROWTH"))
	if err != nil {
		b.Skip("REDRIVE_BENCH_GROWTH says no number of jobs; make bench-growth does")
	}
	dir := b.TempDir()
	g := growth{B: b, begin: time.Now()}
	g.say("writing %d jobs", smallest)
	h, err := newHistory(b.Context(), filepath.Join(dir, "history.db"), smallest, time.Now())
	g.check(err)
	var all table
	for size := smallest; ; {
		g.path = filepath.Join(dir, "measured.db")
		if size == largest {
			g.path = h.path // a copy would take long
		} else {
			g.check(copyDatabase(h.path, g.path))
		}
		all.add(h.jobs, g.measure(h.jobs))
		if size *= 10; size > largest {
			break
		}
		g.grow(h)
	}
	fmt.Print(all.text())
	if dir := os.Getenv("REDRIVE_BENCH_DOCS"); dir != "" {
		g.check(all.write(dir))
	}
}

// smallest is the size of the first history.
const smallest = 10_000

// growth is one run of the benchmark.
type growth struct {
	*testing.B
	begin time.Time
	path  string // the database that is measured
}

func (g *growth) check(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// say shows how far the run is.
func (g *growth) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(g.begin).Seconds(), fmt.Sprintf(format, args...))
}

// grow makes the history ten times as large.
func (g *growth) grow(h *history) {
	g.Helper()
	g.say("growing to %d jobs", 10*h.jobs)
	last := time.Now()
	g.check(h.grow(g.Context(), func(jobs int) {
		if time.Since(last) > 10*time.Second {
			last = time.Now()
			g.say("  copying, at job %d", jobs)
		}
	}))
	g.say("  making the failures searchable")
	g.check(h.index(g.Context()))
}

// measure measures one size.
func (g *growth) measure(jobs int) []sample {
	g.Helper()
	g.say("measuring %d jobs", jobs)
	perJob := func(path string) float64 {
		info, err := os.Stat(path)
		g.check(err)
		return float64(info.Size()) / float64(jobs)
	}
	disk := []sample{
		{"Database, for each job", "file", perJob(g.path), "%.0f bytes"},
		{"Search index, for each job", "index", perJob(g.path + "-search"), "%.0f bytes"},
	}
	memory := g.memory()
	a := g.start()
	pages := g.pages(a) // before there are more jobs
	rates := g.rates(a)
	g.check(a.Stop(g.Context()))
	starts := g.starts()
	g.say("  examining")
	examine(g.B, g.path)
	return slices.Concat(rates, pages, starts, memory, disk)
}

// growthConfig keeps every dead letter.
const growthConfig = "queues: {orders: {workers: 50}}\nretention: {completed: 0, cancelled: 0, discarded: 0}\n"

// start runs the product on the database, with handlers that succeed.
func (g *growth) start() *app.App {
	g.Helper()
	settings, err := config.Parse("redrive.yaml", []byte(growthConfig))
	g.check(err)
	a, err := app.Start(g.Context(), app.Parts{
		Listen: "127.0.0.1:0", DB: g.path, Config: settings, Log: slog.New(slog.DiscardHandler),
		Handlers: func(string) (engine.Handler, bool) {
			return func(context.Context, job.Job) error { return nil }, true
		},
	})
	g.check(err)
	return a
}

// starts measures how long a start takes until the product is ready, and how long
// after a process was killed that held jobs.
func (g *growth) starts() []sample {
	g.Helper()
	g.say("  starts")
	timed := func() float64 {
		begin := time.Now()
		a := g.start()
		took := time.Since(begin)
		g.check(a.Stop(g.Context()))
		return took.Seconds() * 1000
	}
	var plain, held []float64
	for range 3 {
		plain = append(plain, timed())
		holdLeases(g.B, g.path)
		held = append(held, timed())
	}
	return []sample{
		{"Start", "until ready", median(plain), "%.0f ms"},
		{"Start", fmt.Sprintf("with %s leases left", thousands(leases)), median(held), "%.0f ms"},
	}
}

// await waits until no job runs or waits.
func (g *growth) await(a *app.App) {
	for {
		depths := a.Store().Snapshot().Depths
		if depths[job.Status(job.Available)]+depths[job.Status(job.Active)]+depths[job.Status(job.Retryable)] == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// rates measures what the product does in a second, in turns with the raw
// statements on an empty database.
func (g *growth) rates(a *app.App) []sample {
	g.Helper()
	g.say("  rates")
	const jobs, singles, batches, turns = 10_000, 500, 5, 3
	var work, single, thousand []float64
	q := rawtest.Open(g.B)
	for range 100 { // a commit costs more while its log is new and still grows
		q.InsertThousand()
	}
	perSecond := func(n int, do func()) float64 {
		begin := time.Now()
		do()
		return float64(n) / time.Since(begin).Seconds()
	}
	for range turns {
		raw := rawRate(g.B, jobs)
		a.Pause(true)
		fillProduct(g.B, a, jobs)
		work = append(work, perSecond(jobs, func() { a.Pause(false); g.await(a) })/raw)
		a.Pause(true)
		raw = perSecond(singles, func() { q.Insert(singles) })
		single = append(single, perSecond(singles, func() { g.enqueue(a, singles, 1) })/raw)
		raw = perSecond(batches, func() {
			for range batches {
				q.InsertThousand()
			}
		})
		thousand = append(thousand, perSecond(batches, func() { g.enqueue(a, batches, 1000) })/raw)
		a.Pause(false)
		g.await(a)
	}
	const panel, format = "Rates, as shares of raw SQLite's", "%.2f"
	return []sample{
		{panel, "work off", median(work), format},
		{panel, "enqueue, one caller", median(single), format},
		{panel, "enqueue, 1,000 at once", median(thousand), format},
	}
}

// enqueue makes so many calls with so many jobs each.
func (g *growth) enqueue(a *app.App, calls, jobs int) {
	g.Helper()
	all := make([]job.Job, jobs)
	for i := range all {
		all[i] = job.Job{Queue: "orders", Type: "email.send", Timeout: time.Minute, Policy: retry.Default(), Payload: rawtest.Payload()}
	}
	for range calls {
		_, err := a.Store().Enqueue(g.Context(), time.Now(), all)
		g.check(err)
	}
}

// needle is what a single failure says.
const needle = "the needle 4711 of this haystack"

// pages measures pages and searches over HTTP.
func (g *growth) pages(a *app.App) (all []sample) {
	g.Helper()
	g.say("  pages")
	g.hide(a)
	base := a.URL()
	q := func(path, text string) string { return path + "?q=" + url.QueryEscape(text) }
	const pages, searches = "Pages over HTTP, p99", "Searches over HTTP, p99"
	for _, m := range []struct{ panel, name, path string }{
		{pages, "newest jobs", "/jobs"},
		{pages, "newest dead letters", "/dead-letters"},
		{pages, "dead letters, next page", link(g.B, base, "/dead-letters", "/dead-letters?after=")},
		{pages, "dead letters of a queue", "/dead-letters?queue=email"},
		{pages, "dead letters of a type", "/dead-letters?type=invoice.render"},
		{pages, "error groups", "/failures"},
		{searches, "a rare text", q("/dead-letters", needle)},
		{searches, "a text of many", q("/dead-letters", "rate_limited")},
		{searches, "a text of none", q("/dead-letters", "zebra crossing")},
	} {
		took, err := oneByOne(base+m.path, 500)
		g.check(err)
		p50, p99 := took[len(took)/2], took[len(took)*99/100]
		all = append(all, sample{m.panel, m.name, p99.Seconds() * 1000, fmt.Sprintf("%.1f / %%.1f ms", p50.Seconds()*1000)})
	}
	return all
}

// hide lets a single job fail with the needle, and waits until a search finds it.
func (g *growth) hide(a *app.App) {
	g.Helper()
	_, err := a.Store().Enqueue(g.Context(), time.Now(), []job.Job{{
		Queue: "email", Type: "invoice.render", Timeout: time.Minute, Policy: retry.Default(),
		State: job.Discarded, Reason: retry.MissingURN, Error: job.ErrorInfo{Type: "haystack", Message: needle},
	}})
	g.check(err)
	for lag := 1; lag > 0; time.Sleep(10 * time.Millisecond) {
		lag, err = a.Store().Search.Lag(g.Context())
		g.check(err)
	}
}

// memory measures what the real process takes: idle, and after it has shown its
// pages and has worked off ten thousand jobs more.
func (g *growth) memory() []sample {
	g.Helper()
	g.say("  memory")
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer service.Close()
	dir := g.TempDir()
	settings := growthConfig + "handlers: {email.send: {http: {url: " + service.URL + "}}}\n"
	g.check(os.WriteFile(filepath.Join(dir, "redrive.yaml"), []byte(settings), 0o600))
	p := rig.Start(g.B, dir, "--db", g.path)
	time.Sleep(2 * time.Second) // what a start leaves to be done
	idle := resident(g.B, p.Cmd.Process.Pid)
	for _, page := range measuredLists() {
		_, err := oneByOne(p.URL+page.path, 20)
		g.check(err)
	}
	one := fmt.Sprintf(`{"type": "email.send", "queue": "orders", "payload": %s}`, rawtest.Payload())
	batch := `{"jobs": [` + strings.TrimSuffix(strings.Repeat(one+",", 1000), ",") + `]}`
	for range 10 {
		g.check(postJSON(p.URL+"/api/v1/jobs/batch", batch, nil))
	}
	p.Until(func(now rig.Totals) bool { return now.States["available"]+now.States["active"] == 0 })
	busy := resident(g.B, p.Cmd.Process.Pid)
	if p.Stop(syscall.SIGTERM); p.Code() != 0 {
		g.Fatalf("it ended with %d: %s", p.Code(), p.Stderr)
	}
	return []sample{
		{"Memory of the process", "idle", idle, "%.0f MB"},
		{"Memory of the process", "after pages and 10,000 jobs", busy, "%.0f MB"},
	}
}

// resident is the memory that a process has in MB, without the pages of files,
// which the system can take back at any time.
func resident(tb testing.TB, pid int) float64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB$`).FindSubmatch(status)
	if found == nil {
		tb.Fatalf("no RssAnon in %s", status)
	}
	kB, err := strconv.Atoi(string(found[1]))
	if err != nil {
		tb.Fatal(err)
	}
	return float64(kB) / 1024
}
