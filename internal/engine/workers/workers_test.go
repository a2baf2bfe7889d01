package workers_test

import (
	"testing"

	"redrive/internal/engine/workers"
	"redrive/internal/job"
)

// A worker is free, reserved or in use: what is reserved for a claim is not given to another.
func TestCounts_ReservedWorkersAreNotGivenAway(t *testing.T) {
	w := workers.New(func(string) int { return 3 })
	if n, more := w.Reserve("mail", 2); n != 2 || !more {
		t.Errorf("reserved %d, more %v", n, more)
	}
	if !w.Take("mail", 10) || w.Take("mail", 10) {
		t.Error("one was free, and no other")
	}
	if n, more := w.Reserve("mail", 2); n != 0 || more {
		t.Errorf("reserved %d, more %v, when none is free", n, more)
	}

	// A reserved worker begins, and the claim ends.
	w.TakeReserved("mail")
	w.Release(job.Claim{Free: map[string]int{"mail": 2}})
	if w.Running()["mail"] != 2 || w.Taken() != 2 {
		t.Errorf("running %v, taken %d", w.Running(), w.Taken())
	}
	if w.Take("other", 2) {
		t.Error("more run in all queues together than may")
	}

	w.Free("mail")
	w.Free("mail")
	if !w.Idle() {
		t.Errorf("running %v", w.Running())
	}
}

// After a reload a queue can have fewer workers than are in use.
func TestCounts_AReloadCanLeaveTooFew(t *testing.T) {
	n := 2
	w := workers.New(func(string) int { return n })
	for worker := range n {
		if !w.Take("mail", 10) {
			t.Errorf("worker %d of the queue is not free", worker+1)
		}
	}
	n = 1
	if w.TooMany("mail") {
		t.Error("it is asked again before a reload")
	}
	w.AskAgain()
	if !w.TooMany("mail") || w.Limit("mail") != 1 || w.Take("mail", 10) {
		t.Errorf("too many: %v, limit %d", w.TooMany("mail"), w.Limit("mail"))
	}
}
