package amqpsource_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"redrive/internal/source"
	"redrive/internal/source/amqpsource"
	"redrive/internal/source/amqpsource/amqptest"
	"redrive/internal/source/preset"
)

// newOrders attaches the queue orders.dlq, to which what a worker of orders rejects comes.
func newOrders(t *testing.T, messages ...amqp.Publishing) *bench {
	t.Helper()
	b := newBench(t, "rabbitmq", "", "orders.dlq")
	b.Queue("orders.dlq", nil)
	b.dead("orders", "orders.dlq", messages...)
	b.until("orders.dlq", len(messages))
	return b
}

// order is a message of the shop.
func order(id string) amqp.Publishing {
	return amqp.Publishing{MessageId: id, Type: "order.created", Body: []byte("order " + id), DeliveryMode: amqp.Persistent}
}

// bodies are those of messages.
func bodies(all []amqp.Delivery) (texts []string) {
	for _, d := range all {
		texts = append(texts, string(d.Body))
	}
	return texts
}

func TestOrigin_AReplayThatDiesAgainKeepsItsLineage(t *testing.T) {
	b := newOrders(t, order("1"), order("2"))
	r := b.record("/1")
	if r.Queue != "orders" || r.Error.Type != "rejected" || r.FailedAt.IsZero() || r.Attempts != 1 || len(r.Warnings) > 0 {
		t.Errorf("%+v", r)
	}
	for next := r.FailedAt.Add(time.Second); time.Now().Before(next); time.Sleep(10 * time.Millisecond) {
		// The clock of RabbitMQ shows seconds.
	}
	b.does(act(source.Replay, source.Once, r), source.Done)
	b.reject("orders")
	b.until("orders.dlq", 2)
	again := b.record("/1")
	if again.Key == r.Key || again.Attempts != 1 || !again.FailedAt.After(r.FailedAt) {
		t.Errorf("%+v, and before %+v", again, r)
	}
	b.does(act(source.Replay, source.Once, r), source.Gone)
}

// A queue that delays messages lets them expire. They did not die there.
func TestOrigin_WhatExpiredOnItsWayDiedWhereItWasRejected(t *testing.T) {
	b := newOrders(t)
	b.Queue("later", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders", "x-message-ttl": 1})
	b.Put("later", order("1"))
	b.until("orders", 1)
	b.reject("orders")
	b.until("orders.dlq", 1)
	if r := b.record("/1"); r.Queue != "orders" || r.Error.Message != "a consumer of orders rejected it" {
		t.Errorf("%+v", r)
	}
}

func TestOrigin_RefusesQueuesThatALookHurts(t *testing.T) {
	for _, tt := range []struct {
		name, queue string
		args        amqp.Table
		consumed    bool
		want        string
	}{
		{"a quorum queue", "quorum.dlq", amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": 1}, false, "is not a classic queue"},
		{"a stream", "stream.dlq", amqp.Table{"x-queue-type": "stream"}, false, "is not a classic queue"},
		{"a queue with a consumer", "work", nil, true, "has consumers (1)"},
		{"a queue that there is not", "", nil, false, "no queue 'nowhere.dlq'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &bench{Broker: amqptest.Open(t), preset: preset.All()["rabbitmq"], queues: []string{"nowhere.dlq"}}
			if tt.queue != "" {
				b.queues = []string{tt.queue}
				b.Queue(tt.queue, tt.args)
				b.Put(tt.queue, order("1"))
			}
			if tt.consumed {
				b.check(b.Qos(1, 0, false))
				_, err := b.Consume(tt.queue, "", false, false, false, false, nil)
				b.check(err)
				b.until(tt.queue, 0)
			}
			_, err := b.open(b.URL()).Check(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
			if tt.args["x-queue-type"] == "quorum" {
				if all := b.Take(tt.queue); len(all) != 1 || all[0].Redelivered {
					t.Errorf("it was looked at: %+v", all)
				}
			}
		})
	}
}

func TestOrigin_AQuorumQueueThatIsAllowed(t *testing.T) {
	b := newBench(t, "rabbitmq", "", "quorum.dlq")
	b.values["quorum"] = preset.Allow
	b.origin = b.open(b.URL())
	b.Queue("quorum.dlq", amqp.Table{"x-queue-type": "quorum"})
	b.dead("orders", "quorum.dlq", order("1"), order("2"), order("3"))
	b.until("quorum.dlq", 3)
	if _, err := b.origin.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := b.all(10)
	r := b.record("/2")
	if r.Key != before[1].Key {
		t.Errorf("a look has changed its name: %s and %s", before[1].Key, r.Key)
	}
	b.does(act(source.Replay, source.Once, r), source.Done)
	b.until("quorum.dlq", 2)
	if got := bodies(b.Take("orders")); !slices.Equal(got, []string{"order 2"}) {
		t.Errorf("%q came to work", got)
	}
	if got := b.all(10); len(got) != 2 || string(got[0].Payload) != "order 3" {
		t.Errorf("%q is left", recordsText(got))
	}
	if got := bodies(b.Take("quorum.dlq")); !slices.Equal(got, []string{"order 1", "order 3"}) {
		t.Errorf("%q is left", got)
	}
}

// A replay that RabbitMQ does not take changes nothing.
func TestOrigin_AReplayThatNoQueueTakesIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name, target, want string
		make               func(b *bench)
		user               string
	}{
		{"no queue", "nowhere", "there is no queue nowhere", func(*bench) {}, "guest"},
		{"a full queue", "full", "did not take the message", func(b *bench) {
			b.Queue("full", amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
			b.Put("full", order("0"))
		}, "guest"},
		{"the same queue", "orders.dlq", "died in this very queue", func(*bench) {}, "guest"},
		{"no right", "", "ACCESS_REFUSED", func(*bench) {}, amqptest.Reader},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newOrders(t, order("1"), order("2"))
			tt.make(b)
			b.values["target"] = tt.target
			b.origin = b.open(amqptest.URL(b.Address, tt.user))
			before := b.all(10)
			r := b.does(act(source.Replay, source.Once, b.record("/1")), source.Refused)
			if !strings.Contains(r.Why, tt.want) {
				t.Errorf("%s", r.Why)
			}
			if after := b.all(10); recordsText(after) != recordsText(before) {
				t.Errorf("the queue has changed: %s", recordsText(after))
			}
			report, err := b.origin.Check(t.Context())
			b.check(err)
			if may := slices.Contains(report.May, source.Replay); may != (tt.user == "guest") {
				t.Errorf("may %v, %q", report.May, report.Warnings)
			}
			b.does(act(source.Discard, "", b.record("/1")), source.Done)
		})
	}
}

func TestOrigin_WithoutAnOriginItIsRefused(t *testing.T) {
	b := newOrders(t)
	b.Put("orders.dlq", order("1"))
	r := b.record("/1")
	if len(r.Warnings) != 2 {
		t.Errorf("%q", r.Warnings)
	}
	b.does(act(source.Replay, source.Once, r), source.Refused)
	b.until("orders.dlq", 1)
}

func TestOrigin_MessagesThatAreTheSameToTheByteAreTold(t *testing.T) {
	b := newOrders(t)
	same := order("1")
	same.Headers = amqp.Table{"x-first-death-queue": "orders"}
	for range 3 {
		b.Put("orders.dlq", same)
	}
	key, _, _ := strings.Cut(b.record("/1").Key, "#")
	keys := func() (all []string) {
		for _, r := range b.all(10) {
			all = append(all, strings.TrimPrefix(r.Key, key))
		}
		return all
	}
	if got := keys(); !slices.Equal(got, []string{"#3", "#2", ""}) {
		t.Fatalf("%q", got)
	}
	first := act(source.Replay, source.Once, source.Record{Key: key, Place: "orders.dlq"})
	second := first
	second.Key += "#2"
	b.does(first, source.Done)
	if got := keys(); !slices.Equal(got, []string{"#3", "#2"}) {
		t.Errorf("without the first one, %q", got)
	}
	b.does(first, source.Gone)
	b.finds(first, source.Gone)
	b.does(second, source.Done)
	if got := keys(); !slices.Equal(got, []string{"#3"}) {
		t.Errorf("without the second one, %q", got)
	}
	if got := b.Take("orders"); len(got) != 2 {
		t.Errorf("%d messages came to work", len(got))
	}
}

func TestOrigin_TwoActsOnOneMessageAreOne(t *testing.T) {
	b := newOrders(t, order("1"))
	a := act(source.Replay, source.Once, b.record("/1"))
	twice := []source.Act{a, a}
	twice[1].ID = 2
	results, err := b.origin.Act(t.Context(), twice)
	b.check(err)
	if len(results) != 2 || results[0].State != source.Gone || results[1].State != source.Done {
		t.Errorf("%+v", results)
	}
	if got := b.Take("orders"); len(got) != 1 {
		t.Errorf("%d messages came to work", len(got))
	}
}

func TestOrigin_SeesTheFirstThousand(t *testing.T) {
	var many []amqp.Publishing
	for i := range 1010 {
		many = append(many, order(fmt.Sprint(i)))
	}
	b := newOrders(t, many...)
	all := b.all(300)
	if len(all) != 1000 {
		t.Fatalf("%d records", len(all))
	}
	b.until("orders.dlq", 1010)
	unseen := act(source.Discard, "", source.Record{Key: "orders.dlq/x", Place: "orders.dlq"})
	b.does(unseen, source.Refused)
	b.finds(unseen, source.Unknown)
	b.until("orders.dlq", 1010)
	report, err := b.origin.Check(t.Context())
	b.check(err)
	if !slices.Contains(report.Warnings, "Only the first 1000 messages of orders.dlq are seen.") {
		t.Errorf("%q", report.Warnings)
	}
	for i, body := range bodies(b.Take("orders.dlq")) {
		if body != fmt.Sprint("order ", i) {
			t.Fatalf("%q is in place %d", body, i)
		}
	}
}

func TestOrigin_EndsWithItsContext(t *testing.T) {
	b := newOrders(t, order("1"))
	ended, end := context.WithCancel(t.Context())
	end()
	for name, ask := range map[string]func(o *amqpsource.Origin) error{
		"check": func(o *amqpsource.Origin) error { _, err := o.Check(ended); return err },
		"scan":  func(o *amqpsource.Origin) error { _, err := o.Scan(ended, "", 10); return err },
		"find": func(o *amqpsource.Origin) error {
			_, err := o.Find(ended, []source.Act{{Record: source.Record{Place: "orders.dlq"}}})
			return err
		},
	} {
		if err := ask(b.open(b.URL())); err == nil {
			t.Errorf("%s goes on", name)
		}
	}
}

// What would send a copy elsewhere, or is no longer true, does not travel with a replay.
func TestOrigin_LeavesHeadersOutOfAReplay(t *testing.T) {
	o := order("1")
	o.Headers = amqp.Table{"CC": []any{"elsewhere"}, "n": int8(1), "list": []any{int16(1), "x", amqp.Table{"a": nil}}, "x-opt-a": 1, "at": time.Unix(1, 0)}
	o.Expiration, o.UserId, o.ReplyTo = "600000", "guest", "answers"
	b := newOrders(t)
	b.Queue("elsewhere", nil)
	b.Put("orders", o)
	b.reject("orders")
	b.until("orders.dlq", 1)
	b.Take("elsewhere")
	b.does(act(source.Replay, source.Once, b.record("/1")), source.Done)
	b.golden("headers", b.Dump("orders", "elsewhere"))
}

// Celery would drop a task whose time has passed, and Redrive never unpacks a pickle.
func TestCelery_ATaskThatHasExpired(t *testing.T) {
	b := newBench(t, "celery-amqp", "", "cel.dlq")
	b.Queue("cel.dlq", nil)
	b.dead("cel", "cel.dlq", amqp.Publishing{
		ContentType: "application/x-python-serialize", Body: []byte("\x80\x02c__builtin__\neval\n\x85R."),
		Headers: amqp.Table{"task": "shop.charge", "id": "c1", "retries": 3, "expires": "2020-01-01T00:00:00+00:00", "argsrepr": "(1,)"},
	})
	b.until("cel.dlq", 1)
	r := b.record("/c1")
	if r.Type != "shop.charge" || r.Attempts != 4 || len(r.Warnings) != 1 || !strings.HasPrefix(string(r.Payload), "\x80\x02c__builtin__") {
		t.Errorf("%+v", r)
	}
	b.does(act(source.Replay, source.Fresh, r), source.Done)
	b.golden("celery-expired", b.Dump("cel"))
}
