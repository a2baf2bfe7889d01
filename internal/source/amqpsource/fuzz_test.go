package amqpsource

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/source"
	"redrive/internal/source/amqpsource/amqptest"
	"redrive/internal/source/codec"
	"redrive/internal/source/preset"
)

// FuzzMessage reads messages of any headers and bodies with each preset, and makes those
// of the next run.
func FuzzMessage(f *testing.F) {
	for _, file := range []string{"rabbitmq-dlx/amqp-dump.json", "celery/amqp-dlq-dump.json", "initphp-queue/amqp-dump.json", "babelqueue-go/amqp-dump.json"} {
		for queue, messages := range amqptest.Read(f, "../testdata", file) {
			for _, m := range messages {
				f.Add(encode(m.Headers, job.MaxDepth), m.Body, queue, m.Type, m.MessageId, m.Timestamp.Unix())
			}
		}
	}
	f.Add([]byte(`{"x-death":[null,{"count":-1,"time":{"timestamp":"9999-01-01T00:00:00Z"}},{"reason":"%s","queue":"\u0000"}],"retries":1e99}`), []byte{0xff}, "#1", "", "", int64(-1))
	origins := map[string]*Origin{}
	for name, p := range preset.All() {
		if p.AMQP != nil {
			c, _ := codec.Get(p.Codec)
			origins[name] = &Origin{preset: p, at: p.AMQP, values: maps.Clone(p.Values), codec: c}
		}
	}
	f.Fuzz(func(t *testing.T, headers, body []byte, queue, typ, id string, at int64) {
		var object map[string]any
		decoder := json.NewDecoder(bytes.NewReader(headers))
		decoder.UseNumber()
		if decoder.Decode(&object) != nil {
			object = map[string]any{"bytes": headers, "text": string(headers)}
		}
		d := amqp.Delivery{Headers: amqptest.Table(object), Body: bytes.Clone(body), RoutingKey: queue, Type: typ, MessageId: id, Timestamp: time.Unix(at, 0)}
		key := digest(&d)
		for name, o := range origins {
			readAndClean(t, name, o, queue, &message{Delivery: d, key: source.ShownName(queue) + "/" + key})
		}
		if digest(&d) != key || !bytes.Equal(d.Body, body) {
			t.Fatal("reading has changed the message")
		}
	})
}

// readAndClean fails when something in the record of a message cannot be kept, or when
// the next run is another job.
func readAndClean(t *testing.T, name string, o *Origin, queue string, m *message) {
	r := o.record(queue, m)
	if r.Attempts < 0 || r.Attempts > 1<<16 || r.Type == "" || r.Lineage == "" || r.Raw != nil || len(r.Payload) > job.MaxPayload {
		t.Fatalf("%s: %+v", name, r)
	}
	if r.Meta != nil && (len(r.Meta) > job.MaxMeta || rawjson.Check(r.Meta, job.MaxDepth+1) != "" || rawjson.Kind(r.Meta) != '{') {
		t.Fatalf("%s: meta %q", name, r.Meta)
	}
	for _, at := range []time.Time{r.FailedAt, r.CreatedAt} {
		if !at.IsZero() && (at.Year() < 1970 || at.Year() > 9999) {
			t.Fatalf("%s: at %s", name, at)
		}
	}
	if place, n := numberIn(r.Key); n != 1 || !strings.HasPrefix(place, r.Place) || meant(r.Place) != queue || !utf8.ValidString(r.Place) {
		t.Fatalf("%s: %q in %q, number %d", name, r.Key, r.Place, n)
	}
	for _, headers := range []amqp.Table{m.Headers, nil} {
		o.clean(headers, source.Once, time.Now())
	}
	target, p, err := o.next(queue, m, source.Act{Kind: source.Replay, Mode: source.Fresh})
	if err != nil {
		return
	}
	for header := range p.Headers {
		if deadly(header) || header == "CC" {
			t.Fatalf("%s: the header %s goes to %s", name, header, target)
		}
	}
	again := o.record(queue, &message{Delivery: amqp.Delivery{Headers: p.Headers, Body: p.Body, Type: p.Type, MessageId: p.MessageId}, key: "k"})
	if again.Type != r.Type || m.MessageId != "" && again.Lineage != r.Lineage {
		t.Fatalf("%s: the next run is %s of %s, not %s of %s", name, again.Type, again.Lineage, r.Type, r.Lineage)
	}
}
