package amqptest

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Broker is a connection with the server, for one test.
type Broker struct {
	*testing.T
	Address string
	*amqp.Channel
}

// Open connects with the server.
func Open(t *testing.T) *Broker {
	t.Helper()
	b := &Broker{T: t, Address: Start(t)}
	conn, err := amqp.Dial(URL(b.Address, "guest"))
	b.check(err)
	t.Cleanup(func() { b.check(conn.Close()) })

	b.Channel, err = conn.Channel()
	b.check(err)
	b.check(b.Channel.Confirm(false))

	return b
}

// URL is the address of the user who may do everything.
func (b *Broker) URL() string { return URL(b.Address, "guest") }

func (b *Broker) check(err error) {
	b.Helper()

	if err != nil {
		b.Fatal(err)
	}
}

// Queue makes a durable queue that lives as long as the test.
func (b *Broker) Queue(name string, args amqp.Table) {
	b.Helper()
	_, err := b.QueueDeclare(name, true, false, false, false, args)
	b.check(err)
	b.Cleanup(func() {
		_, err := b.QueueDelete(name, false, false, false)
		b.check(err)
	})
}

// Put puts a message into a queue.
func (b *Broker) Put(queue string, p amqp.Publishing) {
	b.Helper()
	confirmed, err := b.PublishWithDeferredConfirm("", queue, true, false, p)
	b.check(err)

	if !confirmed.Wait() {
		b.Fatal("the broker did not take a message")
	}
}

// Take takes all messages out of a queue.
func (b *Broker) Take(queue string) (all []amqp.Delivery) {
	b.Helper()

	for {
		d, ok, err := b.Get(queue, true)
		b.check(err)

		if !ok {
			return all
		}

		all = append(all, d)
	}
}
