package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/net/html"

	"redrive/internal/app"
	"redrive/internal/config"
	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/sqlite"
)

// measured is one line of the table: what is asked for, and what it may cost.
type measured struct {
	name, path string
	budget     time.Duration // of the 99th percentile, 0: none is promised
}

const (
	pageBudget   = 5 * time.Millisecond
	searchBudget = 20 * time.Millisecond
)

// measuredLists are the lists, their filters and the searches in them, as they
// are asked for on a large database.
func measuredLists() []measured {
	q := func(path, text string) string { return path + "?q=" + url.QueryEscape(text) }
	return []measured{
		{"nothing but HTTP", "/healthz", 0},
		{"overview", "/", pageBudget},
		{"newest jobs", "/jobs", pageBudget},
		{"jobs of a queue", "/jobs?queue=orders", pageBudget},
		{"completed jobs", "/jobs?state=completed", pageBudget},
		{"a state without jobs", "/jobs?state=cancelled", pageBudget},
		{"newest dead letters", "/dead-letters", pageBudget},
		{"dead letters of a queue", "/dead-letters?queue=email", pageBudget},
		{"dead letters of a type", "/dead-letters?type=invoice.render", pageBudget},
		{"error groups", "/failures", pageBudget},
		{"queues", "/queues", pageBudget},
		{"operations", "/operations", pageBudget},
		{"trash", "/trash", pageBudget},
		{"workers", "/workers", pageBudget},
		{"audit", "/audit", pageBudget},
		{"policies", "/policies", 0},
		{"search: many errors", q("/dead-letters", "rate_limited"), searchBudget},
		{"search: a rare number", q("/dead-letters", "captures/4711"), searchBudget},
		{"search: payloads", q("/dead-letters", "payload:miguel.hana"), searchBudget},
		{"search: finds nothing", q("/dead-letters", "zebra crossing"), searchBudget},
		{"search: with qualifiers", q("/dead-letters", "queue:sms type:receipt.* timeout"), searchBudget},
		{"search: qualifiers of nothing", q("/dead-letters", "queue:email type:receipt.* timeout"), searchBudget},
		{"search: of an error class", q("/jobs", "state:dead_letter error:sql.Deadlock"), searchBudget},
		{"search: all jobs", q("/jobs", "rate_limited"), searchBudget},
	}
}

// measuredLinks are pages to which a list leads.
func measuredLinks(b *testing.B, base string) []measured {
	return []measured{
		{"jobs, next page", link(b, base, "/jobs", "/jobs?after="), pageBudget},
		{"jobs of a queue, next page", link(b, base, "/jobs?queue=orders", "/jobs?after="), pageBudget},
		{"dead letters, next page", link(b, base, "/dead-letters", "/dead-letters?after="), pageBudget},
		{"a dead job", link(b, base, "/dead-letters", "/jobs/0"), pageBudget},
		{"an error group", link(b, base, "/failures", "/failures/"), pageBudget},
		{"a queue", link(b, base, "/queues", "/queues/"), pageBudget},
	}
}

// link is the first address on a page that begins so, or nothing.
func link(b *testing.B, base, page, prefix string) string {
	b.Helper()
	response, err := http.Get(base + page)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	root, err := html.Parse(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "href" && strings.HasPrefix(a.Val, prefix) {
				return a.Val
			}
		}
	}
	return ""
}

// BenchmarkPages prints what every page and search costs on the large database
// that REDRIVE_BENCH_DB names, over real HTTP, against its budget. It works on a
// copy. See make bench-pages.
func BenchmarkPages(b *testing.B) {
	large := os.Getenv("REDRIVE_BENCH_DB")
	if large == "" {
		b.Skip("REDRIVE_BENCH_DB names no database; make bench-pages makes one")
	}
	table := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	defer table.Flush()
	started := startHeld(b, copyOf(b, large))
	base := serveLarge(b, copyOf(b, large))
	fmt.Fprintf(table, "start with %d leases, until ready\t%v\t\t2s\t%.2f\n", leases, started.Round(time.Millisecond), started.Seconds()/2)
	fmt.Fprintf(table, "\t\t\t\t\n")
	fmt.Fprintf(table, "page\tp50\tp99\tbudget\tp99/budget\n")
	for _, m := range append(measuredLists(), measuredLinks(b, base)...) {
		if m.path == "" {
			b.Errorf("%s: no link leads there", m.name)
			continue
		}
		all, err := oneByOne(base+m.path, 200)
		if err != nil {
			b.Errorf("%s: %v", m.name, err)
			continue
		}
		p50, p99 := all[len(all)/2], all[len(all)*99/100]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.name, ms(p50), ms(p99), share(p99, m.budget))
	}
	for _, page := range []string{"/jobs", "/dead-letters"} {
		rate := allAtOnce(b, base+page, 32, 4000)
		fmt.Fprintf(table, "%s, 32 connections\t%.0f/s\t\t\n", page, rate)
	}
	replayAll(b, base, table)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	fmt.Fprintf(table, "memory of this process, browser side included\t%d MB\n", memory.Sys>>20)
}

// replayAll replays every dead job while another client enqueues, one job at a time.
func replayAll(b *testing.B, base string, table io.Writer) {
	b.Helper()
	type answer struct {
		Operation struct {
			ID    int64
			State operation.State
			Done  int64
		}
	}
	var o answer
	begin := time.Now()
	err := postJSON(base+"/api/v1/operations", `{"kind": "replay", "filter": "state:dead_letter", "rate": 0, "canary": 0, "start": true}`, &o)
	var others []time.Duration
	for err == nil && o.Operation.State != operation.Finished {
		at := time.Now()
		if err = postJSON(base+"/api/v1/jobs", `{"type": "nobody"}`, nil); err == nil {
			others = append(others, time.Since(at))
		}
		if len(others)%100 == 0 && err == nil {
			err = getJSON(fmt.Sprintf("%s/api/v1/operations/%d", base, o.Operation.ID), &o)
		}
	}
	if err != nil {
		b.Error(err)
		return
	}
	took := time.Since(begin)
	slices.Sort(others)
	p50, p99 := others[len(others)/2], others[len(others)*99/100]
	million := time.Duration(float64(took) * 1e6 / float64(o.Operation.Done))
	fmt.Fprintf(table, "replay of %d, for a million\t%v\t\t1m0s\t%.2f\n", o.Operation.Done, million.Round(time.Second), million.Seconds()/60)
	fmt.Fprintf(table, "meanwhile, others enqueue\t%s\t%s\t%s\n", ms(p50), ms(p99), share(p99, 50*time.Millisecond))
}

// postJSON posts to the API and reads the answer into it.
func postJSON(address, body string, answer any) error {
	response, err := http.Post(address, "application/json", strings.NewReader(body))
	return readAnswer(address, response, err, answer)
}

func getJSON(address string, answer any) error {
	response, err := http.Get(address)
	return readAnswer(address, response, err, answer)
}

func readAnswer(address string, response *http.Response, err error, answer any) error {
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s answers %s: %s", address, response.Status, text)
	}
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

// share is a budget, and how much of it was used.
func share(d, budget time.Duration) string {
	if budget == 0 {
		return "\t"
	}
	return fmt.Sprintf("%v\t%.2f", budget, float64(d)/float64(budget))
}

// copyOf is the database where the benchmark may change it.
func copyOf(b *testing.B, path string) string {
	b.Helper()
	to := filepath.Join(b.TempDir(), "large.db")
	if err := copyDatabase(path, to); err != nil {
		b.Fatal(err)
	}
	return to
}

// copyDatabase copies a database that no process has open, with its search index.
func copyDatabase(path, to string) error {
	return errors.Join(copyFile(path, to), copyFile(path+"-search", to+"-search"))
}

// copyFile copies a file onto the disk: what is still to be written would be
// measured.
func copyFile(path, to string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Sync(), file.Close())
}

// leases is how many jobs run when the process before ends.
const leases = 10_000

// holdLeases leaves jobs behind that a process held which was killed.
func holdLeases(b *testing.B, db string) {
	b.Helper()
	s, err := store.Open(b.Context(), store.Options{Database: sqlite.File{Path: db, Relaxed: true}})
	if err != nil {
		b.Fatal(err)
	}
	jobs := make([]job.Job, leases)
	for i := range jobs {
		jobs[i] = job.Job{Queue: "held", Type: "held", Payload: []byte("{}"), Timeout: time.Minute, Policy: retry.Default()}
	}
	now := time.Now()
	if _, err = s.Enqueue(b.Context(), now, jobs); err == nil {
		_, _, err = s.Exchange(b.Context(), nil, job.Claim{Worker: "killed", Now: now, Lease: time.Hour, Free: map[string]int{"held": leases}})
	}
	if err := errors.Join(err, s.Close()); err != nil {
		b.Fatal(err)
	}
}

// startHeld is how long the product takes to be ready after a process was killed
// that held jobs.
func startHeld(b *testing.B, db string) time.Duration {
	b.Helper()
	holdLeases(b, db)
	begin := time.Now()
	a := startLarge(b, db)
	took := time.Since(begin)
	if err := errors.Join(a.Stop(b.Context()), os.Remove(db)); err != nil {
		b.Fatal(err)
	}
	return took
}

// serveLarge runs the product on the database until the benchmark ends.
func serveLarge(b *testing.B, db string) (base string) {
	b.Helper()
	a := startLarge(b, db)
	b.Cleanup(func() {
		if err := a.Stop(b.Context()); err != nil {
			b.Error(err)
		}
	})
	return a.URL()
}

// startLarge runs the product on the database, with handlers that succeed.
func startLarge(b *testing.B, db string) *app.App {
	b.Helper()
	settings, err := config.Parse("redrive.yaml", []byte("retention: {completed: 0, cancelled: 0, discarded: 0}"))
	if err != nil {
		b.Fatal(err)
	}
	a, err := app.Start(b.Context(), app.Parts{
		Listen: "127.0.0.1:0", DB: db, Config: settings, Log: slog.New(slog.DiscardHandler),
		Handlers: func(typ string) (engine.Handler, bool) {
			return func(context.Context, job.Job) error { return nil }, typ != "nobody"
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	return a
}

// oneByOne asks n times and returns how long each answer took, the quickest
// first. Ten more go before, unmeasured.
func oneByOne(address string, n int) (all []time.Duration, err error) {
	for i := range n + 10 {
		begin := time.Now()
		if err := fetch(address); err != nil {
			return nil, err
		}
		if took := time.Since(begin); i >= 10 {
			all = append(all, took)
		}
	}
	slices.Sort(all)
	return all, nil
}

// fetch reads one answer to its end.
func fetch(address string) error {
	response, err := http.Get(address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, response.Status)
	}
	return nil
}

// allAtOnce asks n times over so many connections, and returns answers a second.
func allAtOnce(b *testing.B, address string, connections, n int) float64 {
	b.Helper()
	transport := http.DefaultTransport.(*http.Transport)
	transport.MaxIdleConnsPerHost = connections
	defer func() { transport.MaxIdleConnsPerHost = 0 }()
	var clients sync.WaitGroup
	begin := time.Now()
	for range connections {
		clients.Go(func() {
			for range n / connections {
				if err := fetch(address); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	return float64(n) / time.Since(begin).Seconds()
}
