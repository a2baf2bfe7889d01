package amqpsource_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"redrive/internal/source"
)

// systems are those that can be attached, each with genuine messages.
var systems = []struct {
	name, preset, file string
	queues             []string
	lineage            string // of the message that is replayed
	target             string // that it comes to
	from               string // where it was
	modes              []source.Mode
}{
	{"rabbitmq", "rabbitmq", "rabbitmq-dlx/amqp-dump.json", []string{"orders.dlq", "orders-q.dlq", "ttl.dlq", "max.dlq"}, "/m2", "orders", "orders.dlq", both},
	{"initphp", "initphp-amqp", "initphp-queue/amqp-dump.json",
		[]string{"orders.failed", "q2.failed", "q3.failed", "q4.failed", "q5.failed", "q6.failed", "q7.failed"},
		"orders/09539cbf-2e71-4a2b-9f49-cb4668a50eb6", "orders", "orders.failed", both},
	{"babelqueue", "babelqueue-amqp", "babelqueue-go/amqp-dump.json",
		[]string{"orders.dlq", "q2.dlq", "q3.dlq", "q4.dlq", "q6.dlq", "q7.dlq"},
		"orders/2dfef806-45e1-451c-a28c-fe6773f908f4", "orders", "orders.dlq", both},
	{"celery", "celery-amqp", "celery/amqp-dlq-dump.json", []string{"cel.dlq"}, "9ca46b5e-0723-46bb-8424-879e8b50db0f", "cel", "cel.dlq", []source.Mode{source.Once}},
	{"celery-fresh", "celery-amqp", "celery/amqp-dlq-dump.json", []string{"cel.dlq"}, "9ca46b5e-0723-46bb-8424-879e8b50db0f", "cel", "cel.dlq", []source.Mode{source.Fresh}},
}

var both = []source.Mode{source.Once, source.Fresh} // which do the same

func TestSystems_AreShown(t *testing.T) {
	for _, s := range systems {
		t.Run(s.name, func(t *testing.T) {
			b := newBench(t, s.preset, s.file, s.queues...)
			all := b.all(100)
			b.golden(s.name, recordsText(all))
			if again := recordsText(b.all(2)); again != recordsText(all) {
				t.Errorf("in pages of two, the second look has\n%s", again)
			}
		})
	}
}

func TestSystems_ReplayOneMessageAndLeaveTheOthers(t *testing.T) {
	for _, s := range systems {
		for _, mode := range s.modes {
			t.Run(s.name+" "+string(mode), func(t *testing.T) {
				b := newBench(t, s.preset, s.file, s.queues...)
				before := b.all(100)
				r := b.record(s.lineage)
				b.finds(act(source.Discard, "", r), source.Asked)
				b.does(act(source.Replay, mode, r), source.Done)
				b.finds(act(source.Replay, mode, r), source.Gone)
				b.does(act(source.Replay, mode, r), source.Gone)
				b.golden(s.name+"-replayed", b.Dump(s.target))
				if after, want := recordsText(b.all(100)), strings.Replace(recordsText(before), recordsText([]source.Record{r}), "", 1); after != want {
					t.Errorf("what stays has changed:\n%s", after)
				}
			})
		}
	}
}

// Every message of every system is replayed in each mode: the content of the queues to
// which they go is a golden.
func TestSystems_ReplayEveryMessage(t *testing.T) {
	for _, s := range systems {
		for _, mode := range s.modes {
			t.Run(s.name+" "+string(mode), func(t *testing.T) {
				b := newBench(t, s.preset, s.file, s.queues...)
				var text string
				var targets []string
				for _, r := range b.all(100) {
					results, err := b.origin.Act(t.Context(), []source.Act{act(source.Replay, mode, r)})
					b.check(err)
					text += strings.TrimSpace(fmt.Sprintf("%s: %s %s", r.Key, results[0].State, results[0].Why)) + "\n"
					if results[0].State == source.Done {
						targets = append(targets, r.Queue)
					}
				}
				slices.Sort(targets)
				b.golden("every-"+s.name, text+b.Dump(slices.Compact(targets)...))
			})
		}
	}
}

func TestSystems_DiscardTakesOneMessageAway(t *testing.T) {
	for _, s := range systems {
		t.Run(s.name, func(t *testing.T) {
			b := newBench(t, s.preset, s.file, s.queues...)
			n, r := len(b.all(100)), b.record(s.lineage)
			b.does(act(source.Discard, "", r), source.Done)
			b.does(act(source.Discard, "", r), source.Gone)
			if left, came := len(b.all(100)), b.Take(s.target); left != n-1 || len(came) != 0 {
				t.Errorf("%d of %d messages are left, and %d came to work", left, n, len(came))
			}
		})
	}
}
