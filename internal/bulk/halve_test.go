package bulk

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"redrive/internal/operation"
)

// spoilt is a store with an operation some of whose items cannot be done.
type spoilt struct {
	Store
	next, all int
	bad       map[int]bool
	failed    []int // items that were given up
	refusals  int   // steps that failed
}

func (s *spoilt) Work(_ context.Context, _ func() time.Time, _ int64, n int) (operation.Step, error) {
	n = min(n, s.all-s.next)
	for i := range n {
		if s.bad[s.next+i] {
			s.refusals++
			return operation.Step{}, errors.New("no")
		}
	}
	s.next += n
	return operation.Step{Items: n}, nil
}

func (s *spoilt) FailItem(context.Context, time.Time, int64, string) error {
	s.failed = append(s.failed, s.next)
	s.next++
	return nil
}

// A step that fails is halved until the one item is found that spoils it: that
// takes few steps that fail, not two for each item before it.
func TestWork_HalvesWhatFails(t *testing.T) {
	s := &spoilt{all: 2000, bad: map[int]bool{0: true, 700: true, 701: true, 1999: true}}
	r := &Runner{store: s, log: slog.New(slog.DiscardHandler), paces: map[int64]*pace{}}
	for steps := 0; s.next < s.all; steps++ {
		if _, err := r.work(t.Context(), operation.Operation{ID: 1}); err != nil || steps > 500 {
			t.Fatalf("step %d: %v", steps, err)
		}
	}
	if len(s.failed) != 4 || s.failed[0] != 0 || s.failed[1] != 700 || s.failed[2] != 701 || s.failed[3] != 1999 {
		t.Errorf("given up: %v", s.failed)
	}
	if s.refusals > 4*13 { // 2^13 is more than a step has
		t.Errorf("%d steps failed", s.refusals)
	}
}
