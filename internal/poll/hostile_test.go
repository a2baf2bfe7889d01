package poll_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/poll"
	"redrive/internal/source"
	"redrive/internal/source/amqpsource"
	"redrive/internal/source/preset"
	"redrive/internal/source/redissource"
	"redrive/internal/source/sqlsource"
	"redrive/internal/store/db"
)

// hostile is a server that greets each client as its protocol wants, and answers everything
// else with what it was given.
func hostile(t *testing.T, greet func(net.Conn) error, answer func(io.Writer) error) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { check(t, l.Close()) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if greet(c) != nil {
					return
				}
				for {
					if _, err := c.Read(make([]byte, 4096)); err != nil {
						return
					}
					if answer(c) != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// says is a fixed answer.
func says(what string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, what)
		return err
	}
}

// repeats is an answer without an end.
func repeats(first, what string) func(io.Writer) error {
	return func(w io.Writer) error {
		err := says(first)(w)
		for err == nil {
			err = says(what)(w)
		}
		return err
	}
}

func silent(net.Conn) error { return nil }

// greetMySQL lets a client in.
func greetMySQL(c net.Conn) error {
	greeting := "\x0a8.0.0\x00\x01\x00\x00\x0012345678\x00" + "\xff\xf7\x21\x02\x00\xff\x81\x15" + strings.Repeat("\x00", 10) +
		"123456789012\x00mysql_native_password\x00"
	if err := says(mysqlPacket(0, greeting))(c); err != nil {
		return err
	}
	if _, err := c.Read(make([]byte, 4096)); err != nil {
		return err
	}
	return says(mysqlPacket(2, "\x00\x00\x00\x02\x00\x00\x00"))(c)
}

// mysqlPacket is a packet with a number.
func mysqlPacket(number byte, payload string) string {
	return string([]byte{byte(len(payload)), byte(len(payload) >> 8), byte(len(payload) >> 16), number}) + payload
}

// fullPackets are those of a message without an end.
func fullPackets(w io.Writer) error {
	packet := make([]byte, 4+1<<24-1)
	copy(packet, "\xff\xff\xff")
	for number := byte(1); ; number++ {
		packet[3] = number
		if _, err := w.Write(packet); err != nil {
			return err
		}
	}
}

// greetPostgres lets a client in, without encryption.
func greetPostgres(c net.Conn) error {
	if _, err := c.Read(make([]byte, 4096)); err != nil {
		return err
	}
	return says("R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I")(c)
}

// opened connects with a hostile server through a preset.
func opened(p *preset.Preset, scheme, address string) func(context.Context) (source.Origin, error) {
	return func(ctx context.Context) (source.Origin, error) {
		switch p.Family {
		case "redis":
			return redissource.Open(ctx, "redis://"+address+"/0", p, preset.Settings{})
		case "amqp":
			return amqpsource.Open(ctx, "amqp://guest:guest@"+address+"/", p, preset.Settings{Queues: []string{"dead"}})
		}
		return sqlsource.Open(ctx, scheme+"://root:secret@"+address+"/shop?sslmode=disable", p, preset.Settings{})
	}
}

// TestSource_AHostileServerEndsNothingButItsOwnConnection attaches servers that announce
// what no memory has, beside a source that is well.
func TestSource_AHostileServerEndsNothingButItsOwnConnection(t *testing.T) {
	presets := preset.All()
	redis, rabbit, laravel := presets["sidekiq"], presets["rabbitmq"], presets["laravel"]
	for _, c := range []struct {
		what   string
		preset *preset.Preset
		scheme string
		greet  func(net.Conn) error
		answer func(io.Writer) error
		says   string // of the problem
	}{
		{"a length that no memory has", redis, "", silent, says("$9223372036854775000\r\n"), "announced a length that is none"},
		{"20 GB", redis, "", silent, says("$20000000000\r\n"), "announced a value of 20000 MB"},
		{"two thousand million elements", redis, "", silent, says("*2000000000\r\n"), "announced 2000000000 elements"},
		{"arrays within arrays", redis, "", silent, repeats("", strings.Repeat("*1\r\n", 100)), "levels deep"},
		{"a line without an end", redis, "", silent, repeats("+", strings.Repeat("a", 10_000)), "sent a line of more than 64 kB"},
		{"a frame of 4 GB", rabbit, "", silent, says("\x01\x00\x00\xff\xff\xff\xff"), "announced a frame of 4294967295 bytes"},
		{"a body of 2^63", rabbit, "", silent, says("\x02\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\xce"), "announced a message"},
		{"2^63 columns", laravel, "mysql", greetMySQL, says(mysqlPacket(1, "\xfe\x00\x00\x00\x00\x00\x00\x00\x80")), "announced 9223372036854775808 columns"},
		{"a hundred million columns", laravel, "mysql", greetMySQL, says(mysqlPacket(1, "\xfe\x00\xe1\xf5\x05\x00\x00\x00\x00")), "announced 100000000 columns"},
		{"packets without an end", laravel, "mysql", greetMySQL,
			fullPackets, "sent a message of more than 40 MB"},
		{"nonsense", laravel, "mysql", greetMySQL, says(mysqlPacket(1, "\xfe")), ""},
		{"a message of 2 GB", laravel, "postgres", greetPostgres, says("D\x7f\xff\xff\xff"), "announced a message of 2147483647 bytes"},
		{"a negative length", laravel, "postgres", greetPostgres, says("D\xff\xff\xff\xff"), "announced a message of -1 bytes"},
	} {
		t.Run(c.preset.Family+" "+c.what, func(t *testing.T) {
			t.Parallel()
			refusesHostile(t, c.preset, opened(c.preset, c.scheme, hostile(t, c.greet, c.answer)), c.says)
		})
	}
}

// refusesHostile waits until the source says what is wrong with it.
func refusesHostile(t *testing.T, p *preset.Preset, open func(context.Context) (source.Origin, error), want string) {
	t.Helper()
	b := newBenchOf(t, p, open)
	b.until("the source is down and says why", func() bool {
		h := b.sources.Health()[0]
		return h.Standing(time.Now()) == source.Down && strings.Contains(h.Problem, want)
	})
}

// TestSource_WhatItSaysIsCut says that no text of a source is kept whole.
func TestSource_WhatItSaysIsCut(t *testing.T) {
	long := strings.Repeat("0123456789", 200_000)
	failure := "SERROR\x00C42601\x00M" + long + "\x00\x00"
	answer := string(binary.BigEndian.AppendUint32([]byte("E"), uint32(len(failure)+4))) + failure
	p := preset.All()["laravel"]
	b := newBenchOf(t, p, opened(p, "postgres", hostile(t, silent, says(answer))))
	b.until("it is down", func() bool { return b.sources.Health()[0].Problem != "" })
	if problem := b.sources.Health()[0].Problem; len(problem) > 4000 || !strings.Contains(problem, "0123456789") {
		t.Errorf("%d bytes are kept", len(problem))
	}
}

// TestSource_APanicInItsDriverIsAnErrorOfIt is about drivers that do not check what they read.
func TestSource_APanicInItsDriverIsAnErrorOfIt(t *testing.T) {
	p := preset.All()["laravel"]
	b := newBenchOf(t, p, func(context.Context) (source.Origin, error) {
		var columns []int
		return nil, fmt.Errorf("unreachable: %d", columns[7])
	})
	b.until("it is down", func() bool { return b.sources.Health()[0].Standing(time.Now()) == source.Down })
	if problem := b.sources.Health()[0].Problem; !strings.Contains(problem, "does not understand") {
		t.Error(problem)
	}
}

// talkative is a system that has something to say about itself and about each act.
type talkative struct {
	*queue
	says source.Report
	why  string
}

func (o talkative) Check(context.Context) (source.Report, error) { return o.says, nil }

func (o talkative) Act(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	results, err := o.queue.Act(ctx, acts)
	for i := range results {
		results[i].Why = o.why
	}
	return results, err
}

// TestSource_WhatItSaysOfItselfIsCutAndHidden says the same of what a source answers without an
// error: to a check, and to an act.
func TestSource_WhatItSaysOfItselfIsCutAndHidden(t *testing.T) {
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		defer func() { check(t, l.store.Close()) }()
		l.queue.crash = &crash{}
		long := "hunter2 " + strings.Repeat("0123456789", 1000)
		many := slices.Repeat([]string{long}, 1000)
		says := source.Report{Version: long, Sees: many, Warnings: many, Shared: long}
		sources := poll.New([]poll.Attached{{
			Name: "shop", Preset: preset.All()["sidekiq"], Allow: []source.Kind{source.Replay}, Every: time.Second,
			Open: func(context.Context) (source.Origin, error) { return talkative{l.queue, says, long}, nil },
		}}, func(text string) string { return strings.ReplaceAll(text, "hunter2", "•••") }, slog.New(slog.DiscardHandler))
		l.now.Store(sources)
		sources.Start(l.store.Mirror, l.store.Sources, l.store.Sources)
		defer sources.Close()
		time.Sleep(30 * time.Second)
		_, err := l.store.Replay(t.Context(), time.Now(), l.jobs()["charge k1"].ID, 1, ana)
		check(t, err)
		time.Sleep(30 * time.Second)

		report := sources.Health()[0].Report
		if len(report.Sees) != 50 || len(report.Warnings) != 50 {
			t.Errorf("%d sentences of what it sees and %d warnings are kept", len(report.Sees), len(report.Warnings))
		}
		kept := slices.Concat(report.Sees, report.Warnings, []string{report.Version, report.Shared, l.acts()[0].Why})
		for _, text := range kept {
			if !strings.HasPrefix(text, "••• 0123456789") || len(text) > 600 {
				t.Fatalf("%d bytes are kept: %.40s", len(text), text)
			}
		}
	})
}

// TestSource_APanicOfThisSideIsAnErrorOfThatSource: wherever in the work it happens, here over
// a text in which secrets are looked for. What the source was told of is looked up then.
func TestSource_APanicOfThisSideIsAnErrorOfThatSource(t *testing.T) {
	const odd = "a text that ends in a panic"
	for name, c := range map[string]struct {
		version, why string
		refuses      []string
		lasts        bool // the panic comes at each look
	}{
		"while it is checked":          {version: odd, lasts: true},
		"while records are taken over": {refuses: []string{"k1"}, lasts: true},
		"while an act is carried out":  {why: odd},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, database db.Database) {
				l := newLife(t, database, true)
				defer func() { check(t, l.store.Close()) }()
				l.queue.crash = &crash{}
				kept := &picky{Store: l.store.Mirror}
				kept.refuse(c.refuses...)
				var log bytes.Buffer
				sources := poll.New([]poll.Attached{{
					Name: "shop", Preset: preset.All()["sidekiq"], Allow: []source.Kind{source.Replay}, Every: time.Hour,
					Open: func(context.Context) (source.Origin, error) {
						return talkative{l.queue, source.Report{Version: c.version}, c.why}, nil
					},
				}}, func(text string) string {
					if strings.Contains(text, odd) || strings.Contains(text, "CHECK constraint") {
						panic("index out of range")
					}
					return text
				}, slog.New(slog.NewTextHandler(&log, nil)))
				l.now.Store(sources)
				sources.Start(kept, l.store.Sources, l.store.Sources)
				defer sources.Close()
				time.Sleep(30 * time.Second)

				h := sources.Health()[0]
				blocked := h.Standing(time.Now()) == source.Blocked && strings.Contains(h.Problem, "a look ended in a panic: index out of range")
				if blocked != c.lasts {
					t.Errorf("after half a minute: %+v", h)
				}
				if c.lasts {
					return
				}

				j := l.jobs()["charge k1"]
				_, err := l.store.Replay(t.Context(), time.Now(), j.ID, 1, ana)
				check(t, err)
				time.Sleep(10 * time.Minute)
				sources.Close()
				_, work := l.queue.now()
				if act := l.acts()[0]; act.State != source.Done || work["k1"] != 1 || !strings.Contains(log.String(), "Please report it") {
					t.Errorf("the act ended as %s, the work is %v, and the log says\n%s", act.State, work, log.String())
				}
			})
		})
	}
}

// TestSource_AServerThatDoesNotAnswerDelaysNoStop: not every driver heeds the end of a context
// once it waits for an answer. One that does not would wait until its own time limit.
func TestSource_AServerThatDoesNotAnswerDelaysNoStop(t *testing.T) {
	presets := preset.All()
	for _, c := range []struct {
		preset *preset.Preset
		scheme string
		greet  func(net.Conn) error
		first  bool // the client waits for a greeting before it says anything
	}{
		{presets["sidekiq"], "", silent, false}, {presets["rabbitmq"], "", silent, false},
		{presets["laravel"], "mysql", greetMySQL, false}, {presets["laravel"], "mysql", silent, true},
		{presets["laravel"], "postgres", greetPostgres, false}, {presets["laravel"], "postgres", silent, false},
	} {
		t.Run(c.preset.Name+" "+c.scheme, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 100)
			greet := func(conn net.Conn) error {
				if c.first {
					asked <- struct{}{}
				}
				return c.greet(conn)
			}
			open := opened(c.preset, c.scheme, hostile(t, greet, func(io.Writer) error {
				asked <- struct{}{}
				return nil
			}))

			var ended error // why the source ended its attempt to connect
			sources := poll.New([]poll.Attached{{
				Name: "shop", Preset: c.preset, Profile: c.preset.Profile, Every: time.Second,
				Open: func(ctx context.Context) (origin source.Origin, err error) {
					origin, err = open(ctx)
					ended = err
					return origin, err
				},
			}}, func(s string) string { return s }, slog.New(slog.NewTextHandler(os.Stderr, nil)))
			sources.Start(nil, nil, nil)
			<-asked

			sources.Close()
			if ended == nil || strings.Contains(ended.Error(), "i/o timeout") {
				t.Errorf("the stop waited for the time limit of the driver: %v", ended)
			}
		})
	}
}
