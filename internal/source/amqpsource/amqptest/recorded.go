package amqptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Load makes the queues of a file of genuine messages, and those from which they came,
// and puts the messages there.
func (b *Broker) Load(path ...string) {
	b.Helper()

	queues := Read(b.T, path...)
	made := map[string]bool{}
	for name, messages := range queues {
		b.Queue(name, nil)

		made[name] = true
		for _, m := range messages {
			b.Put(name, m)
		}
	}

	for name, messages := range queues {
		for _, from := range origins(name, messages) {
			if !made[from] {
				b.Queue(from, nil)
				made[from] = true
			}
		}
	}
}

// origins are the queues from which messages came.
func origins(queue string, messages []amqp.Publishing) (all []string) {
	for _, suffix := range []string{".failed", ".dlq"} {
		if name, ok := strings.CutSuffix(queue, suffix); ok {
			all = append(all, name)
		}
	}

	for _, m := range messages {
		if name, ok := m.Headers["x-first-death-queue"].(string); ok {
			all = append(all, name)
		}
	}

	return all
}

// Dump takes all messages out of queues and writes them as text.
func (b *Broker) Dump(queues ...string) string {
	b.Helper()

	var text strings.Builder
	for _, q := range queues {
		for _, d := range b.Take(q) {
			headers, err := json.Marshal(d.Headers)
			b.check(err)
			fmt.Fprintf(&text, "%s: %s %s mode %d priority %d correlation %q reply %q id %q type %q app %q at %d expiration %q user %q\n  headers %s\n  body %q\n",
				q, d.ContentType, d.ContentEncoding, d.DeliveryMode, d.Priority, d.CorrelationId, d.ReplyTo, d.MessageId, d.Type, d.AppId,
				d.Timestamp.Unix(), d.Expiration, d.UserId, headers, d.Body)
		}
	}

	return text.String()
}

// Read reads a file of genuine messages, by their queues. The files were written by
// clients in several languages, each with its own names.
func Read(t testing.TB, path ...string) map[string][]amqp.Publishing {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	var file map[string]any
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}

	all := map[string][]amqp.Publishing{}
	for queue, content := range file {
		// The content of a queue is a list of messages, or an object that has this list.
		if object, ok := content.(map[string]any); ok {
			content = object["messages"]
		}

		messages, _ := content.([]any)
		for _, m := range messages {
			all[queue] = append(all[queue], publishing(m.(map[string]any)))
		}
	}

	return all
}

func publishing(message map[string]any) amqp.Publishing {
	properties, ok := message["properties"].(map[string]any)
	if !ok {
		properties = message
	}

	headers, ok := message["headers"].(map[string]any)
	if !ok {
		headers, _ = properties["application_headers"].(map[string]any)
	}

	text := func(name string) string {
		s, _ := properties[name].(string)
		return s
	}
	number := func(name string) int64 {
		n, _ := properties[name].(json.Number)
		value, _ := n.Int64() // 0 when there is none
		return value
	}
	body, _ := message["body"].(string)

	p := amqp.Publishing{
		Headers: Table(headers), Body: []byte(body), ContentType: text("content_type"), ContentEncoding: text("content_encoding"),
		DeliveryMode: uint8(number("delivery_mode")), Priority: uint8(number("priority")), CorrelationId: text("correlation_id"),
		ReplyTo: text("reply_to"), MessageId: text("message_id"), Type: text("type"), AppId: text("app_id"),
	}
	if at := number("timestamp"); at > 0 {
		p.Timestamp = time.Unix(at, 0)
	}

	return p
}

// Table makes headers of a JSON object: its whole numbers are integers, and an object of
// the one member timestamp is a time.
func Table(object map[string]any) amqp.Table {
	if object == nil {
		return nil
	}

	t := amqp.Table{}
	for name, value := range object {
		t[name] = valueOf(value)
	}

	return t
}

func valueOf(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if text, ok := v["timestamp"].(string); ok && len(v) == 1 {
			if at, err := time.Parse(time.RFC3339, text); err == nil {
				return at
			}
		}

		return Table(v)
	case []any:
		v = slices.Clone(v)
		for i := range v {
			v[i] = valueOf(v[i])
		}

		return v
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}

		f, _ := v.Float64() // infinite when it is too large

		return f
	}

	return value
}
