package poll_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/poll"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/source/amqpsource"
	"redrive/internal/source/amqpsource/amqptest"
	"redrive/internal/source/preset"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
)

// These tests are long, because a RabbitMQ takes as long to start as all other tests of
// this package. Package amqpsource has those that make test runs.
func TestMain(m *testing.M) { amqptest.Main(m) }

// shop is a broker with a queue of work and one of its dead letters.
type shop struct {
	*amqptest.Broker
	t         *testing.T
	heartbeat int // in seconds
}

// newShop makes the queues, and lets orders die.
func newShop(t *testing.T, orders ...string) *shop {
	t.Helper()
	s := &shop{amqptest.Open(t), t, 1}
	s.Queue("orders.dlq", nil)
	s.Queue("orders", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dlq"})
	for _, id := range orders {
		s.Put("orders", amqp.Publishing{MessageId: id, Type: "charge " + id, Body: []byte(id), DeliveryMode: amqp.Persistent})
	}
	s.work(len(orders))
	return s
}

// work is a worker that rejects so many orders.
func (s *shop) work(orders int) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); orders > 0 && time.Now().Before(end); {
		d, ok, err := s.Get("orders", false)
		check(s.t, err)
		if ok {
			check(s.t, d.Reject(false))
			orders--
		}
	}
	if orders > 0 {
		s.t.Fatalf("%d orders did not come to work within a minute", orders)
	}
}

// open attaches the dead letters by an address of the broker. A message that is not there
// three heartbeats after that has left for certain.
func (s *shop) open(ctx context.Context, address string) (source.Origin, error) {
	url := strings.Replace(s.URL(), s.Address, address, 1) + fmt.Sprint("?heartbeat=", s.heartbeat)
	return amqpsource.Open(ctx, url, preset.All()["rabbitmq"], preset.Settings{Queues: []string{"orders.dlq"}})
}

func newAMQPBench(t *testing.T, orders ...string) (*bench, *shop) {
	t.Helper()
	s := newShop(t, orders...)
	return newBenchOf(t, preset.All()["rabbitmq"], func(ctx context.Context) (source.Origin, error) { return s.open(ctx, s.Address) }), s
}

// typed is the job of a type.
func (b *bench) typed(name string) job.Job {
	b.Helper()
	list, err := b.store.Jobs(b.Context(), filter.Filter{Source: "shop"}, filter.Cursor{}, 100)
	check(b.T, err)
	i := slices.IndexFunc(list.Jobs, func(j job.Job) bool { return j.Type == name })
	if i < 0 {
		b.Fatalf("no job of the type %s", name)
	}
	return list.Jobs[i]
}

func TestLong_AMQPSourcesMirrorReplayFailAgainAndVanish(t *testing.T) {
	b, s := newAMQPBench(t, "k0", "k1", "k2")
	b.until("all three messages are mirrored", func() bool { return len(b.deadLetters()) == 3 })
	j := b.typed("charge k1")
	if j.Queue != "orders@shop" || j.Error.Type != "rejected" || j.Attempts != 1 {
		t.Errorf("%+v", j)
	}
	_, err := b.store.Replay(t.Context(), time.Now(), j.ID, 1, ana)
	check(t, err)
	b.until("it is no dead letter", func() bool { return b.job(j.ID).State == job.Returned })
	s.work(1)
	b.until("it has failed again", func() bool { return b.job(j.ID).Status() == job.StatusDeadLetter })
	if got := b.job(j.ID); got.Run != 2 {
		t.Errorf("run %d", got.Run)
	}
	_, err = b.store.Discard(t.Context(), time.Now(), b.typed("charge k0").ID, 1, ana)
	check(t, err)
	b.until("the ledger says that it is discarded", func() bool {
		acts, err := b.store.Sources.Acts(t.Context(), "shop", 10)
		check(t, err)
		return len(acts) == 2 && acts[0].State == source.Done && acts[1].State == source.Done
	})
	_, err = s.QueuePurge("orders.dlq", false)
	check(t, err)
	b.until("the others are gone", func() bool { return b.job(j.ID).Reason == retry.GoneAtSource && len(b.deadLetters()) == 0 })
}

// A connection that broke keeps its messages until RabbitMQ notices. What people ask for is
// done then, and no job was gone meanwhile.
func TestLong_AMQPSourcesMissNothingThatABrokenConnectionHolds(t *testing.T) {
	l := &again{bench: &bench{T: t}, shop: newShop(t, "k0", "k1", "k2"), every: time.Hour}
	l.open(t)
	first := l.process(&crash{})
	l.until("the messages are mirrored", func() bool { return len(l.deadLetters()) == 3 && first.Health()[0].Ready })
	first.Close()
	broken, err := amqp.Dial(l.shop.URL())
	check(t, err)
	channel, err := broken.Channel()
	check(t, err)
	for range 3 {
		_, got, err := channel.Get("orders.dlq", false)
		check(t, err)
		if !got {
			t.Fatal("a message is missing")
		}
	}

	l.shop.heartbeat = 20 // so that a busy machine has a minute for what follows
	second := l.process(&crash{})
	defer second.Close()
	_, err = l.store.Replay(t.Context(), time.Now(), l.typed("charge k0").ID, 1, ana)
	check(t, err)
	l.until("the source was read once", func() bool { return second.Health()[0].Ready })
	check(t, broken.Close())
	l.until("the replay has ended", func() bool { return len(l.waiting()) == 0 })
	if a := l.acts()[0]; a.State != source.Done {
		t.Errorf("the replay is %s: %s", a.State, a.Why)
	}
	if taken := l.shop.Take("orders"); len(taken) != 1 {
		t.Errorf("%d messages came to work", len(taken))
	}
	for _, name := range []string{"charge k1", "charge k2"} {
		if j := l.typed(name); j.Status() != job.StatusDeadLetter || j.Run != 1 {
			t.Errorf("%s is %s in run %d", name, j.Status(), j.Run)
		}
	}
}

// line passes on what a client and a broker say, until the process of the client ends. What
// the client sends is a step of that process.
func (s *shop) line(c *crash) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(s.t, err)
	s.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("tcp", s.Address)
			if err != nil {
				_ = client.Close()
				continue
			}
			go relay(client, broker, func(step func() error) error { return c.do(step) })
			go relay(broker, client, func(step func() error) error {
				if c.happened() {
					return errCrash
				}
				return step()
			})
		}
	}()
	return l.Addr().String()
}

// relay sends on what comes from one end, and closes both when that ends.
func relay(from, to net.Conn, do func(step func() error) error) {
	defer to.Close()
	defer from.Close()
	for part := make([]byte, 1<<16); ; {
		n, err := from.Read(part)
		if err != nil {
			return
		}
		err = do(func() error {
			_, err := to.Write(part[:n])
			return err
		})
		if err != nil {
			return
		}
	}
}

// A connection that had broken before the source was told anything leaves nothing in
// doubt: the act is carried out on the next one.
func TestLong_AMQPSourcesToldLaterWhatTheyWereNotTold(t *testing.T) {
	l, c := &again{bench: &bench{T: t}, shop: newShop(t, "k0", "k1", "k2"), every: time.Hour}, &crash{}
	l.open(t)
	defer l.process(c).Close()
	l.until("the messages are mirrored", func() bool { return len(l.deadLetters()) == 3 && l.sources.Health()[0].Ready })
	c.set(true)
	for _, id := range []string{"k0", "k1"} {
		_, err := l.store.Replay(t.Context(), time.Now(), l.typed("charge "+id).ID, 1, ana)
		check(t, err)
	}
	l.until("the connection is broken", func() bool { return l.sources.Health()[0].Problem != "" })
	c.set(false)
	l.until("the acts have ended", func() bool { return len(l.waiting()) == 0 })
	for _, a := range l.acts() {
		if a.State != source.Done {
			t.Errorf("the replay of %s is %s: %s", a.Type, a.State, a.Why)
		}
	}
	if taken := l.shop.Take("orders"); len(taken) != 2 {
		t.Errorf("%d messages came to work", len(taken))
	}
}

// again is a store that outlives the processes that work on it, with a shop of its own.
type again struct {
	*bench
	shop  *shop
	every time.Duration
	now   atomic.Pointer[poll.Sources]
}

// open makes the store.
func (l *again) open(t *testing.T) {
	var err error
	l.store, err = store.Open(t.Context(), store.Options{
		Database: databasetest.Database(t),
		OnCommit: func(changes []job.Change) {
			if now := l.now.Load(); now != nil {
				now.Changed(changes)
			}
		},
	})
	check(t, err)
	t.Cleanup(func() { check(t, l.store.Close()) })
}

// process works until it is closed, or ends at a step.
func (l *again) process(c *crash) *poll.Sources {
	address := l.shop.line(c)
	now := poll.New([]poll.Attached{{
		Name: "shop", Preset: preset.All()["rabbitmq"], Allow: []source.Kind{source.Replay, source.Discard}, Every: l.every,
		Open: func(ctx context.Context) (source.Origin, error) { return l.shop.open(ctx, address) },
	}}, func(s string) string { return s }, slog.New(slog.DiscardHandler))
	l.sources = now
	l.now.Store(now)
	m := mortal{l.store.Mirror, l.store.Sources, c}
	now.Start(m, m, m)
	return now
}

// back waits until the first message is at the head of the dead letters: then no process
// holds any.
func (l *again) back() {
	l.Helper()
	l.until("what the process held is back", func() bool {
		d, ok, err := l.shop.Get("orders.dlq", false)
		check(l.T, err)
		if ok {
			check(l.T, d.Nack(false, true))
		}
		return ok && d.MessageId == "first"
	})
}

// ask asks for two replays and a discard, and waits until they have ended, or the process.
func (l *again) ask(c *crash) {
	l.Helper()
	for _, id := range []string{"k0", "k1"} {
		_, err := l.store.Replay(l.Context(), time.Now(), l.typed("charge "+id).ID, 1, ana)
		check(l.T, err)
	}
	_, err := l.store.Discard(l.Context(), time.Now(), l.typed("charge k2").ID, 1, ana)
	check(l.T, err)
	l.until("the acts have ended", func() bool { return c.happened() || len(l.waiting()) == 0 })
}

// waiting are the acts that have not ended.
func (l *again) waiting() []source.Act {
	l.Helper()
	return slices.DeleteFunc(l.acts(), func(a source.Act) bool { return !a.State.Open() })
}

func (l *again) acts() []source.Act {
	l.Helper()
	acts, err := l.store.Sources.Acts(l.Context(), "shop", 10)
	check(l.T, err)
	return acts
}

// crashAt lives one life with a crash at a step, and reports whether there was one. A new
// process follows.
func crashAt(t *testing.T, at int) (crashed bool) {
	l, c := &again{bench: &bench{T: t}, shop: newShop(t, "first", "k0", "k1", "k2"), every: time.Hour}, &crash{at: at}
	l.open(t)
	first := l.process(c)
	l.until("the messages are mirrored", func() bool { return c.happened() || len(l.deadLetters()) == 4 && first.Health()[0].Ready })
	early := len(l.deadLetters()) < 4
	if !early {
		l.ask(c)
	}
	crashed = c.happened()
	first.Close()
	l.back()
	l.every = time.Second
	alive := &crash{}
	second := l.process(alive)
	defer second.Close()
	l.until("what had begun has ended", func() bool { return second.Health()[0].Ready && len(l.waiting()) == 0 })
	if early {
		l.ask(alive)
	}
	ended := time.Now()
	l.until("all was read once more", func() bool {
		h := second.Health()[0]
		return h.Polled.Add(-h.Took).After(ended)
	})
	second.Close()
	l.back()
	l.settled()
	return crashed
}

// settled fails unless each message is where the ledger says, or in both queues where the
// ledger says that the result is unknown.
func (l *again) settled() {
	l.Helper()
	places := map[string][]string{}
	for _, queue := range []string{"orders.dlq", "orders"} {
		for _, d := range l.shop.Take(queue) {
			places[d.MessageId] = append(places[d.MessageId], queue)
		}
	}
	acts := l.acts()
	if len(acts) != 3 || !slices.Equal(places["first"], []string{"orders.dlq"}) {
		l.Errorf("%d acts, places %q", len(acts), places)
	}
	for _, a := range acts {
		id := strings.TrimPrefix(a.Type, "charge ")
		at := places[id]
		present := slices.Contains(places[id], "orders.dlq")
		switch {
		case a.Kind == source.Discard && a.State == source.Done && len(at) == 0:
		case a.Kind == source.Replay && a.State == source.Done && slices.Equal(at, []string{"orders"}):
		case a.Kind == source.Replay && a.State == source.Unknown && len(at) > 0 && len(at) == len(slices.Compact(slices.Clone(at))):
		default:
			l.Errorf("the %s of %s is %s (%s), and it is in %q", a.Kind, id, a.State, a.Why, at)
		}
		if dead := l.typed(a.Type).Status() == job.StatusDeadLetter; dead != present {
			l.Errorf("%s is there: %v; its job is %s", id, present, l.typed(a.Type).Status())
		}
	}
}

// A process may end at any of its steps. Whatever it was doing, no message is lost, and
// none is in both queues without the ledger saying that it may be.
func TestLong_AMQPSourcesACrashAtAnyStepLosesNothing(t *testing.T) {
	at := 2
	for crashed := true; crashed && !t.Failed(); at++ {
		t.Run(fmt.Sprint("step ", at), func(t *testing.T) { crashed = crashAt(t, at) })
	}
	if at < 40 {
		t.Errorf("only %d steps ended a process, want all of a look, three acts and their ledger", at)
	}
}
