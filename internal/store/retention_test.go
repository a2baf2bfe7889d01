package store

import (
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/store/db"
)

// cancelledJobs are jobs that were cancelled at the test's time.
func cancelledJobs(t *testing.T, s *Store, n int) []job.Job {
	t.Helper()
	var all []job.Job
	for _, e := range enqueue(t, s, n) {
		_, err := s.Cancel(t.Context(), testTime, e.Job.ID, 1, audit.Actor{Name: "eve"})
		check(t, err)
		all = append(all, e.Job)
	}
	return all
}

// hours keeps cancelled jobs for an hour; said tells whether a person wrote that down.
func hours(said bool) retention.Limits {
	return retention.Limits{Ages: retention.Ages{retention.Cancelled: time.Hour}, Said: map[retention.Kind]bool{retention.Cancelled: said}}
}

func TestPrune_LeavesADatabaseThatIsNewToTheDefaultsAloneForADay(t *testing.T) {
	s := open(t, Options{})
	cancelledJobs(t, s, 3)
	began := testTime.Add(1000 * time.Hour)
	err := s.writer.Do(t.Context(), 1, func(tx *db.Tx) error {
		return tx.ExecExactly(1, `UPDATE retention_notice SET since = $1`, db.Micros(began))
	})
	check(t, err)
	sweep := func(at time.Time, said bool) int64 {
		done, err := s.Sweep.Prune(t.Context(), at, hours(said))
		check(t, err)
		return done.Total()
	}
	f, err := s.Sweep.Forecast(t.Context(), began, hours(false))
	check(t, err)
	if !f.Since.Equal(began.Add(24*time.Hour)) || f.Of(retention.Cancelled).Soon != 3 {
		t.Errorf("forecast %+v", f)
	}
	if n := sweep(began.Add(23*time.Hour), false); n != 0 {
		t.Errorf("%d jobs were removed within the day", n)
	}
	if n := sweep(began.Add(23*time.Hour), true); n != 3 {
		t.Errorf("%d jobs were removed for a time that a person wrote down, want 3", n)
	}
	cancelledJobs(t, s, 2)
	if n := sweep(began.Add(25*time.Hour), false); n != 2 {
		t.Errorf("%d jobs were removed after the day, want 2", n)
	}
}
