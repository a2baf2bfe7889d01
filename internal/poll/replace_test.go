package poll_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/job"
	"redrive/internal/poll"
	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/sqlsource"
	"redrive/internal/store/databasetest"
	"redrive/internal/store/db"
)

// doors count who is connected with each source. Two at the same time fail the test.
type doors struct {
	*testing.T
	mu     sync.Mutex
	opened map[string]int // by the name of the source
	closed map[string]int
}

func newDoors(t *testing.T) *doors {
	return &doors{T: t, opened: map[string]int{}, closed: map[string]int{}}
}

// through opens an origin of a source.
func (d *doors) through(name string, open func(context.Context) (source.Origin, error)) func(context.Context) (source.Origin, error) {
	return func(ctx context.Context) (source.Origin, error) {
		origin, err := open(ctx)
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.opened[name] != d.closed[name] {
			d.Errorf("two are connected with %s", name)
		}
		d.opened[name]++
		return &door{origin, d, name}, nil
	}
}

// times is how often a source was opened and closed.
func (d *doors) times(name string) (opened, closed int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opened[name], d.closed[name]
}

// door is one connection.
type door struct {
	source.Origin
	doors *doors
	name  string
}

func (d *door) Close() error {
	err := d.Origin.Close()
	d.doors.mu.Lock()
	defer d.doors.mu.Unlock()
	d.doors.closed[d.name]++
	return err
}

// shop is a database of Laravel as redrive.yaml names it.
func (d *doors) shop(name, path, fingerprint string, allow ...source.Kind) poll.Attached {
	p := preset.All()["laravel"]
	return poll.Attached{
		Name: name, Preset: p, Profile: p.Profile, Allow: allow, Every: 20 * time.Millisecond, Fingerprint: fingerprint,
		Open: d.through(name, func(ctx context.Context) (source.Origin, error) {
			return sqlsource.Open(ctx, "sqlite://"+path, p, preset.Settings{Zone: "Europe/Berlin"})
		}),
	}
}

// A source that is named as before goes on with its connection and its counts, whatever
// happens to the others.
func TestReplace_DisturbsOnlyWhatHasChanged(t *testing.T) {
	b, d := newBench(t), newDoors(t)
	other, _ := laravel(t)
	const replay, discard = source.Replay, source.Discard
	b.sources.Replace([]poll.Attached{d.shop("shop", b.path, "1", replay, discard)})
	b.until("the shop is read", func() bool { return b.sources.Health()[0].Ready && len(b.deadLetters()) == 6 })
	_, err := b.store.Replay(t.Context(), time.Now(), b.deadLetters()[5].Job.ID, 1, ana)
	check(t, err)
	done := source.End{Kind: source.Replay, State: source.Done}
	b.until("the replay is done", func() bool { return b.sources.Health()[0].Acts[done] == 1 })

	b.sources.Replace([]poll.Attached{d.shop("outlet", other, "1", replay), d.shop("shop", b.path, "1", replay, discard)})
	all := b.sources.Health()
	if len(all) != 2 || all[0].Name != "outlet" || !all[1].Ready || all[1].Acts[done] != 1 {
		t.Errorf("when one is added, the sources are %+v", all)
	}
	b.until("the outlet is mirrored", func() bool { return len(b.deadLetters()) == 5+6 })

	// The outlet is another one as soon as Replace returns, and keeps what it has counted.
	if why := b.sources.Check("outlet", source.Request{Kind: discard}); why == "" {
		t.Error("the outlet allows a discard")
	}
	b.sources.Replace([]poll.Attached{d.shop("outlet", other, "2", discard), d.shop("shop", b.path, "1", replay, discard)})
	if may, not := b.sources.Check("outlet", source.Request{Kind: discard}), b.sources.Check("outlet", source.Request{Kind: replay}); may != "" || not == "" {
		t.Errorf("the outlet says %q of a discard and %q of a replay", may, not)
	}
	b.until("the outlet is read again", func() bool { return b.sources.Health()[0].Ready })
	if opened, closed := d.times("outlet"); opened != 2 || closed != 1 {
		t.Errorf("the outlet was opened %d times and closed %d times", opened, closed)
	}

	b.sources.Replace([]poll.Attached{d.shop("shop", b.path, "1", replay, discard)})
	if all := b.sources.Health(); len(all) != 1 || all[0].Name != "shop" || all[0].Acts[done] != 1 {
		t.Errorf("when one is taken out, the sources are %+v", all)
	}
	if why := b.sources.Check("outlet", source.Request{Kind: replay}); !strings.Contains(why, "is not attached") {
		t.Errorf("a source that was taken out says %q", why)
	}
	b.until("the connection is closed", func() bool { _, closed := d.times("outlet"); return closed == 2 })
	if opened, closed := d.times("shop"); opened != 1 || closed != 0 || len(b.deadLetters()) != 5+6 {
		t.Errorf("the shop was opened %d times and closed %d times, and there are %d dead letters", opened, closed, len(b.deadLetters()))
	}
}

// patient is a queue whose answer to an act a test waits with.
type patient struct {
	*queue
	answer chan struct{}
}

func (p *patient) Act(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	<-p.answer
	return p.queue.Act(ctx, acts)
}

// named are sources that are one system, as a version of redrive.yaml names them.
func (l *life) named(d *doors, origin source.Origin, fingerprint string, names ...string) (all []poll.Attached) {
	for _, name := range names {
		all = append(all, poll.Attached{
			Name: name, Preset: preset.All()["sidekiq"], Allow: []source.Kind{source.Replay}, Every: time.Second, Fingerprint: fingerprint,
			Open: d.through(name, func(context.Context) (source.Origin, error) { return origin, nil }),
		})
	}
	return all
}

// A source that ends keeps only the one waiting that comes after it, also when it was
// taken out and named again meanwhile. What it is told at last is settled and counted.
func TestReplace_OnlyTheNextOneWaitsForASourceThatEnds(t *testing.T) {
	for _, between := range [][]string{{"shop"}, {}} {
		t.Run(fmt.Sprintf("by way of %v", between), func(t *testing.T) {
			bubble(t, func(t *testing.T, database db.Database) {
				l, d := newLife(t, database, true), newDoors(t)
				defer func() { check(t, l.store.Close()) }()
				l.queue.crash = &crash{}
				p := &patient{l.queue, make(chan struct{})}
				sources := poll.New(l.named(d, p, "1", "shop"), func(s string) string { return s }, slog.New(slog.DiscardHandler))
				l.now.Store(sources)
				sources.Start(l.store.Mirror, l.store.Sources, l.store.Sources)
				defer sources.Close()
				time.Sleep(10*time.Second + time.Second/2)
				l.replay("k0")
				synctest.Wait() // the source has been told, and does not answer

				sources.Replace(l.named(d, p, "2", between...))
				sources.Replace(l.named(d, p, "3", "shop"))
				if all := sources.Health(); len(all) != 1 || all[0].Ready {
					t.Errorf("the sources are %+v", all)
				}
				if why := sources.Check("shop", source.Request{Kind: source.Replay}); why != "" {
					t.Errorf("it refuses a replay: %s", why)
				}
				l.replay("k1") // its commit tells the sources
				time.Sleep(time.Second)
				if opened, closed := d.times("shop"); opened != 1 || closed != 0 {
					t.Errorf("while an act is under way, the source was opened %d times and closed %d times", opened, closed)
				}

				close(p.answer)
				time.Sleep(10 * time.Second)
				if opened, closed := d.times("shop"); opened != 2 || closed != 1 {
					t.Errorf("at last the source was opened %d times and closed %d times", opened, closed)
				}
				if _, work := l.queue.now(); work["k0"] != 1 || work["k1"] != 1 {
					t.Errorf("%v came to work, want k0 and k1 once each", work)
				}
				for _, a := range l.acts() {
					if a.State != source.Done {
						t.Errorf("the replay of %s is %s: %s", a.Key, a.State, a.Why)
					}
				}
				want := int64(1 + len(between)) // a source that was taken out begins to count again
				if n := sources.Health()[0].Acts[source.End{Kind: source.Replay, State: source.Done}]; n != want {
					t.Errorf("it counts %d replays, not %d", n, want)
				}
			})
		})
	}
}

// Before the start and after the end, the list changes and nothing begins.
func TestReplace_StartsNothingThatDoesNotWork(t *testing.T) {
	bubble(t, func(t *testing.T, database db.Database) {
		l, d := newLife(t, database, true), newDoors(t)
		defer func() { check(t, l.store.Close()) }()
		is := func(when, name string, opened, closed int) {
			t.Helper()
			time.Sleep(time.Minute)
			all := l.now.Load().Health()
			if len(all) != 1 || all[0].Name != name || l.now.Load().Check(name, source.Request{Kind: source.Replay}) != "" {
				t.Errorf("%s, the sources are %+v", when, all)
			}
			if o, c := d.times(name); o != opened || c != closed {
				t.Errorf("%s, the source was opened %d times and closed %d times", when, o, c)
			}
		}
		sources := poll.New(l.named(d, l.queue, "1", "a"), func(s string) string { return s }, slog.New(slog.DiscardHandler))
		l.now.Store(sources)
		sources.Replace(l.named(d, l.queue, "2", "b"))
		is("before the start", "b", 0, 0)
		sources.Start(l.store.Mirror, l.store.Sources, l.store.Sources)
		is("after the start", "b", 1, 0)
		sources.Close()
		is("after the end", "b", 1, 1)
		sources.Replace(l.named(d, l.queue, "3", "c"))
		is("replaced after the end", "c", 0, 0)
		if opened, _ := d.times("a"); opened != 0 {
			t.Error("a source was opened that was taken out before the start")
		}
		sources.Close() // a second time
	})
}

// untilReady waits until every source has been read.
func (l *life) untilReady(s *poll.Sources) {
	starts := func(h source.Health) bool { return !h.Ready }
	for late := time.Now().Add(time.Minute); slices.ContainsFunc(s.Health(), starts); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			l.Errorf("not read within a minute: %+v", s.Health())
			return
		}
	}
}

// Sources come, change and go while others read what there is, and the end comes in the
// midst of it.
func TestReplace_BesideEverythingElse(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	l, d := newLife(t, databasetest.Database(t), true), newDoors(t)
	defer func() { check(t, l.store.Close()) }()
	sources := poll.New(nil, func(s string) string { return s }, slog.New(slog.DiscardHandler))
	l.now.Store(sources)

	var changing, reading sync.WaitGroup
	over := make(chan struct{})
	changing.Go(func() {
		random := rand.New(rand.NewPCG(seed, 0))
		for range 60 {
			var all []poll.Attached
			for _, name := range []string{"a", "b", "c"} {
				if random.IntN(3) > 0 {
					all = append(all, l.named(d, l.queue, fmt.Sprint(random.IntN(2)), name)...)
				}
			}
			sources.Replace(all)
			if random.IntN(3) == 0 {
				l.untilReady(sources)
			}
		}
	})
	reading.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				sources.Health()
				sources.Check("a", source.Request{Kind: source.Replay})
				sources.Changed([]job.Change{{Queue: "orders@b", Source: "b", State: job.Returning}})
			}
		}
	})
	sources.Start(l.store.Mirror, l.store.Sources, l.store.Sources)
	changing.Wait()
	changing.Go(func() { sources.Replace(l.named(d, l.queue, "last", "a", "b", "c")) })
	sources.Close()
	changing.Wait()
	close(over)
	reading.Wait()
	connections := 0
	for _, name := range []string{"a", "b", "c"} {
		opened, closed := d.times(name)
		if opened != closed {
			t.Errorf("%s was opened %d times and closed %d times", name, opened, closed)
		}
		connections += opened
	}
	if connections < 3 {
		t.Errorf("there were %d connections in all", connections)
	}
}
