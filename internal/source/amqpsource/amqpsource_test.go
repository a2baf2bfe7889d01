package amqpsource_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"redrive/internal/fingerprint"
	"redrive/internal/source"
	"redrive/internal/source/amqpsource"
	"redrive/internal/source/amqpsource/amqptest"
	"redrive/internal/source/preset"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { amqptest.Main(m) }

// bench is a broker with the messages of a real system, and the source that reads them.
type bench struct {
	*amqptest.Broker
	preset *preset.Preset
	queues []string
	values map[string]string
	origin *amqpsource.Origin
}

// newBench attaches queues, after it has loaded a file of messages below testdata.
func newBench(t *testing.T, name, file string, queues ...string) *bench {
	t.Helper()
	b := &bench{Broker: amqptest.Open(t), preset: preset.All()[name], queues: queues, values: map[string]string{}}
	if file != "" {
		b.Load("../testdata", file)
	}
	b.origin = b.open(b.URL())
	return b
}

func (b *bench) open(url string) *amqpsource.Origin {
	b.Helper()
	o, err := amqpsource.Open(b.Context(), url, b.preset, preset.Settings{Queues: b.queues, Values: b.values})
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
	return source.Act{ID: 1, Kind: kind, Mode: mode, State: source.Begun, Record: kept}
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

func (b *bench) finds(a source.Act, want source.State) {
	b.Helper()
	results, err := b.origin.Find(b.Context(), []source.Act{a})
	b.check(err)
	if len(results) != 1 || results[0].State != want {
		b.Fatalf("find %s: %+v, not %s", a.Key, results, want)
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

// dead makes a queue whose rejected messages come to another one, and lets messages die
// there.
func (b *bench) dead(work, deadLetters string, messages ...amqp.Publishing) {
	b.Helper()
	b.Queue(work, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": deadLetters})
	for _, m := range messages {
		b.Put(work, m)
	}
	b.reject(work)
}

// reject is a worker that rejects all messages of a queue. It returns when they have left.
func (b *bench) reject(work string) {
	b.Helper()
	for {
		d, ok, err := b.Get(work, false)
		b.check(err)
		if !ok {
			return
		}
		b.check(d.Reject(false))
	}
}

// until waits until so many messages are in a queue.
func (b *bench) until(queue string, messages int) {
	b.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		q, err := b.QueueDeclarePassive(queue, true, false, false, false, nil)
		b.check(err)
		if q.Messages == messages {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%d messages in %s, not %d", q.Messages, queue, messages)
		}
	}
}
