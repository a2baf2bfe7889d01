package amqpsource

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/source"
)

// death is what the header x-death says of a message.
type death struct {
	queue  string // in which it died
	reason string
	count  int // of deaths in that queue
	at     time.Time
}

// deathOf reads the last death of a message: the newest one that was not the end of its
// time to live, because queues that delay messages work that way; else the first one.
func deathOf(headers amqp.Table) (last death) {
	entries, _ := headers["x-death"].([]any) // the newest one first
	for _, e := range entries {
		entry, ok := e.(amqp.Table)
		if !ok {
			continue
		}

		d := death{count: headerCount(entry["count"])}

		d.queue, _ = entry["queue"].(string)
		d.reason, _ = entry["reason"].(string)
		if at, ok := entry["time"].(time.Time); ok && at.Unix() > 0 && at.Unix() < 1e11 {
			d.at = at.UTC()
		}

		if last.at.IsZero() {
			last.at = d.at
		}

		d.at = last.at // it came here when it died last
		last = d
		if d.reason != "expired" {
			break
		}
	}

	if last.queue == "" {
		last.queue, _ = headers["x-first-death-queue"].(string)
	}

	return last
}

// reasons are what RabbitMQ can say, in words.
var reasons = map[string]string{
	"rejected":       "a consumer of %s rejected it",
	"expired":        "its time to live ended in %s",
	"maxlen":         "%s was full",
	"delivery_limit": "%s delivered it too often",
}

// info tells a death as an error: the reason is all that RabbitMQ knows.
func (d death) info() job.ErrorInfo {
	text := reasons[d.reason]
	switch {
	case d.reason == "":
		return job.ErrorInfo{}
	case text == "":
		text = d.reason + " in %s"
	}

	return job.ErrorInfo{Type: d.reason, Message: fmt.Sprintf(text, source.ShownName(d.queue))}
}

// headerCount is a count in a header; 0 for what is none.
func headerCount(value any) int {
	n, err := strconv.ParseUint(fmt.Sprint(value), 10, 16)
	if err != nil {
		return 0
	}

	return int(n)
}

// target is the queue that a replay goes to; empty when nothing says.
func (o *Origin) target(queue string, headers amqp.Table) string {
	if to := o.values["target"]; to != "" {
		return to
	}

	if suffix := o.values["suffix"]; suffix != "" {
		return strings.TrimSuffix(queue, suffix)
	}

	return deathOf(headers).queue
}

// headers takes over what the preset says of the headers.
func (o *Origin) headers(r *source.Record, headers amqp.Table) {
	first := func(names []string) string {
		for _, name := range names {
			if text, ok := headers[name].(string); ok && text != "" {
				return text
			}
		}

		return ""
	}
	r.Type = first(o.at.Type)

	// An id is one of its place: messages of two queues can have the same.
	if id := first(o.at.Lineage); id != "" {
		r.Lineage = r.Place + "/" + id
	}

	if class, message := first(o.at.Class), first(o.at.Message); class != "" || message != "" {
		r.Error = job.ErrorInfo{Type: class, Message: message}
	}

	r.Trace = first(o.at.Trace)

	// The header counts the attempts before the last one.
	if n, ok := headers[o.at.Failures]; ok {
		r.Attempts = min(headerCount(n)+1, math.MaxUint16)
	}
}

// finish gives a record what a job must have, and warns of what a person should know.
func (o *Origin) finish(r *source.Record, queue string, m *message) {
	warn := func(when bool, sentence string) {
		if when {
			r.Warnings = append(r.Warnings, sentence)
		}
	}
	warn(o.target(queue, m.Headers) == "",
		"Nothing says from which queue it came, so it cannot be replayed. Name a queue under target in redrive.yaml.")
	warn(m.Headers["x-death"] == nil && o.values["suffix"] == "", "It has no header x-death: no dead-letter exchange brought it here.")
	warn(passed(m.Headers[o.at.Expires], time.Now()), "Its time has passed. A replay from here takes that limit away.")

	_, n := numberIn(r.Key)
	warn(n > 1, "Another message of the queue is the same to the byte.")

	if len(r.Payload) > job.MaxPayload {
		r.Payload = r.Payload[:job.MaxPayload]

		warn(true, "Only the beginning of its body is shown. A replay has all of it.")
	}
}

// volatile are headers that change while a message is in a queue.
var volatile = []string{"x-delivery-count", "x-acquired-count"}

// deadly are headers with which RabbitMQ says how a message died. An application that
// counts its deaths would take a replay for one of them.
func deadly(name string) bool {
	return name == "x-death" || strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-") ||
		strings.HasPrefix(name, "x-opt-") || slices.Contains(volatile, name)
}

// clean makes the headers for the next run, which shall not be before due unless that is
// zero. CC and BCC would send it to other queues too.
func (o *Origin) clean(headers amqp.Table, mode source.Mode, due time.Time) amqp.Table {
	next := amqp.Table{}
	maps.Copy(next, headers)
	maps.DeleteFunc(next, func(name string, _ any) bool {
		return deadly(name) || name == "CC" || name == "BCC" || slices.Contains(o.at.Drop, name)
	})

	// set changes only headers that the message has.
	set := func(values map[string]any) {
		for name, value := range values {
			if _, ok := next[name]; ok {
				next[name] = headerOf(value)
			}
		}
	}
	set(o.at.Set)

	if mode == source.Fresh {
		set(o.at.Fresh)
	}

	if !due.IsZero() {
		next[o.at.Due] = due.UTC().Format("2006-01-02T15:04:05.000000+00:00")
	}

	// A limit in the past, or before the next run is due, would end the job without a run.
	if now := time.Now(); passed(headers[o.at.Expires], now) || passed(headers[o.at.Expires], due) {
		next[o.at.Expires] = nil
	}

	return next
}

// headerOf is a value of a preset as a header has it.
func headerOf(value any) any {
	if n, ok := value.(uint64); ok {
		return int32(n)
	}
	return value
}

// passed reports whether a header is a time that is over.
func passed(value any, now time.Time) bool {
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && at.Before(now)
}

// digest names a message by all that does not change while it is in a queue.
func digest(d *amqp.Delivery) string {
	return digestOf(d, func(name string) bool { return slices.Contains(volatile, name) })
}

// steady names a message by all that does not change when it dies again.
func steady(d *amqp.Delivery) string {
	s := *d
	s.Exchange, s.RoutingKey = "", ""
	return digestOf(&s, deadly)
}

func digestOf(d *amqp.Delivery, without func(name string) bool) string {
	h := sha256.New()
	headers := maps.Clone(d.Headers)
	maps.DeleteFunc(headers, func(name string, _ any) bool { return without(name) })

	facts := properties(d)
	facts["headers"], facts["exchange"] = headers, d.Exchange
	facts["routing_key"], facts["user_id"] = d.RoutingKey, d.UserId
	fmt.Fprintf(h, "%s\n", encode(facts, math.MaxInt))
	h.Write(d.Body)

	return hex.EncodeToString(h.Sum(nil)[:16])
}

// metaOf is a JSON object of the properties and headers of a message, as far as it fits.
func metaOf(d *amqp.Delivery) []byte {
	facts := properties(d)
	maps.DeleteFunc(facts, func(_ string, value any) bool { return value == "" || value == uint8(0) })

	if d.Timestamp.IsZero() {
		delete(facts, "timestamp")
	}

	if len(d.Headers) > 0 {
		facts["headers"] = d.Headers
	}

	if meta := encode(facts, job.MaxDepth); len(meta) > len("{}") && len(meta) <= job.MaxMeta {
		return meta
	}

	return nil
}

func properties(d *amqp.Delivery) amqp.Table {
	return amqp.Table{
		"content_type": d.ContentType, "content_encoding": d.ContentEncoding, "delivery_mode": d.DeliveryMode, "priority": d.Priority,
		"correlation_id": d.CorrelationId, "reply_to": d.ReplyTo, "message_id": d.MessageId, "timestamp": d.Timestamp, "type": d.Type,
		"app_id": d.AppId,
	}
}

// encode writes a value of a header as JSON, the members of tables in the order of their
// names. Values nested deeper than so many levels are left out.
func encode(value any, levels int) []byte {
	switch v := value.(type) {
	case amqp.Table:
		return list('{', '}', slices.Sorted(maps.Keys(v)), levels, func(name string) []byte {
			return slices.Concat(rawjson.Quote(name), []byte(":"), encode(v[name], levels-1))
		})
	case []any:
		return list('[', ']', v, levels, func(e any) []byte { return encode(e, levels-1) })
	case time.Time:
		return rawjson.Quote(v.UTC().Format(time.RFC3339Nano))
	case []byte:
		return encode(string(v), levels)
	case string:
		if !utf8.ValidString(v) { // two of them must not look the same
			v = strconv.QuoteToASCII(v)
		}
		return rawjson.Quote(v)
	case amqp.Decimal:
		return rawjson.Quote(fmt.Sprintf("%de-%d", v.Value, v.Scale))
	}

	if text, err := json.Marshal(value); err == nil {
		return text
	}

	return rawjson.Quote(fmt.Sprint(value)) // a number that JSON does not have
}

// list writes the parts of a table or an array.
func list[E any](begin, end byte, parts []E, levels int, write func(E) []byte) []byte {
	if levels <= 0 {
		parts = nil
	}

	var b bytes.Buffer
	b.WriteByte(begin)

	for i, p := range parts {
		if i > 0 {
			b.WriteByte(',')
		}

		b.Write(write(p))
	}

	b.WriteByte(end)

	return b.Bytes()
}

// meant is the name that is shown as a text.
func meant(text string) string {
	if name, err := strconv.Unquote(text); err == nil && strings.HasPrefix(text, `"`) {
		return name
	}
	return text
}
