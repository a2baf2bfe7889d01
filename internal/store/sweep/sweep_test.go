package sweep_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/sqlite/sqlitetest"
)

var testTime = time.Date(2026, 3, 12, 12, 0, 0, 0, time.UTC)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) *store.Store {
	t.Helper()
	return openAt(t, sqlitetest.New(t))
}

func openAt(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: sqlite.File{Path: path, Relaxed: true}})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	return s
}

// deadLetters are jobs that came as dead letters.
func deadLetters(t *testing.T, s *store.Store, n int) {
	t.Helper()
	for range n {
		_, err := s.Enqueue(t.Context(), testTime, []job.Job{{Queue: "orders", Type: "email.send", State: job.Discarded, Reason: retry.MissingURN}})
		check(t, err)
	}
}

// edit changes a database that is open.
func edit(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(60000)") // the store writes, too
	check(t, err)
	_, err = db.Exec(statement)
	check(t, err)
	check(t, db.Close())
}

// cancelledJobs are jobs that were cancelled at the test's time.
func cancelledJobs(t *testing.T, s *store.Store, n int) []job.Job {
	t.Helper()
	var all []job.Job
	for range n {
		done, err := s.Enqueue(t.Context(), testTime, []job.Job{{Queue: "orders", Type: "email.send"}})
		check(t, err)
		_, err = s.Cancel(t.Context(), testTime, done[0].Job.ID, 1, audit.Actor{Name: "eve"})
		check(t, err)
		all = append(all, done[0].Job)
	}
	return all
}

// hour keeps cancelled jobs for an hour.
func hour() retention.Limits {
	return retention.Limits{Ages: retention.Ages{retention.Cancelled: time.Hour}, Said: map[retention.Kind]bool{retention.Cancelled: true}}
}

// What a sweep removed before it was cut short is in the entry of the next one.
func TestPrune_AuditsWhatASweepRemovedThatWasCutShort(t *testing.T) {
	s := open(t)
	jobs := cancelledJobs(t, s, 3)
	later := testTime.Add(2 * time.Hour)
	_, err := s.Sweep.RemoveDue(t.Context(), later, hour(), retention.Cancelled, []int64{jobs[0].Seq, jobs[1].Seq})
	check(t, err)
	done, err := s.Sweep.Prune(t.Context(), later, hour())
	check(t, err)
	list, err := s.Accounts.Audit(t.Context(), audit.Filter{Action: "retention.sweep"}, 0, 10)
	check(t, err)
	if done.Total() != 1 || len(list.Entries) != 1 || list.Entries[0].Count != 3 || list.Entries[0].After != "cancelled: 3 (orders 3)" {
		t.Errorf("%d jobs were removed by the second sweep, and the log says %+v", done.Total(), list.Entries)
	}
}

// What happens to a job between its reading and its removal keeps it.
func TestPrune_SparesWhatAPersonReplayedMeanwhile(t *testing.T) {
	s := open(t)
	jobs := cancelledJobs(t, s, 2)
	_, err := s.Replay(t.Context(), testTime, jobs[0].ID, 1, audit.Actor{Name: "eve"})
	check(t, err)
	later := testTime.Add(2 * time.Hour)
	removed, err := s.Sweep.RemoveDue(t.Context(), later, hour(), retention.Cancelled, []int64{jobs[0].Seq, jobs[1].Seq})
	check(t, err)
	if _, err := s.Job(context.Background(), jobs[0].ID); err != nil || removed.Total() != 1 {
		t.Errorf("%d jobs were removed; the replayed one: %v", removed.Total(), err)
	}
	if _, err := s.Job(context.Background(), jobs[1].ID); !errors.As(err, new(*retention.Removed)) {
		t.Errorf("the cancelled one: %v", err)
	}
}

// A forecast that cannot count everything announces nothing, and so nothing is removed of which
// no page and no log has told.
func TestForecast_ThatFailsAnnouncesNothing(t *testing.T) {
	path := sqlitetest.New(t)
	s := openAt(t, path)
	deadLetters(t, s, 5)
	limits := retention.Limits{Count: 2, Trash: time.Hour}
	discarded, err := s.Enqueue(t.Context(), testTime, []job.Job{{Queue: "orders", Type: "email.send"}})
	check(t, err)
	_, err = s.Discard(t.Context(), testTime, discarded[0].Job.ID, 1, audit.Actor{Name: "eve"})
	check(t, err)

	edit(t, path, `ALTER TABLE trash RENAME TO taken_away`)
	_, err = s.Sweep.Forecast(t.Context(), testTime, limits)
	if err == nil || len(s.Sweep.Retention().Kinds) != 0 {
		t.Fatalf("a forecast without the trash: %v, %+v", err, s.Sweep.Retention())
	}

	edit(t, path, `ALTER TABLE taken_away RENAME TO trash`)
	done, err := s.Sweep.Prune(t.Context(), testTime.Add(time.Minute), limits)
	check(t, err)
	if done.Total() != 0 {
		t.Errorf("removed without an announcement: %s", done)
	}
}

// Pages show what is kept although nothing can be written, and nothing is announced.
func TestForecast_OfADatabaseThatRefusesWritesIsComplete(t *testing.T) {
	path := sqlitetest.New(t)
	s := openAt(t, path)
	deadLetters(t, s, 5)
	limits := retention.Limits{Count: 2}

	edit(t, path, `CREATE TRIGGER refused BEFORE UPDATE ON removal_notice BEGIN SELECT RAISE(FAIL, 'refused'); END`)
	_, err := s.Sweep.Forecast(t.Context(), testTime, limits)
	if kept := s.Sweep.Retention().Of(retention.OverCount); err == nil || kept.Jobs != 3 || kept.Soon != 3 {
		t.Fatalf("a forecast without its notice: %v, %+v", err, kept)
	}

	edit(t, path, `DROP TRIGGER refused`)
	done, err := s.Sweep.Prune(t.Context(), testTime.Add(time.Minute), limits)
	check(t, err)
	if done.Total() != 0 {
		t.Errorf("removed without a notice: %s", done)
	}
}

// severalAges are ages of cancelled jobs by queue and type, with those for all.
func severalAges() retention.Limits {
	kept := func(age time.Duration) retention.Ages { return retention.Ages{retention.Cancelled: age} }
	return retention.Limits{
		Ages:   kept(48 * time.Hour),
		Queues: map[string]retention.Ages{"short": kept(time.Hour), "always": kept(0), "other": {retention.Completed: time.Hour}},
		Types: map[string]retention.Ages{
			"mail.send": kept(100 * time.Hour), "mail.*": kept(2 * time.Hour), "mail.bulk.*": kept(0), "école.*": kept(30 * time.Hour),
		},
		Said: map[retention.Kind]bool{retention.Cancelled: true},
	}
}

// cancelledIn are cancelled jobs of a queue and a type.
func cancelledIn(t *testing.T, s *store.Store, queue, typ string, n int) {
	t.Helper()
	for range n {
		done, err := s.Enqueue(t.Context(), testTime, []job.Job{{Queue: queue, Type: typ}})
		check(t, err)
		_, err = s.Cancel(t.Context(), testTime, done[0].Job.ID, 1, audit.Actor{Name: "eve"})
		check(t, err)
	}
}

// What a forecast counts is what a sweep removes a day later, whatever ages there are.
func TestForecast_CountsWhatTheSweepRemovesByEachAge(t *testing.T) {
	for _, after := range []time.Duration{0, 5 * time.Hour, 10 * time.Hour, 30 * time.Hour, 90 * time.Hour, 1000 * time.Hour} {
		s := open(t)
		for _, queue := range []string{"short", "always", "other", "shorter"} {
			for _, typ := range []string{"mail.send", "mail.sends", "mail.", "mail", "mail.bulk.now", "mail.bulk", "école.a", "écolé.a", "x"} {
				cancelledIn(t, s, queue, typ, 1)
			}
		}

		f, err := s.Sweep.Forecast(t.Context(), testTime.Add(after), severalAges())
		check(t, err)
		done, err := s.Sweep.Prune(t.Context(), testTime.Add(after+retention.Soon), severalAges())
		check(t, err)
		if soon := f.Of(retention.Cancelled).Soon; soon != done.Of(retention.Cancelled) || soon == 0 {
			t.Errorf("after %v, %d jobs were foreseen and %d removed", after, soon, done.Of(retention.Cancelled))
		}
	}
}

// Jobs that stay do not use up what a forecast counts.
func TestForecast_CountsUpToItsBoundOfThoseThatGo(t *testing.T) {
	s := open(t)
	s.Sweep.CountAtMost(4)
	cancelledIn(t, s, "always", "x", 9)

	foreseen := func(soon int64, more bool) {
		t.Helper()
		f, err := s.Sweep.Forecast(t.Context(), testTime, severalAges())
		check(t, err)
		if o := f.Of(retention.Cancelled); o.Soon != soon || o.More != more {
			t.Errorf("%d jobs go soon, and more: %v; want %d, %v", o.Soon, o.More, soon, more)
		}
	}
	cancelledIn(t, s, "short", "x", 1)
	cancelledIn(t, s, "other", "x", 9) // after two days
	cancelledIn(t, s, "other", "mail.x", 2)
	foreseen(3, false)
	cancelledIn(t, s, "short", "x", 1)
	foreseen(4, false)
	cancelledIn(t, s, "short", "x", 1)
	foreseen(4, true)
}
