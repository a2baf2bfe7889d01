package amqpsource_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"redrive/internal/source"
	"redrive/internal/source/amqpsource"
	"redrive/internal/source/preset"
)

// cut is a line to the broker that breaks at one of its steps: before what the client
// sends then gets there, or after that and before the answer comes back.
type cut struct {
	mu     sync.Mutex
	at     int // two for each step; 0: never
	steps  int
	broken bool

	opened bool          // the broker was told of a channel
	ended  chan struct{} // closed when the broker has ended its side of the line
}

// closing is the frame of AMQP 0-9-1 that asks the broker to end a connection
// (connection.close: class 10, method 50, code 200, no text).
var closing = []byte{1, 0, 0, 0, 0, 0, 11, 0, 10, 0, 50, 0, 200, 0, 0, 0, 0, 0, 0xCE}

// closed is the frame with which the broker answers closing (connection.close-ok: class 10,
// method 51). It then waits until the client leaves.
var closed = []byte{1, 0, 0, 0, 0, 0, 4, 0, 10, 0, 51, 0xCE}

// through returns the address of a listener that passes everything on to another one,
// until the line breaks.
func (c *cut) through(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = l.Close() })
	c.ended = make(chan struct{})
	go func() {
		defer close(c.ended)
		client, err := l.Accept()
		if err != nil {
			return
		}
		defer client.Close()

		broker, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		defer broker.Close()

		answered := make(chan struct{})
		go func() {
			c.answers(client, broker)
			close(answered)
		}()
		c.requests(client, broker)

		// The client loses its line now. The broker is asked to close the connection: it
		// first carries out what it was told, and answers when all that was held is back.
		// It knows no such request before a login, when nothing can be held.
		_ = client.Close()
		if c.opened {
			_, _ = broker.Write(closing) // the client may have ended the connection itself
		} else {
			_ = broker.Close()
		}
		<-answered
	}()
	return l.Addr().String()
}

// requests passes on what the client says, as long as the line holds.
func (c *cut) requests(client io.Reader, broker io.Writer) {
	part := make([]byte, 1<<16)
	for {
		n, err := client.Read(part)
		if err != nil {
			return
		}

		holds := c.step(func() {
			_, err = broker.Write(part[:n])
			c.opened = c.opened || channelOf(part[:n]) != 0
		})
		if !holds || err != nil {
			return
		}
	}
}

// channelOf returns the channel of the frame with which a part begins: 0 is the connection
// itself, to which the greeting belongs, too. Clients write whole frames.
func channelOf(part []byte) uint16 {
	if bytes.HasPrefix(part, []byte("AMQP")) {
		return 0
	}
	return binary.BigEndian.Uint16(part[1:])
}

// answers reads what the broker says until the connection is closed, and passes it on as
// long as the line holds.
func (c *cut) answers(client io.Writer, broker io.Reader) {
	part := make([]byte, 1<<16)
	for {
		n, err := broker.Read(part)
		if err != nil {
			return
		}
		if !c.broke() {
			_, _ = client.Write(part[:n]) // a client that left hears nothing
		}
		if bytes.HasSuffix(part[:n], closed) {
			return
		}
	}
}

func (c *cut) broke() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// step sends something on, and reports whether the line holds.
func (c *cut) step(send func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps += 2
	if c.steps != c.at {
		send()
	}
	c.broken = c.steps == c.at || c.steps+1 == c.at
	return !c.broken
}

// The line breaks at each step of a replay and a discard in turn. No message is ever
// lost, one that is in both queues is never called done, and what was not told to RabbitMQ
// is still asked for.
func TestOrigin_ALineThatBreaksAtAnyStepLosesNothing(t *testing.T) {
	states := map[source.State]int{}
	broke := true
	for at := 2; broke && !t.Failed(); at++ {
		broke = breakAt(t, at, states)
	}
	if states[source.Asked] == 0 || states[source.Unknown] == 0 || states[source.Done] == 0 {
		t.Errorf("the acts ended as %v", states)
	}
}

// breakAt replays one of three messages and discards another over a line that breaks at a
// step, and reports whether it did.
func breakAt(t *testing.T, at int, states map[source.State]int) (broke bool) {
	b := newOrders(t, order("1"), order("2"), order("3"))
	acts := []source.Act{act(source.Replay, source.Once, b.record("/2")), act(source.Discard, "", b.record("/3"))}
	acts[1].ID = 2
	line := &cut{at: at}
	url := strings.Replace(b.URL(), b.Address, line.through(t, b.Address), 1)
	results := overLine(b, url, acts)
	broke = line.broke()
	<-line.ended
	for _, a := range acts {
		if results[a.ID] == "" { // the result is unknown: it is looked up
			found, err := b.origin.Find(t.Context(), []source.Act{a})
			b.check(err)
			results[a.ID] = found[0].State
		}
	}
	dead, work := bodies(b.Take("orders.dlq")), bodies(b.Take("orders"))
	copied, present := slices.Contains(work, "order 2"), slices.Contains(dead, "order 2")
	replay, discard := results[1], results[2]
	states[replay]++
	states[discard]++
	switch {
	case !slices.Contains(dead, "order 1") || !copied && !present || len(dead)+len(work) > 4:
		t.Errorf("step %d: dead are %q, and at work %q", at, dead, work)
	case replay == source.Done && (!copied || present), replay == source.Asked && (copied || !present), copied && present && replay != source.Unknown:
		t.Errorf("step %d: the replay is %q; dead are %q, and at work %q", at, replay, dead, work)
	}
	if present := slices.Contains(dead, "order 3"); present != (discard == source.Asked) {
		t.Errorf("step %d: the discard is %q; dead are %q", at, discard, dead)
	}
	for _, queue := range []string{"orders", "orders.dlq"} {
		_, err := b.QueueDelete(queue, false, false, false)
		b.check(err)
	}
	return broke
}

// overLine acts over a line that can break. Without a connection, nothing was told.
func overLine(b *bench, url string, acts []source.Act) map[int64]source.State {
	all := map[int64]source.State{}
	o, err := amqpsource.Open(b.Context(), url, b.preset, preset.Settings{Queues: b.queues})
	if err != nil {
		return map[int64]source.State{1: source.Asked, 2: source.Asked}
	}
	results, err := o.Act(b.Context(), acts)
	if err == nil && len(results) != len(acts) {
		b.Errorf("%d results without an error", len(results))
	}
	for _, r := range results {
		all[r.ID] = r.State
	}
	_ = o.Close() // the line may be broken
	return all
}
