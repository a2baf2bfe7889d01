package poll_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redrive/internal/clip"
	"redrive/internal/fault"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/poll"
	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/store/db"
)

// quarantined are the keys of the records in quarantine.
func quarantined(s *poll.Sources) (keys []string) {
	for _, q := range s.Health()[0].Quarantined {
		keys = append(keys, q.Key)
	}
	slices.Sort(keys)
	return keys
}

// TestSource_AKeyThatIsNoTextStopsNoOther has a producer who chooses Laravel's uuid. The
// record is shown like any other, and is replayed and discarded.
func TestSource_AKeyThatIsNoTextStopsNoOther(t *testing.T) {
	b := newBench(t)
	b.until("the fixture is read", func() bool { return b.sources.Health()[0].Ready })
	before := len(b.deadLetters())
	odd := []string{"'a' || char(0) || 'b'", "CAST(x'ff00fe' AS TEXT)", "'well'"}
	for _, key := range odd {
		_, err := b.db.Exec(`INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at)
			SELECT ` + key + `, connection, queue, payload, exception, failed_at FROM failed_jobs LIMIT 1`)
		check(t, err)
	}
	b.until("all of them are shown", func() bool { return len(b.deadLetters()) == before+len(odd) })

	// Another one that comes later is shown too, and each can be discarded.
	for range 3 {
		polled := b.sources.Health()[0].Polled
		b.until("another look", func() bool { return b.sources.Health()[0].Polled.After(polled) })
	}
	if h := b.sources.Health()[0]; h.Problem != "" || h.Quarantine() != 0 {
		t.Errorf("%q, %+v", h.Problem, h.Quarantined)
	}
	for _, l := range b.deadLetters() {
		_, err := b.store.Discard(t.Context(), time.Now(), l.Job.ID, l.Job.Run, ana)
		check(t, err)
	}
	b.until("nothing is left there", func() bool { return count(t, b.db) == 0 })
}

func count(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	check(t, db.QueryRow("SELECT count(*) FROM failed_jobs").Scan(&n))
	return n
}

// picky is a store that refuses some records, as one does whose schema they do not fit.
type picky struct {
	poll.Store
	panics  bool // instead of an error
	mu      sync.Mutex
	refuses map[string]bool
	calls   int
}

func (p *picky) Update(ctx context.Context, now time.Time, name string, records []source.Record) (int, error) {
	p.mu.Lock()
	p.calls++
	refused := slices.ContainsFunc(records, func(r source.Record) bool { return p.refuses[r.Key] })
	p.mu.Unlock()
	if refused && p.panics {
		panic("a nil map")
	}
	if refused {
		return 0, errors.New("CHECK constraint failed")
	}
	return p.Store.Update(ctx, now, name, records)
}

func (p *picky) refuse(keys ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = map[string]bool{}
	for _, k := range keys {
		p.refuses[k] = true
	}
}

// manyRecords is a system with many records, some of which end a codec in a panic.
type manyRecords struct {
	*queue
	mu      sync.Mutex
	keys    []string
	panics  map[string]bool
	refuses []source.Refusal
}

func (c *manyRecords) Scan(context.Context, string, int) (page source.Page, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range c.keys {
		page.Records = append(page.Records, record(key, "1"))
	}
	page.Refused = c.refuses
	panics := c.panics
	page.Read = func(r *source.Record) {
		if panics[r.Key] {
			panic("index out of range")
		}
	}
	return page, nil
}

// Find knows what is there.
func (c *manyRecords) Find(_ context.Context, acts []source.Act) (all []source.Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range acts {
		r := source.Result{ID: a.ID, State: source.Gone}
		if slices.Contains(c.keys, a.Key) {
			r.State = source.Asked
		}
		all = append(all, r)
	}
	return all, nil
}

// TestSource_ARecordThatCannotBeTakenOverIsQuarantinedAlone refuses three of fifty records,
// each for another reason, and lets them be well again one after the other.
func TestSource_ARecordThatCannotBeTakenOverIsQuarantinedAlone(t *testing.T) {
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		l.every = 10 * time.Second
		defer func() { check(t, l.store.Close()) }()
		c := &manyRecords{queue: l.queue, panics: map[string]bool{"k-20": true}, refuses: []source.Refusal{source.TooLarge("huge", 20_000_000)}}
		for i := range 50 {
			c.keys = append(c.keys, fmt.Sprintf("k-%02d", i))
		}
		store := &picky{Store: l.store.Mirror}
		store.refuse("k-07", "k-31")
		sources := l.attached(c)
		sources.Start(store, l.store.Sources, l.store.Sources)
		defer sources.Close()
		shown := func() int {
			list, err := l.store.DeadLetters(t.Context(), filter.Filter{Status: job.StatusDeadLetter}, filter.Cursor{}, 100)
			check(t, err)
			return len(list.DeadLetters)
		}

		time.Sleep(time.Minute)
		h := sources.Health()[0]
		if h.Problem != "" || h.Standing(time.Now()) != source.Current || shown() != 47 {
			t.Errorf("%q, %s, %d records are shown", h.Problem, h.Standing(time.Now()), shown())
		}
		if got := quarantined(sources); !slices.Equal(got, []string{"huge", "k-07", "k-20", "k-31"}) {
			t.Errorf("%q", got)
		}
		if i := slices.IndexFunc(h.Quarantined, func(q source.Quarantined) bool { return q.Key == "k-07" }); !strings.Contains(h.Quarantined[i].Why, "CHECK constraint failed") {
			t.Errorf("%+v", h.Quarantined[i])
		}

		// The store takes one of them after some time, one can be read, and the others leave.
		store.refuse("k-31")
		c.mu.Lock()
		c.panics, c.refuses = nil, nil
		c.keys = slices.DeleteFunc(c.keys, func(key string) bool { return key == "k-31" })
		c.mu.Unlock()
		time.Sleep(20 * time.Minute)
		if got := quarantined(sources); len(got) != 0 || shown() != 49 {
			t.Errorf("%q, %d are shown", got, shown())
		}
	})
}

// TestSource_ARecordThatNoStoreCouldKeepIsQuarantined has one of each kind, beside others.
func TestSource_ARecordThatNoStoreCouldKeepIsQuarantined(t *testing.T) {
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		defer func() { check(t, l.store.Close()) }()
		long := strings.Repeat("x", 3000)
		records := map[string]source.Record{}
		for _, key := range []string{"well", "lineage", "place", "version", "payload", "panic", "odd", "even", long} {
			records[key] = record(key, "1")
		}
		change := func(key string, do func(r *source.Record)) {
			r := records[key]
			do(&r)
			records[key] = r
		}
		change("lineage", func(r *source.Record) { r.Lineage = long })
		change("place", func(r *source.Record) { r.Place = long[:1001] })
		change("version", func(r *source.Record) { r.VersionToken = long })
		change("payload", func(r *source.Record) { r.Payload = make([]byte, 2*source.MaxRecord+1) })
		change("odd", func(r *source.Record) { r.Lineage = "\x00\xff" })
		change("even", func(r *source.Record) { r.Lineage = "\x00\xfe" })
		p := &paged{queue: l.queue, pages: 1, before: func(int) {}}
		p.page = func(int) source.Page { return source.Page{Records: slices.Collect(maps.Values(records))} }
		store := &picky{Store: l.store.Mirror, panics: true}
		store.refuse("panic")
		sources := l.attached(p)
		sources.Start(store, l.store.Sources, l.store.Sources)
		defer sources.Close()
		time.Sleep(10*time.Second + time.Second/2)

		why := map[string]string{}
		for _, q := range sources.Health()[0].Quarantined {
			why[q.Key] = q.Why
		}
		for key, want := range map[string]string{
			clip.Text(long, 1000): "Its key has 3 kB, which is larger than the limit of 1 kB.", "lineage": "Its job's name has 3 kB",
			"place": "Its place's name has 1001 bytes, which is larger than the limit of 1000 bytes.", "version": "Its version has 3 kB", "payload": "larger than the limit of 16000000 bytes",
			"panic": "It cannot be kept: panic: a nil map",
		} {
			if !strings.Contains(why[key], want) {
				t.Errorf("%.20s is in quarantine because of %q, want %q", key, why[key], want)
			}
		}
		if h := sources.Health()[0]; h.Problem != "" || len(why) != 6 {
			t.Errorf("%q, %d records in quarantine", h.Problem, len(why))
		}
		runs := func(want map[string]int) {
			t.Helper()
			got := map[string]int{}
			for kind, j := range l.all() {
				got[kind] = j.Run
			}
			if !maps.Equal(got, want) {
				t.Errorf("the runs are %v, want %v", got, want)
			}
		}
		runs(map[string]int{"charge well": 1, "charge odd": 1, "charge even": 1})

		// A name of a job that is no text is the same one each time, and that of no other job.
		p.mu.Lock()
		for _, key := range []string{"odd", "even"} {
			change(key, func(r *source.Record) { r.Key, r.VersionToken = "later "+r.Key, "2" })
		}
		p.mu.Unlock()
		time.Sleep(10 * time.Second)
		runs(map[string]int{"charge well": 1, "charge odd": 2, "charge even": 2})
	})
}

// TestSource_ItsQuarantineIsBounded counts what it does not list.
func TestSource_ItsQuarantineIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		defer func() { check(t, l.store.Close()) }()
		c := &manyRecords{queue: l.queue}
		for i := range 1500 {
			c.refuses = append(c.refuses, source.Refusal{Key: fmt.Sprintf("%04d%s", i, strings.Repeat("x", 1200)), Why: strings.Repeat("y", 600)})
		}
		sources := l.attached(c)
		sources.Start(l.store.Mirror, l.store.Sources, l.store.Sources)
		defer sources.Close()
		time.Sleep(3 * time.Second)
		h := sources.Health()[0]
		if len(h.Quarantined) != 1000 || h.Quarantine() != 1500 {
			t.Errorf("%d of %d are listed", len(h.Quarantined), h.Quarantine())
		}
		if q := h.Quarantined[0]; len(q.Key) > 1000 || len(q.Why) > 500 {
			t.Errorf("a key of %d bytes, a reason of %d", len(q.Key), len(q.Why))
		}
	})
}

// paged is a system of many pages, which are asked for in turn.
type paged struct {
	*queue
	pages  int
	page   func(n int) source.Page
	before func(n int) // a page is read
}

func (p *paged) Scan(_ context.Context, after string, _ int) (page source.Page, err error) {
	n := 0
	if after != "" {
		if n, err = strconv.Atoi(after); err != nil {
			return page, err
		}
	}
	p.before(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	page = p.page(n)
	if n+1 < p.pages {
		page.Next = strconv.Itoa(n + 1)
	}
	return page, nil
}

// refusals are a page of records that cannot be read.
func refusals(n, many int) (page source.Page) {
	for i := range many {
		page.Refused = append(page.Refused, source.Refusal{Key: fmt.Sprintf("%d-%d", n, i), Why: "It cannot be read."})
	}
	return page
}

// TestSource_ActsWaitForNoMoreThanASliceOfRefusedRecords asks for a discard while a source is
// read that has little but records that cannot be taken over.
func TestSource_ActsWaitForNoMoreThanASliceOfRefusedRecords(t *testing.T) {
	const pages = 40
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		defer func() { check(t, l.store.Close()) }()
		early, first := false, true // the discard took place before the last page was read first
		p := &paged{queue: l.queue, pages: pages}
		p.page = func(n int) source.Page {
			page := refusals(n, 500)
			if n == 0 {
				page.Records = []source.Record{record("k0", "1")}
			}
			return page
		}
		p.before = func(n int) {
			switch present, _ := l.queue.now(); {
			case n == 3 && present == 3 && len(l.acts()) == 0: // the first page is in the store
				_, err := l.store.Discard(t.Context(), time.Now(), l.all()["charge k0"].ID, 1, ana)
				check(t, err)
			case n == pages-1 && first:
				early, first = present == 2, false
			}
		}
		l.open = func(context.Context) (source.Origin, error) { return p, nil }
		defer l.process(&crash{}).Close()
		if !early {
			t.Error("the discard waited until everything was read")
		}
	})
}

// TestSource_TheCountOfItsQuarantineStaysTheSame has more records than a look reads, of which
// more are refused than are listed: the newest are read at every look.
func TestSource_TheCountOfItsQuarantineStaysTheSame(t *testing.T) {
	const many = 300
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		defer func() { check(t, l.store.Close()) }()
		p := &paged{queue: l.queue, pages: 4, before: func(int) {}}
		p.page = func(n int) source.Page { return refusals(p.pages-n, many) }
		sources := l.attached(p)
		sources.Start(l.store.Mirror, l.store.Sources, l.store.Sources)
		defer sources.Close()
		time.Sleep(6 * time.Second)

		// Those that come now are not listed.
		p.mu.Lock()
		p.pages = 8
		p.mu.Unlock()
		for range 3 {
			time.Sleep(6 * time.Second)
			if h := sources.Health()[0]; h.Quarantine() != 8*many {
				t.Errorf("%d records in quarantine, want %d", h.Quarantine(), 8*many)
			}
		}
	})
}

// TestSource_ARecordThatTheStoreRefusedIsTriedAgainLater is about those, too, that are too
// many to be listed.
func TestSource_ARecordThatTheStoreRefusedIsTriedAgainLater(t *testing.T) {
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		l.every = 15 * time.Second
		defer func() { check(t, l.store.Close()) }()
		c := &manyRecords{queue: l.queue, refuses: refusals(0, 1000).Refused}
		var keys []string
		for i := range 20 {
			keys = append(keys, fmt.Sprintf("k-%02d", i))
		}
		c.keys = keys
		store := &picky{Store: l.store.Mirror}
		store.refuse(keys...)
		calls := func() int {
			store.mu.Lock()
			defer store.mu.Unlock()
			return store.calls
		}
		sources := l.attached(c)
		sources.Start(store, l.store.Sources, l.store.Sources)
		defer sources.Close()
		time.Sleep(30 * time.Second)
		first := calls()
		time.Sleep(5 * time.Minute)
		if n := calls(); n != first || sources.Health()[0].Quarantine() != 1020 {
			t.Errorf("%d tries more, %d records in quarantine", n-first, sources.Health()[0].Quarantine())
		}

		// After a while they are tried again, and the store takes them.
		store.refuse()
		time.Sleep(10 * time.Minute)
		if n := sources.Health()[0].Quarantine(); n != 1000 {
			t.Errorf("%d records in quarantine", n)
		}
	})
}

// weighing is a store that notes how many bytes of payloads it was given at once.
type weighing struct {
	poll.Store
	mu    sync.Mutex
	steps []int
}

func (w *weighing) Update(ctx context.Context, now time.Time, name string, records []source.Record) (int, error) {
	bytes := 0
	for i := range records {
		bytes += len(records[i].Payload)
	}
	w.mu.Lock()
	w.steps = append(w.steps, bytes)
	w.mu.Unlock()
	return w.Store.Update(ctx, now, name, records)
}

// heavy is a system whose records have payloads of 1.5 MB.
type heavy struct{ *queue }

func (h heavy) Scan(ctx context.Context, after string, limit int) (source.Page, error) {
	page, err := h.queue.Scan(ctx, after, limit)
	payload := []byte(`"` + strings.Repeat("x", 1_500_000) + `"`)
	for i := range page.Records {
		page.Records[i].Payload = payload
	}
	return page, err
}

// TestSource_APageOfLargeRecordsGoesToTheStoreInSteps: others write in between.
func TestSource_APageOfLargeRecordsGoesToTheStoreInSteps(t *testing.T) {
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		defer func() { check(t, l.store.Close()) }()
		for i := range 4 {
			l.queue.die(fmt.Sprint("more", i), "1")
		}
		kept := &weighing{Store: l.store.Mirror}
		sources := l.attached(heavy{l.queue})
		sources.Start(kept, l.store.Sources, l.store.Sources)
		time.Sleep(3 * time.Second)
		sources.Close()
		if n := len(l.all()); n != 7 || len(kept.steps) < 4 || slices.Max(kept.steps) > 4_000_000 {
			t.Errorf("%d jobs in steps of %d bytes", n, kept.steps)
		}
	})
}

// full is a store without room.
type full struct{ poll.Store }

func (full) Update(context.Context, time.Time, string, []source.Record) (int, error) {
	return 0, fmt.Errorf("mirror: %w", fault.ErrStorageFull)
}

// TestSource_AFaultOfThisSideIsNotTheSources: it answers, and the disk here is full.
func TestSource_AFaultOfThisSideIsNotTheSources(t *testing.T) {
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		defer func() { check(t, l.store.Close()) }()
		sources := l.attached(&manyRecords{queue: l.queue, keys: []string{"a", "b"}})
		sources.Start(full{l.store.Mirror}, l.store.Sources, l.store.Sources)
		defer sources.Close()
		time.Sleep(time.Minute)
		h := sources.Health()[0]
		if !h.Own || h.Standing(time.Now()) != source.Blocked || !strings.Contains(h.Problem, "disk is full") || h.Quarantine() != 0 {
			t.Errorf("%+v", h)
		}
	})
}

// TestSource_OneSlowLookMakesItLateAndNothingElse: the next look is not put off for it, and
// what is shown meanwhile is not called current.
func TestSource_OneSlowLookMakesItLateAndNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		l.every = 10 * time.Second
		defer func() { check(t, l.store.Close()) }()
		g := &guest{queue: l.queue}
		l.open = func(context.Context) (source.Origin, error) { return g, nil }
		sources := l.attached(g)
		sources.Start(l.store.Mirror, l.store.Sources, l.store.Sources)
		defer sources.Close()
		time.Sleep(65 * time.Second) // between two looks
		h := sources.Health()[0]
		if h.Standing(time.Now()) != source.Current || h.Next.Before(time.Now()) || time.Until(h.Next) > l.every {
			t.Errorf("%s, the next look is at %s", h.Standing(time.Now()), h.Next)
		}

		g.mu.Lock()
		g.slow = 20 * time.Second // each answer
		g.mu.Unlock()
		time.Sleep(22 * time.Second) // the look has begun after 5 s
		if h = sources.Health()[0]; h.Standing(time.Now()) != source.Late || !h.Next.IsZero() {
			t.Errorf("in a slow look: %s, next %s", h.Standing(time.Now()), h.Next)
		}
		time.Sleep(5 * time.Second)
		if h = sources.Health()[0]; h.Standing(time.Now()) != source.Current || time.Until(h.Next) > l.every {
			t.Errorf("after it: %s, next %s", h.Standing(time.Now()), h.Next)
		}
	})
}

// attached is a source that is not started.
func (l *life) attached(o source.Origin) *poll.Sources {
	return poll.New([]poll.Attached{{
		Name: "shop", Preset: preset.All()["sidekiq"], Every: l.every,
		Open: func(context.Context) (source.Origin, error) { return o, nil },
	}}, func(s string) string { return s }, slog.New(slog.DiscardHandler))
}

// TestSource_LargeRecordsComeAndHugeOnesAreQuarantined fills the dead set of Sidekiq with
// both, beside small ones.
func TestSource_LargeRecordsComeAndHugeOnesAreQuarantined(t *testing.T) {
	b, client := newRedisBench(t, "sidekiq", "sidekiq/redis-commands.json")
	b.until("the fixture is read", func() bool { return b.sources.Health()[0].Ready })
	before := len(b.deadLetters())
	add := func(name string, bytes int) {
		text := fmt.Sprintf(`{"class":%q,"args":["%s"],"queue":"default","jid":%q,"retry_count":3,"failed_at":1}`, name, strings.Repeat("x", bytes), name)
		check(t, client.ZAdd(t.Context(), "dead", redis.Z{Score: float64(time.Now().Unix()), Member: text}).Err())
	}
	for i := range 4 {
		if i < 2 {
			add(fmt.Sprintf("Huge%d", i), 8_100_000)
		}
		add(fmt.Sprintf("Large%d", i), 600_000)
		add(fmt.Sprintf("Small%d", i), 10)
	}
	b.until("all that can be taken over is", func() bool { return len(b.deadLetters()) == before+8 && len(quarantined(b.sources)) == 2 })
	h := b.sources.Health()[0]
	if h.Problem != "" || h.Quarantined[0].Why != "It has 8.1 MB, which is larger than the limit of 8.0 MB for a record." {
		t.Errorf("%q, %+v", h.Problem, h.Quarantined[0])
	}

	// One that is removed there is not in quarantine any more.
	check(t, client.ZRemRangeByRank(t.Context(), "dead", 0, -1).Err())
	b.until("the quarantine is empty", func() bool { return len(quarantined(b.sources)) == 0 })
}

// sharing is a system whose records can have the same key.
type sharing struct{ *paged }

func (s sharing) Check(context.Context) (source.Report, error) {
	return source.Report{Shared: "A newer one has the same key."}, nil
}

// Records that come while a scan is under way are read first, from several pages. The older
// one of a pair on a later page is no run of the newer one that died again.
func TestSource_OfTwoRecordsOfOneKeyOnTwoPagesTheFirstIsShown(t *testing.T) {
	const many = 300
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		defer func() { check(t, l.store.Close()) }()
		p := &paged{queue: l.queue, pages: 5}
		p.page = func(n int) (page source.Page) {
			for i := range many {
				page.Records = append(page.Records, record(fmt.Sprintf("%d-%d", p.pages-n, i), "1"))
			}
			if p.pages == 7 && n < 2 { // the new ones
				page.Records[0] = record("pair", strconv.Itoa(2-n))
			}
			return page
		}
		reads := 0
		p.before = func(n int) {
			if n != 3 {
				return
			}
			if reads++; reads == 2 { // after the first scan, the last page of a look
				p.mu.Lock()
				p.pages = 7
				p.mu.Unlock()
			}
		}
		sources := l.attached(sharing{p})
		sources.Start(l.store.Mirror, l.store.Sources, l.store.Sources)
		defer sources.Close()
		time.Sleep(15 * time.Second)

		pair, err := l.store.Jobs(t.Context(), filter.Filter{Type: "charge pair"}, filter.Cursor{}, 10)
		check(t, err)
		if reads < 2 || len(pair.Jobs) != 1 || pair.Jobs[0].Run != 1 || !slices.Equal(quarantined(sources), []string{"pair (1)"}) {
			t.Errorf("after %d passes, in quarantine are %q, and shown %+v", reads, quarantined(sources), pair.Jobs)
		}
	})
}
