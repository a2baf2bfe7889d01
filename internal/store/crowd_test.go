package store

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/store/counters"
	"redrive/internal/store/sqlite"
)

// A flood of causes fills the error groups. Once their jobs are gone, the oldest go
// before their time, so that a new cause has a group of its own again.
func TestPrune_MakesRoomForNewErrorGroups(t *testing.T) {
	const most = 100
	s := open(t, Options{Groups: most})
	poison := func(from, to int) {
		var all []job.Job
		for n := from; n < to; n++ {
			j := testJob("{}")
			j.Type = fmt.Sprintf("kind.%d", n)
			j.State, j.Reason, j.Error = job.Discarded, retry.MissingURN, job.ErrorInfo{Type: "poison", Message: "unread"}
			all = append(all, j)
		}
		_, err := s.Enqueue(t.Context(), testTime, all)
		check(t, err)
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
	poison(0, most)
	if n, other := groups(); n != most || other {
		t.Fatalf("%d groups, other %v", n, other)
	}
	limits := retention.Limits{Ages: retention.Ages{retention.DeadLetters: 30 * 24 * time.Hour}, Count: 1}
	_, err := s.Sweep.Forecast(t.Context(), testTime.Add(time.Hour), limits)
	check(t, err)
	done, err := s.Sweep.Prune(t.Context(), testTime.Add(time.Hour), limits)
	check(t, err)
	if n, _ := groups(); n != most*9/10 || done.Groups != most/10 {
		t.Errorf("%d groups are left, %d were removed", n, done.Groups)
	}
	poison(most, most+1)
	if _, other := groups(); other {
		t.Error("a new cause has no group of its own")
	}
}

// Types beyond the limit are counted together. A type that was told apart stays so,
// whatever the limit is later.
func TestTypes_AreToldApartUpToTheLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	of := func(limit int, types ...string) map[string]int64 {
		s := open(t, Options{Database: sqlite.File{Path: path}, Limits: counters.Limits{Types: limit}})
		for _, typ := range types {
			j := testJob("{}")
			j.Type, j.State, j.Reason = typ, job.Discarded, retry.MissingURN
			_, err := s.Enqueue(t.Context(), testTime, []job.Job{j})
			check(t, err)
		}
		f, err := s.Counters.Facets(t.Context(), filter.Filter{Status: job.StatusDeadLetter})
		check(t, err)
		counted := map[string]int64{"told apart": int64(s.Counters.CountedTypes())}
		for _, c := range f.Types {
			counted[c.Name] = c.Count
		}
		check(t, s.Close())
		return counted
	}
	if got, want := of(2, "a", "b", "c", "d"), map[string]int64{"a": 1, "b": 1, "other": 2, "told apart": 2}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := of(1, "a", "b", "e"), map[string]int64{"a": 2, "b": 2, "other": 3, "told apart": 2}; !maps.Equal(got, want) {
		t.Errorf("with a lower limit %v, want %v", got, want)
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
	full := new(queues.Full)
	if _, err = s.Enqueue(t.Context(), testTime, in("c", "late")); !errors.As(err, &full) || full.Count != 5 || full.Limit != 2 {
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

// More queues, types and causes of a source than it has places for are counted in and out as
// they are.
func TestMirror_CountsOfManyNamesMatchTheirJobs(t *testing.T) {
	s := open(t, Options{Groups: 100, Limits: counters.Limits{Queues: 5, Types: 5}})
	var records []source.Record
	for i := range 150 {
		name := fmt.Sprintf("n%c%c", 'a'+i/26, 'a'+i%26)
		records = append(records, source.Record{Key: name, Queue: name, Type: name, Error: job.ErrorInfo{Type: name}, FailedAt: testTime})
	}
	_, err := s.Mirror.Update(t.Context(), testTime, "shop", records)
	check(t, err)
	enqueue(t, s, 1)
	if n := s.Groups.Size(); n != 1 {
		t.Errorf("%d groups, want the one for all others", n)
	}
	if got := problems(t, pathOf(t, s)); len(got) > 0 {
		t.Errorf("mirrored: %q", got)
	}

	all, err := s.Sources.PresentKeys(t.Context(), "shop", testTime.Add(time.Hour), 0, 1000)
	check(t, err)
	seqs := make([]int64, len(all))
	for i, named := range all {
		seqs[i] = named.Seq
	}
	_, err = s.Mirror.Vanished(t.Context(), testTime, "shop", seqs)
	check(t, err)
	_, err = s.Sweep.Prune(t.Context(), testTime.Add(2*time.Hour), retention.Limits{Ages: retention.Ages{retention.Discarded: time.Hour}})
	check(t, err)
	if got := problems(t, pathOf(t, s)); len(got) > 0 {
		t.Errorf("removed: %q", got)
	}
	if n := s.Snapshot().OpenGroups; n > 10 {
		t.Errorf("%d groups are left; those of a source make room for its next ones", n)
	}
}
