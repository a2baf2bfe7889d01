package redissource_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redrive/internal/fingerprint"
	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/redissource"
	"redrive/internal/source/redissource/redistest"
)

var update = flag.Bool("update", false, "write the golden files")

// bench is a Redis with the records of a real system, and the source that reads them.
type bench struct {
	*testing.T
	redis    *redis.Client
	preset   *preset.Preset
	settings preset.Settings
	origin   *redissource.Origin
}

// newBench starts a Redis with the records of files below testdata.
func newBench(t *testing.T, name string, files ...string) *bench {
	t.Helper()
	b := &bench{T: t, redis: redistest.Start(t), preset: preset.All()[name]}
	for _, f := range files {
		redistest.Load(t, b.redis, "../testdata", f)
	}
	b.origin = b.open()
	return b
}

func (b *bench) open() *redissource.Origin {
	b.Helper()
	o, err := redissource.Open(b.Context(), redistest.URL(b.redis), b.preset, b.settings)
	b.check(err)
	b.Cleanup(func() { b.check(o.Close()) })
	return o
}

func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// all are the records that a whole pass meets, in pages of so many.
func (b *bench) all(limit int) (all []source.Record) {
	b.Helper()
	for after, n := "", 0; n == 0 || after != ""; n++ {
		page, err := b.origin.Scan(b.Context(), after, limit)
		b.check(err)
		marks := make([]int64, len(page.Records))
		for i := range page.Records {
			marks[i] = page.Records[i].Version()
		}
		page.Complete(page.Records)
		for i := range page.Records {
			if page.Records[i].Version() != marks[i] {
				b.Errorf("%s counts as changed when it is read", page.Records[i].Key)
			}
		}
		all, after = append(all, page.Records...), page.Next
		if n > 1000 {
			b.Fatal("a pass does not end")
		}
	}
	return all
}

// record is the one whose thread ends with a text.
func (b *bench) record(lineage string) source.Record {
	b.Helper()
	for _, r := range b.all(100) {
		if strings.HasSuffix(r.Lineage, lineage) {
			return r
		}
	}
	b.Fatalf("no record %s", lineage)
	return source.Record{}
}

// act is an act on a record, as the ledger hands it over: with what the mirror keeps.
func act(kind source.Kind, mode source.Mode, r source.Record) source.Act {
	kept := source.Record{Key: r.Key, Lineage: r.Lineage, Place: r.Place, VersionToken: r.VersionToken, Raw: r.Raw, Queue: source.Queue(r.Queue, "shop")}
	return source.Act{ID: 1, Kind: kind, Mode: mode, Record: kept}
}

// does carries out an act and wants it to end in a state.
func (b *bench) does(a source.Act, want source.State) source.Result {
	b.Helper()
	results, err := b.origin.Act(b.Context(), []source.Act{a})
	b.check(err)
	if len(results) != 1 || results[0].ID != a.ID || results[0].State != want {
		b.Fatalf("%s %s of %s: %+v, not %s", a.Kind, a.Mode, a.Key, results, want)
	}
	return results[0]
}

func (b *bench) finds(r source.Record, want source.State) {
	b.Helper()
	results, err := b.origin.Find(b.Context(), []source.Act{act(source.Replay, source.Once, r)})
	b.check(err)
	if len(results) != 1 || results[0].State != want {
		b.Fatalf("find %s: %+v, not %s", r.Key, results, want)
	}
}

// golden compares a text with a golden file.
func (b *bench) golden(name, got string) {
	b.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		b.check(os.MkdirAll("testdata", 0o755))
		b.check(os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	b.check(err)
	if got != string(want) {
		b.Errorf("%s differs from what was got; run with -update and read the diff:\n%s", path, got)
	}
}

// recordsText writes records as a golden file has them.
func recordsText(records []source.Record) string {
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, "%s\n  thread %s, in %s, witness %q, %d raw bytes\n", r.Key, r.Lineage, r.Place, r.VersionToken, len(r.Raw))
		fmt.Fprintf(&b, "  %s in %s, %d of %d attempts, failed %s, created %s\n", r.Type, r.Queue, r.Attempts, r.Limit, instant(r.FailedAt), instant(r.CreatedAt))
		group := fingerprint.Of(r.Type, r.Error.Type, r.Error.Message, r.Trace).Fingerprint
		fmt.Fprintf(&b, "  error %q: %q\n  group %s\n  trace %.160q\n  payload %q\n  meta %s\n", r.Error.Type, r.Error.Message, group, r.Trace, r.Payload, r.Meta)
		for _, w := range r.Warnings {
			fmt.Fprintf(&b, "  warning: %s\n", w)
		}
	}
	return b.String()
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999Z")
}

// race asks for the same replay from twenty clients at once: one does it, and to the
// others the record is gone.
func (b *bench) race(r source.Record) {
	b.Helper()
	states := make(chan source.State, 20)
	var all sync.WaitGroup
	for range 20 {
		o := b.open()
		all.Go(func() {
			results, err := o.Act(b.Context(), []source.Act{act(source.Replay, source.Once, r)})
			if err != nil {
				b.Error(err)
				return
			}
			states <- results[0].State
		})
	}
	all.Wait()
	close(states)
	count := map[source.State]int{}
	for s := range states {
		count[s]++
	}
	if count[source.Done] != 1 || count[source.Gone] != 19 {
		b.Fatalf("twenty replays at once: %v", count)
	}
	b.does(act(source.Replay, source.Once, r), source.Gone)
}
