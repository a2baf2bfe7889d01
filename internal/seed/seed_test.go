package seed_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/seed"
	"redrive/internal/store"
	"redrive/internal/store/sqlite"
)

var now = time.Date(2026, 3, 12, 14, 2, 11, 0, time.UTC)

func write(t *testing.T, c seed.Plan) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: sqlite.File{Path: filepath.Join(t.TempDir(), "seed.db"), Relaxed: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	told := 0
	if err := c.Write(t.Context(), s, s.Search, func(done, _ int) { told = done }); err != nil {
		t.Fatal(err)
	}
	if told != c.Jobs {
		t.Errorf("the last progress was %d, want %d", told, c.Jobs)
	}
	return s
}

// As many jobs as were asked for, exactly as many dead ones, all of them over,
// some only at their second attempt; and the same again from the same seed.
func TestPlan_IsAsLargeAndAsDeadAsAsked(t *testing.T) {
	c := seed.Plan{Jobs: 4001, Dead: 407, Seed: 5, Now: now}
	s, again := write(t, c), write(t, c)
	depths := s.Snapshot().Depths
	if depths.Jobs() != 4001 || depths[job.StatusDeadLetter] != 407 || depths[job.Status(job.Completed)] != 4001-407 {
		t.Errorf("%d jobs: %v", depths.Jobs(), depths)
	}
	totals := s.Snapshot().Totals
	if totals.Requeued <= 407 || totals.FailedPermanently != 407 {
		t.Errorf("totals %+v, want more that were retried than died", totals)
	}
	if totals != again.Snapshot().Totals {
		t.Errorf("the same seed wrote %+v and %+v", totals, again.Snapshot().Totals)
	}
	if a, b := newest(t, s), newest(t, again); a.ID != b.ID || a.Error != b.Error || string(a.Payload) != string(b.Payload) {
		t.Errorf("the same seed wrote %+v and %+v", a, b)
	}
}

func newest(t *testing.T, s *store.Store) job.Job {
	t.Helper()
	list, err := s.Jobs(t.Context(), filter.Filter{Status: job.StatusDeadLetter}, filter.Cursor{}, 1)
	if err != nil || len(list.Jobs) != 1 {
		t.Fatal(list, err)
	}
	return list.Jobs[0]
}

// What died can be searched.
func TestPlan_CanBeSearched(t *testing.T) {
	s := write(t, seed.Plan{Jobs: 500, Dead: 50, Seed: 5, Now: now})
	if n, err := s.Search.Update(t.Context()); n != 0 || err != nil {
		t.Errorf("%d failures were not searchable, %v", n, err)
	}
	all, err := s.Jobs(t.Context(), filter.Filter{Status: job.StatusDeadLetter}, filter.Cursor{}, 1)
	if err != nil || len(all.Jobs) != 1 {
		t.Fatalf("%d dead jobs, %v", len(all.Jobs), err)
	}
	dead := all.Jobs[0]
	found, err := s.Jobs(t.Context(), filter.Filter{Text: dead.Error.Message}, filter.Cursor{}, 50)
	if err != nil || !slices.ContainsFunc(found.Jobs, func(j job.Job) bool { return j.ID == dead.ID }) {
		t.Errorf("%q finds %d jobs, %v; want that which failed so", dead.Error.Message, len(found.Jobs), err)
	}
}
