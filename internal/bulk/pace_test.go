package bulk

import (
	"testing"
	"time"

	"redrive/internal/operation"
)

// Steps grow while they are quick and shrink while others have to wait, within
// bounds, and no single one changes much.
func TestStride_FollowsTheTimeOfSteps(t *testing.T) {
	s := leastStride
	for range 20 {
		s.measured(int(s), stepWithin/10)
	}
	if s != operation.MaxStep {
		t.Errorf("quick steps have %d items, want %d", s, operation.MaxStep)
	}
	s.measured(int(s), time.Second)
	if s != operation.MaxStep/2 {
		t.Errorf("after one slow step %d items, want half as many as before", s)
	}
	for range 20 {
		s.measured(int(s), time.Second)
	}
	if s != leastStride {
		t.Errorf("slow steps have %d items, want %d", s, leastStride)
	}
	s = 300
	s.measured(20, 10*time.Millisecond)
	if s != 300 {
		t.Errorf("a step of few items made it %d", s)
	}
	s.measured(300, stepWithin)
	if s != 300 {
		t.Errorf("a step that took as long as it may made it %d", s)
	}
}
