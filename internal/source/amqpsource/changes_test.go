package amqpsource_test

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"redrive/internal/source"
)

// changed are the systems of which a replay can be another one.
var changed = []struct {
	system  string // of systems
	payload string
	shown   string // in the body of the replay
}{
	{"rabbitmq", `{"n":7}`, `"{\"n\":7}"`},
	{"initphp", `{"n":7}`, `\"data\":{\"n\":7}`},
	{"babelqueue", `{"n":7}`, `\"data\":{\"n\":7}`},
	{"celery", `[[7], {}, {}]`, `"[[7], {}, {}]"`},
}

// newChanged is a bench with the record of a system.
func newChanged(t *testing.T, name string) (*bench, source.Record, string) {
	t.Helper()
	for _, s := range systems {
		if s.name == name {
			b := newBench(t, s.preset, s.file, s.queues...)
			return b, b.record(s.lineage), s.target
		}
	}
	t.Fatalf("there is no system %s", name)
	return nil, source.Record{}, ""
}

func TestReplay_HasAnotherPayload(t *testing.T) {
	for _, tt := range changed {
		t.Run(tt.system, func(t *testing.T) {
			b, r, target := newChanged(t, tt.system)
			a := act(source.Replay, source.Once, r)
			for _, wrong := range []string{`{"n":`, ""} {
				a.Payload = []byte(wrong)
				b.does(a, source.Refused)
			}
			a.Payload = []byte(tt.payload)
			b.does(a, source.Done)
			if got := b.Dump(target); strings.Count(got, "body ") != 1 || !strings.Contains(got, tt.shown) {
				t.Errorf("in %s: %s", target, got)
			}
			b.finds(a, source.Gone)
		})
	}
}

func TestReplay_LeavesABodyThatIsNotJSONAsItIs(t *testing.T) {
	b := newOrders(t, order("1"))
	a := act(source.Replay, source.Once, b.record("/1"))
	a.Payload = []byte(`{}`)
	if r := b.does(a, source.Refused); !strings.Contains(r.Why, "not JSON") {
		t.Error(r.Why)
	}
	b.finds(act(source.Discard, "", b.record("/1")), source.Asked)
}

// Celery has a header for the time before which a task does not run. AMQP has none.
func TestReplay_WaitsForATimeToCome(t *testing.T) {
	due := time.Date(2030, 1, 2, 3, 4, 5, 60000000, time.FixedZone("", 3600))
	for _, tt := range changed {
		t.Run(tt.system, func(t *testing.T) {
			b, r, target := newChanged(t, tt.system)
			a := act(source.Replay, source.Once, r)
			a.Due = due
			if tt.system != "celery" {
				b.does(a, source.Refused)
				return
			}
			b.does(a, source.Done)
			if got := b.Dump(target); !strings.Contains(got, `"eta":"2030-01-02T02:04:05.060000+00:00"`) {
				t.Error(got)
			}
		})
	}
}

// A task that would have expired when its delay is over, and one without headers.
func TestReplay_ThatWaitsOutlivesItsMessage(t *testing.T) {
	b := newBench(t, "celery-amqp", "", "cel.dlq")
	b.values["target"] = "cel"
	b.origin = b.open(b.URL())
	b.Queue("cel.dlq", nil)
	b.Queue("cel", nil)
	due := time.Now().Add(2 * time.Hour)
	b.Put("cel.dlq", amqp.Publishing{MessageId: "1", Body: []byte(`[[],{},{}]`)})
	b.Put("cel.dlq", amqp.Publishing{MessageId: "2", Body: []byte(`[[],{},{}]`), Headers: amqp.Table{
		"task": "charge", "id": "c2", "eta": nil, "expires": due.Add(-time.Hour).UTC().Format(time.RFC3339),
	}})
	for _, r := range b.all(100) {
		a := act(source.Replay, source.Once, r)
		a.Due = due
		b.does(a, source.Done)
	}
	for _, m := range b.Take("cel") {
		if eta, _ := m.Headers["eta"].(string); !strings.HasPrefix(eta, due.UTC().Format("2006-01-02T15:04:05")) || m.Headers["expires"] != nil {
			t.Errorf("%s has the headers %v", m.MessageId, m.Headers)
		}
	}
}

// A new message has another id, in its envelope and beside it, so that a guard against
// repeats lets it pass.
func TestReplay_AsANewMessage(t *testing.T) {
	for _, tt := range changed {
		t.Run(tt.system, func(t *testing.T) {
			b, r, target := newChanged(t, tt.system)
			a := act(source.Replay, source.New, r)
			if tt.system == "rabbitmq" || tt.system == "celery" {
				b.does(a, source.Refused)
				return
			}
			b.does(a, source.Done)
			before := r.Lineage[strings.LastIndexByte(r.Lineage, '/')+1:]
			came := b.Take(target)
			if len(came) != 1 {
				t.Fatalf("%d messages came", len(came))
			}
			if id, body := came[0].MessageId, string(came[0].Body); id == before || strings.Contains(body, before) || !strings.Contains(body, `"id":"`+id) {
				t.Errorf("the message %q has the id %s; the old one had %s", body, id, before)
			}
		})
	}
}
