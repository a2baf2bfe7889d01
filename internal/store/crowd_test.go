package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/store/counters"
	"redrive/internal/store/sqlite"
)

// A flood of causes fills the error groups. Once their jobs are gone, the oldest go
// before their time, so that a new cause has a group of its own again.
func TestPrune_MakesRoomForNewErrorGroups(t *testing.T) {
	s := open(t, Options{})
	poison := func(from, to int) {
		var all []job.Job
		for n := from; n < to; n++ {
			j := testJob("{}")
			j.Type = fmt.Sprintf("kind.%d", n)
			j.State, j.Reason, j.Error = job.Discarded, retry.MissingURN, job.ErrorInfo{Type: "poison", Message: "unread"}
			all = append(all, j)
		}
		for some := range slices.Chunk(all, 5000) {
			_, err := s.Enqueue(t.Context(), testTime, some)
			check(t, err)
		}
	}
	groups := func() (n int64, other bool) {
		tallies, err := s.Groups.Tallies(t.Context())
		check(t, err)
		for _, tally := range tallies {
			n += tally.Groups
		}
		_, err = s.Groups.Get(t.Context(), testTime, failures.OtherGroup)
		return n, err == nil
	}
	poison(0, failures.MaxGroups)
	if n, other := groups(); n != failures.MaxGroups || other {
		t.Fatalf("%d groups, other %v", n, other)
	}
	done, err := s.Prune(t.Context(), testTime.Add(time.Hour), retention.Limits{Age: 30 * 24 * time.Hour, Count: 1})
	check(t, err)
	if n, _ := groups(); n != failures.MaxGroups*9/10 || done.Groups != failures.MaxGroups/10 {
		t.Errorf("%d groups are left, %d were removed", n, done.Groups)
	}
	poison(failures.MaxGroups, failures.MaxGroups+1)
	if _, other := groups(); other {
		t.Error("a new cause has no group of its own")
	}
}

// A database that has more queues than a new limit allows goes on with them.
func TestQueues_BeyondALoweredLimitGoOn(t *testing.T) {
	s := open(t, Options{})
	in := func(names ...string) (all []job.Job) {
		for _, name := range names {
			j := testJob("{}")
			j.Queue = name
			all = append(all, j)
		}
		return all
	}
	_, err := s.Enqueue(t.Context(), testTime, in("a", "b", "c"))
	check(t, err)
	path := pathOf(t, s)
	check(t, s.Close())
	s = open(t, Options{Database: sqlite.File{Path: path}, Limits: counters.Limits{Queues: 2, Reserved: []string{"configured"}}})
	_, err = s.Enqueue(t.Context(), testTime, in("c", "a", "configured"))
	check(t, err)
	if _, err = s.Enqueue(t.Context(), testTime, in("c", "late")); !errors.As(err, new(*queues.Full)) {
		t.Errorf("a new queue: %v", err)
	}
	claimed, _, err := s.Exchange(t.Context(), nil, job.Claim{
		Now: testTime, Lease: time.Minute, Worker: "w", Free: map[string]int{"a": 9, "b": 9, "c": 9, "configured": 9},
	})
	check(t, err)
	if len(claimed) != 6 {
		t.Errorf("%d jobs were claimed, want 6", len(claimed))
	}
	check(t, s.Pause(t.Context(), testTime, "b", audit.Actor{Name: "ana"}))
}
