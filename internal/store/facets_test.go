package store

import (
	"fmt"
	"testing"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store/db"
)

// Past the bound, names are counted together: a search for one of these has to
// look, and one for a name that no dead letter has does not.
func TestNoDeadLetters_KnowsNamesUpToTheBound(t *testing.T) {
	s := open(t, Options{})
	find := func(queue, typ string) int {
		list, err := s.DeadLetters(t.Context(), filter.Filter{Queue: queue, Type: typ, Text: "alpha"}, filter.Cursor{}, 10)
		check(t, err)
		return len(list.DeadLetters)
	}
	set := func(from, to int) {
		var all []job.Job
		for n := from; n < to; n++ {
			j := testJob("{}")
			j.Queue, j.Type = "orders", fmt.Sprintf("t%d.send", n)
			j.State, j.Reason, j.Error = job.Discarded, retry.MissingURN, job.ErrorInfo{Type: "poison", Message: "alpha"}
			all = append(all, j)
		}
		_, err := s.Enqueue(t.Context(), testTime, all)
		check(t, err)
		_, err = s.Search.Update(t.Context())
		check(t, err)
	}
	set(0, 3)
	for f, want := range map[filter.Filter]bool{
		{Queue: "orders", Type: "t3.send"}: true, {Queue: "mail"}: true, {Type: "t2.*"}: false,
	} {
		none, err := s.Counters.NoDeadLetters(t.Context(), f)
		check(t, err)
		if none != want {
			t.Errorf("three dead letters, none of %v: %t, want %t", f, none, want)
		}
	}
	set(3, 1000)
	set(1000, 1000+3)
	if last := fmt.Sprintf("t%d.send", 1000+2); find("orders", last) != 1 || find("", "t2.*") != 1 || find("mail", last) != 0 {
		t.Error("a letter is not found whose type came after the bound")
	}
}

// What waits for a handler is counted by type, which producers choose: a type that
// nothing waits for any more leaves no row behind.
func TestHeld_KeepsNoTypeThatNothingWaitsFor(t *testing.T) {
	s := open(t, Options{})
	var all []job.Job
	for n := range 300 {
		j := testJob("{}")
		j.Type = fmt.Sprintf("t%d", n)
		all = append(all, j)
	}
	_, err := s.Enqueue(t.Context(), testTime, all)
	check(t, err)
	_, _, err = s.Exchange(t.Context(), nil, job.Claim{
		Now: testTime, Lease: time.Minute, Free: map[string]int{"orders": 300}, Knows: func(string) bool { return false },
	})
	check(t, err)
	for _, want := range []int{300, 0} {
		n, err := db.Value[int](s.reader.In(t.Context()), `SELECT count(*) FROM held`)
		check(t, err)
		if n != want {
			t.Errorf("%d types are kept, want %d", n, want)
		}
		_, err = s.Unhold(t.Context(), func(string) bool { return true })
		check(t, err)
	}
}
