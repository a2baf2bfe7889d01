package sweep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/retention"
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
	s, err := store.Open(t.Context(), store.Options{Database: sqlite.File{Path: sqlitetest.New(t), Relaxed: true}})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	return s
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
