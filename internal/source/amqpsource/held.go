package amqpsource

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"redrive/internal/source"
	"redrive/internal/source/preset"
)

// held are messages that were taken out of a queue and not acknowledged, in their order.
type held struct {
	channel  *amqp.Channel
	queue    string
	messages []message
	whole    bool // the queue has no others
	alone    bool // nor has an earlier connection
}

// message is one of them.
type message struct {
	amqp.Delivery
	key   string // of its record
	large int64  // bytes of its body, which is not held because it has too many; else 0
	acked bool
}

// hold takes messages out of a queue until they are enough, there are no more, or a look
// would cost too much. They have to be released.
func (o *Origin) hold(ctx context.Context, queue string, enough func(key string) bool) (*held, error) {
	channel, err := o.open()
	if err != nil {
		return nil, err
	}

	h := &held{channel: channel, queue: queue, alone: o.alone()}
	if o.values["quorum"] == preset.Allow {
		// A quorum queue puts messages behind all that were put back before, so that it keeps
		// their order only if all are held. And it counts what was just held as consumers.
		enough = func(string) bool { return false }
	} else if _, err := idle(channel, queue); err != nil {
		return nil, err
	}

	o.line.Renew()
	numbers := o.copies.count(queue)

	end := inTime(ctx)
	size, sent, done := 0, 0, false
	for !done && len(h.messages) < maxHeld && size < maxHeldBytes/len(o.queues) && sent < maxSentBytes && time.Now().Before(end) {
		d, more, err := channel.Get(queue, false)
		if err != nil { // the channel is closed, and what was held is back
			return nil, fmt.Errorf("the queue %s: %w", source.ShownName(queue), err)
		}

		h.whole = !more
		if h.whole {
			numbers.end()
			break
		}

		m := message{Delivery: d, key: numbers.name(digest(&d))}
		sent += len(m.Body)
		if len(m.Body) > source.MaxRecord {
			m.large, m.Body = int64(len(m.Body)), nil
		}

		// sent counts what came over the line, and size what is kept.
		size += len(m.Body)
		h.messages = append(h.messages, m)
		done = enough(m.key)
	}

	return h, nil
}

// open returns the channel on which messages are held. There is one for all looks, so that
// RabbitMQ carries out what it is told in that order: a quorum queue can take its time to
// put messages back.
func (o *Origin) open() (channel *amqp.Channel, err error) {
	if o.looks == nil || o.looks.IsClosed() {
		o.looks, err = o.conn.Channel()
	}
	return o.looks, err
}

// find is the message of a key; nil when it is not held.
func (h *held) find(key string) *message {
	for i := range h.messages {
		if h.messages[i].key == key {
			return &h.messages[i]
		}
	}

	return nil
}

// release puts back what was not acknowledged. When it returns without an error, RabbitMQ
// has received that, and all acknowledgements before.
func (h *held) release() error {
	for _, m := range slices.Backward(h.messages) {
		if !m.acked { // the last one that is still held: RabbitMQ knows no other tag
			const before, requeue = true, true
			if err := m.Nack(before, requeue); err != nil {
				return err
			}

			break
		}
	}

	_, err := h.channel.QueueDeclarePassive(h.queue, false, false, false, false, nil) // it answers after what came before

	return err
}

// copies knows which of several messages that are the same to the byte were taken away
// here, so that those which stay keep their names. It forgets when the connection ends.
type copies map[string]map[int]bool

// count begins to name the messages of a queue, from its first one.
func (c copies) count(queue string) *numbers {
	return &numbers{copies: c, prefix: source.ShownName(queue) + "/", last: map[string]int{}}
}

// took notes that the message of a key is no more.
func (c copies) took(key string) {
	name, n := numberIn(key)
	if c[name] == nil {
		c[name] = map[int]bool{}
	}

	c[name][n] = true
}

// numbers are those of the messages of a queue that are the same to the byte.
type numbers struct {
	copies copies
	prefix string
	last   map[string]int
}

// name names the next message.
func (n *numbers) name(digest string) string {
	name := n.prefix + digest
	i := n.last[name] + 1
	for n.copies[name][i] {
		i++
	}

	n.last[name] = i
	if i == 1 {
		return name
	}

	return fmt.Sprintf("%s#%d", name, i)
}

// end forgets the messages that a whole look has not met.
func (n *numbers) end() {
	for name := range n.copies {
		if strings.HasPrefix(name, n.prefix) && n.last[name] == 0 {
			delete(n.copies, name)
		}
	}
}

// numberIn takes the name of a record apart.
func numberIn(key string) (name string, n int) {
	at := strings.LastIndexByte(key, '#')
	if n, err := strconv.Atoi(key[at+1:]); at >= 0 && err == nil {
		return key[:at], n
	}

	return key, 1
}
