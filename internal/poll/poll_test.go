package poll_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/poll"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/sqlsource"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
	"redrive/internal/store/db"
	"redrive/internal/store/mirror"
)

var ana = audit.Actor{Name: "ana"}

// bench is a store with one source.
type bench struct {
	*testing.T
	store   *store.Store
	sources *poll.Sources
	db      *sql.DB // of the source
	path    string  // of the source

	settings preset.Settings
}

// laravel makes a database of Laravel with the failed jobs of the fixture.
func laravel(t *testing.T) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "shop.sqlite")
	dump, err := os.ReadFile("../source/testdata/laravel/sqlite-dump.sql")
	check(t, err)
	db, err = sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	_, err = db.Exec(string(dump))
	check(t, err)
	_, err = db.Exec("UPDATE failed_jobs SET connection = 'database'") // some have failed on Redis
	check(t, err)
	return path, db
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newBench(t *testing.T) *bench {
	path, db := laravel(t)
	return dashboard(t, path, db)
}

// dashboard is one whose source is that database of Laravel.
func dashboard(t *testing.T, path string, db *sql.DB) *bench {
	return benchOf(t, path, db, "laravel", preset.Settings{Zone: "Europe/Berlin"})
}

// benchOf is a dashboard whose source is a database of another system.
func benchOf(t *testing.T, path string, db *sql.DB, name string, s preset.Settings) *bench {
	b := &bench{T: t, db: db, path: path, settings: s}
	p := preset.All()[name]
	var err error
	database := databasetest.Database(t)
	b.attach(path, p)
	b.store, err = store.Open(t.Context(), store.Options{
		Database: database,
		OnCommit: func(changes []job.Change) {
			b.sources.Changed(changes)
		},
		CheckSource: func(name string, w source.Request) string { return b.sources.Check(name, w) },
	})
	check(t, err)
	t.Cleanup(func() {
		check(t, b.store.Close())
		found, err := store.Examine(context.Background(), database)
		check(t, err)
		for _, f := range found {
			if f.Problem != "" {
				t.Errorf("doctor: %s: %s", f.What, f.Problem)
			}
		}
	})
	b.sources.Start(b.store.Mirror, b.store.Sources, b.store.Sources)
	t.Cleanup(b.sources.Close)
	return b
}

// attach makes the source.
func (b *bench) attach(path string, p *preset.Preset) {
	b.sources = poll.New([]poll.Attached{{
		Name: "shop", Preset: p, Profile: p.Profile, Allow: []source.Kind{source.Replay, source.Discard}, Every: 20 * time.Millisecond,
		Open: func(ctx context.Context) (source.Origin, error) {
			return sqlsource.Open(ctx, "sqlite://"+path, p, b.settings)
		},
	}}, func(s string) string { return s }, slog.New(slog.NewTextHandler(os.Stderr, nil)))
}

func (b *bench) deadLetters() []filter.DeadLetterRow {
	b.Helper()
	list, err := b.store.DeadLetters(b.Context(), filter.Filter{Status: job.StatusDeadLetter}, filter.Cursor{}, 100)
	check(b.T, err)
	return list.DeadLetters
}

func (b *bench) until(what string, happened func() bool) {
	b.Helper()
	for end := time.Now().Add(time.Minute); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("not within a minute: %s; health %+v", what, b.sources.Health())
		}
	}
}

func (b *bench) job(id string) job.Job {
	b.Helper()
	d, err := b.store.Job(b.Context(), id)
	check(b.T, err)
	return d.Job
}

func TestSources_MirrorDeadJobs(t *testing.T) {
	b := newBench(t)
	b.until("all six failed jobs are mirrored", func() bool { return len(b.deadLetters()) == 6 })
	first := b.deadLetters()[5].Job
	if first.Queue != "orders@shop" || first.Type != `App\Jobs\Charge` || first.Error.Type != `App\Jobs\Declined` ||
		first.Error.Message != "card declined: 51 for order 1" || first.Reason != retry.ReasonUnknown {
		t.Errorf("%+v", first)
	}
	if got := first.ChangedAt.Format(time.RFC3339); got != "2026-11-22T10:49:16Z" {
		t.Errorf("failed at %s", got)
	}
}

// counted is a store that counts the records that it is given.
type counted struct {
	*mirror.Mirror
	records atomic.Int64
}

func (c *counted) Update(ctx context.Context, now time.Time, name string, records []source.Record) (int, error) {
	c.records.Add(int64(len(records)))
	return c.Mirror.Update(ctx, now, name, records)
}

// Looks at a source of which nothing is new leave the store alone.
func TestSources_AQuietTableGivesTheStoreNothing(t *testing.T) {
	b := newBench(t)
	b.until("all are read", func() bool { return b.sources.Health()[0].Ready })
	b.sources.Close()
	c := &counted{Mirror: b.store.Mirror}
	b.attach(b.path, preset.All()["laravel"])
	b.sources.Start(c, b.store.Sources, b.store.Sources)
	t.Cleanup(b.sources.Close)
	for range 3 {
		last := b.sources.Health()[0].Polled
		b.until("it is looked at again", func() bool { return b.sources.Health()[0].Polled.After(last) })
	}
	if n := c.records.Load(); n != 0 {
		t.Errorf("the store was given %d records that it knew", n)
	}
}

func TestSources_ReplayPushesTheJobOnce(t *testing.T) {
	b := newBench(t)
	b.until("all six failed jobs are mirrored", func() bool { return len(b.deadLetters()) == 6 })
	j := b.deadLetters()[5].Job
	_, err := b.store.Replay(t.Context(), time.Now(), j.ID, 1, ana)
	check(t, err)
	count := func(query string) (n int) {
		check(t, b.db.QueryRow(query).Scan(&n))
		return n
	}
	b.until("the job is pushed", func() bool { return count("SELECT count(*) FROM failed_jobs") == 5 })
	b.until("the ledger says so", func() bool {
		acts, err := b.store.Sources.Acts(t.Context(), "shop", 10)
		check(t, err)
		return len(acts) == 1 && acts[0].State == source.Done
	})
	if got := b.job(j.ID); got.State != job.Returned || got.Run != 2 {
		t.Errorf("the job is %s in run %d", got.State, got.Run)
	}
	// The worker of the shop runs it, and it fails again.
	_, err = b.db.Exec(`INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at)
		SELECT json_extract(payload, '$.uuid'), 'database', queue, payload, 'App\Jobs\Declined: card declined: 99 for order 1 in /srv/app/jobs.php:10', datetime('now', '+1 hour') FROM jobs WHERE queue = 'orders';`)
	check(t, err)
	b.until("it has failed again", func() bool { return b.job(j.ID).Status() == job.StatusDeadLetter })
	if got := b.job(j.ID); got.Run != 2 || got.Error.Message != "card declined: 99 for order 1" {
		t.Errorf("run %d: %s", got.Run, got.Error.Message)
	}
}

func TestSources_WhatVanishesIsGone(t *testing.T) {
	b := newBench(t)
	b.until("all six failed jobs are mirrored", func() bool { return len(b.deadLetters()) == 6 })
	j := b.deadLetters()[5].Job
	_, err := b.db.Exec("DELETE FROM failed_jobs WHERE id = 1")
	check(t, err)
	b.until("the job is gone", func() bool { return b.job(j.ID).Reason == retry.GoneAtSource })
}

func TestSources_DiscardDeletesTheRecord(t *testing.T) {
	b := newBench(t)
	b.until("all six failed jobs are mirrored", func() bool { return len(b.deadLetters()) == 6 })
	j := b.deadLetters()[5].Job
	_, err := b.store.Discard(t.Context(), time.Now(), j.ID, 1, ana)
	check(t, err)
	b.until("the record is deleted", func() bool {
		n := 0
		check(t, b.db.QueryRow("SELECT count(*) FROM failed_jobs").Scan(&n))
		return n == 5
	})
}

func TestSources_AReplayThatIsRefusedComesBack(t *testing.T) {
	path, db := laravel(t)
	_, err := db.Exec(`UPDATE failed_jobs SET payload = '{"job":"cut' WHERE id = 6`)
	check(t, err)
	b := dashboard(t, path, db)
	b.until("the record with a payload that is cut is mirrored", func() bool { return len(b.deadLetters()) == 6 })
	cut := b.deadLetters()[0].Job
	_, err = b.store.Replay(t.Context(), time.Now(), cut.ID, 1, ana)
	check(t, err)
	b.until("the job is back", func() bool { return b.job(cut.ID).Status() == job.StatusDeadLetter && b.job(cut.ID).Run == 2 })
}

// Two dashboards that look at one system replay the same six records at the same time:
// each record is pushed once, by one of them, and the other one sees that it is gone.
func TestSources_TwoDashboardsReplayARecordOnce(t *testing.T) {
	path, db := laravel(t)
	both := []*bench{dashboard(t, path, db), dashboard(t, path, db)}
	count := func(query string) (n int) {
		check(t, db.QueryRow(query).Scan(&n))
		return n
	}
	waiting := count("SELECT count(*) FROM jobs")
	var ids [2][]string
	for i, b := range both {
		b.until("all six failed jobs are mirrored", func() bool { return len(b.deadLetters()) == 6 })
		for _, d := range b.deadLetters() {
			ids[i] = append(ids[i], d.Job.ID)
		}
	}
	for n := range ids[0] {
		for i, b := range both {
			_, err := b.store.Replay(t.Context(), time.Now(), ids[i][n], 1, ana)
			check(t, err)
		}
	}
	done := 0
	for i, b := range both {
		var acts []source.Act
		b.until("every act has ended", func() bool {
			var err error
			acts, err = b.store.Sources.Acts(t.Context(), "shop", 10)
			check(t, err)
			return len(acts) == 6 && !slices.ContainsFunc(acts, func(a source.Act) bool { return a.State.Open() })
		})
		for _, a := range acts {
			switch a.State {
			case source.Done:
				done++
			case source.Refused, source.Gone, source.Changed:
			default:
				t.Errorf("dashboard %d: an act is %s: %s", i, a.State, a.Why)
			}
		}
	}
	left := count("SELECT count(*) FROM failed_jobs")
	if pushed := count("SELECT count(*) FROM jobs") - waiting; pushed != done || left != 6-done || done == 0 {
		t.Errorf("%d replays are done, %d jobs were pushed, and %d of 6 failed jobs are left", done, pushed, left)
	}
}

func TestMirror_TwoRecordsOfOneLineageAreTwoJobs(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Database: databasetest.Database(t)})
	check(t, err)
	defer s.Close()
	record := func(key string) source.Record {
		return source.Record{Key: key, Lineage: "the same message", VersionToken: key, Queue: "orders", Type: "mail", Payload: []byte("{}")}
	}
	mirror := func(want int, records ...source.Record) {
		t.Helper()
		n, err := s.Mirror.Update(t.Context(), time.Now(), "shop", records)
		check(t, err)
		if n != want {
			t.Errorf("%d records are unseen, not %d", n, want)
		}
	}
	mirror(2, record("1"), record("2"))
	mirror(1, record("1"), record("2"), record("3"))
	mirror(0, record("1"), record("2"), record("3"))
}

// lookAgain waits until the source was looked at some more times.
func (b *bench) lookAgain(times int) {
	b.Helper()
	for range times {
		last := b.sources.Health()[0].Polled
		b.until("it is looked at again", func() bool { return b.sources.Health()[0].Polled.After(last) })
	}
}

// Rows of an own table that share a key are in quarantine, however often the table is looked
// at, on one page or on several. None of them is a job, and all others are one each.
func TestSources_RowsOfAnOwnTableWithOneKeyAreInQuarantine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.sqlite")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	_, err = db.Exec(`CREATE TABLE dead (id int, body text, died_at text);
		WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 699)
		INSERT INTO dead SELECT max(i, 200), '{}', '2026-11-22 10:00:' || i FROM n;
		INSERT INTO dead VALUES (NULL, '{}', 'noon'), (NULL, '{}', 'one')`)
	check(t, err)
	b := benchOf(t, path, db, "table", preset.Settings{Names: map[string]string{
		"table": "dead", "payload": "body", "witness": "died_at",
	}})
	b.until("all are read", func() bool { return b.sources.Health()[0].Ready })
	b.lookAgain(5)

	// The key 200 is that of 201 rows, which the first page of 500 rows would cut.
	n, _, err := b.store.Count(t.Context(), filter.Filter{}, 1000)
	check(t, err)
	apart := quarantined(b.sources)
	if n != 499 || len(apart) != 203 || !slices.Contains(apart, "200 (2026-11-22 10:00:7)") || !slices.Contains(apart, "no id (noon)") {
		t.Errorf("%d jobs; in quarantine %d: %q", n, len(apart), apart)
	}
	for _, d := range b.deadLetters() {
		if d.Job.Run != 1 {
			t.Errorf("the job %s is in run %d", d.Job.ID, d.Job.Run)
		}
	}
}

// sharedUUID is a table of failed jobs of Laravel that was made by hand, without a key. All
// of its rows but the first one have the same uuid.
func sharedUUID(t *testing.T) *bench {
	t.Helper()
	path, db := laravel(t)
	_, err := db.Exec(`CREATE TABLE loose AS SELECT * FROM failed_jobs; DROP TABLE failed_jobs; ALTER TABLE loose RENAME TO failed_jobs;
		UPDATE failed_jobs SET uuid = 'same' WHERE id <> 1`)
	check(t, err)
	return dashboard(t, path, db)
}

// Of the failures of Laravel with one uuid, the newest is shown. The others are in quarantine
// until it has left.
func TestSources_OfRowsOfLaravelWithOneUUIDTheNewestIsShown(t *testing.T) {
	b := sharedUUID(t)
	for _, want := range [][]string{{"same (2)", "same (3)", "same (4)", "same (5)"}, {"same (2)", "same (3)", "same (4)"}} {
		b.until("all but the newest are in quarantine", func() bool { return slices.Equal(quarantined(b.sources), want) })
		b.lookAgain(5)
		if got := quarantined(b.sources); !slices.Equal(got, want) {
			t.Errorf("in quarantine: %q, want %q", got, want)
		}
		if why := b.sources.Health()[0].Quarantined[0].Why; why != "A newer row of failed_jobs has the same uuid. This one is shown when that has left." {
			t.Error(why)
		}
		if n := len(b.deadLetters()); n != 2 {
			t.Fatalf("%d jobs", n)
		}
		newest := b.deadLetters()[0].Job
		_, err := b.store.Discard(t.Context(), time.Now(), newest.ID, newest.Run, ana)
		check(t, err)
		b.until("it has left", func() bool {
			return b.job(newest.ID).Status() == job.StatusTrashed || b.job(newest.ID).Run > newest.Run
		})
	}

	_, err := b.db.Exec("UPDATE failed_jobs SET uuid = uuid || id")
	check(t, err)
	b.until("all are shown", func() bool { return count(t, b.db) == len(b.deadLetters()) && b.sources.Health()[0].Quarantine() == 0 })
}

// listed is a system whose records are in a list, the newest first, in which a key can come
// more than once.
type listed struct {
	*queue
	records []source.Record
}

// add puts records before all others.
func (l *listed) add(records ...source.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(records, l.records...)
}

func (l *listed) Scan(_ context.Context, after string, limit int) (page source.Page, err error) {
	from := 0
	if after != "" {
		from, err = strconv.Atoi(after)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	to := min(from+limit, len(l.records))
	page.Records = slices.Clone(l.records[from:to])
	if to < len(l.records) {
		page.Next = strconv.Itoa(to)
	}
	return page, err
}

// A scan takes several rounds, and the newest records are read before each. Of the records that
// share a key, the first one counts, wherever the others are and whatever comes meanwhile.
func TestSources_OfTwoRecordsOfOneKeyOnOtherPagesNoneHasDiedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, database db.Database) {
		life := newLife(t, database, true)
		defer func() { check(t, life.store.Close()) }()
		l := &listed{queue: life.queue}
		for n := range 1600 {
			l.records = append(l.records, record(fmt.Sprintf("k%04d", n), "1"))
		}
		for _, n := range []int{10, 20, 700, 1300} {
			l.records[n] = record("shared", strconv.Itoa(2000-n))
		}
		for n := range 4 {
			l.records[1400+n] = record(fmt.Sprint("deep", n), "1")
		}
		life.open = func(context.Context) (source.Origin, error) { return l, nil }
		defer life.process(&crash{}).Close()
		runs := func(what string, shared, deep int) {
			t.Helper()
			for key, want := range map[string]int{"shared": shared, "deep0": deep, "deep1": deep, "deep2": deep, "deep3": deep} {
				list, err := life.store.Jobs(t.Context(), filter.Filter{Type: "charge " + key}, filter.Cursor{}, 10)
				check(t, err)
				if len(list.Jobs) != 1 || list.Jobs[0].Run != want {
					t.Errorf("%s: %d jobs of the key %s, the first in run %d, want %d", what, len(list.Jobs), key, list.Jobs[0].Run, want)
				}
			}
		}
		runs("at first", 1, 1)

		// Others come at the beginning of a scan, and in its midst.
		for n := range 6 {
			l.add(record(fmt.Sprint("new", n), "1"))
			time.Sleep(time.Second)
		}
		runs("when others have come", 1, 1)

		// Those that die again do so once each.
		for n := range 4 {
			l.add(record("shared", fmt.Sprint("again", n)), record(fmt.Sprint("deep", n), "again"))
			time.Sleep(3 * time.Second)
		}
		runs("when they have died again", 5, 2)
	})
}
