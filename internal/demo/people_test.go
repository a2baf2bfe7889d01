package demo_test

import (
	"testing"

	"redrive/internal/failures"
	"redrive/internal/operation"
)

func theyOperated(t *testing.T, s shop) {
	list, err := s.Operations.List(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	states := map[operation.State]int{}
	for _, o := range list.Operations {
		states[o.State]++
		if o.Done == 0 || o.Unsettled() != 0 || o.Total != o.Pending+o.Done+o.Skipped+o.Failed {
			t.Errorf("operation %d did nothing, or is not accounted for: %+v", o.ID, o)
		}
		if o.Kind == operation.Replay && o.Succeeded <= o.Relapsed {
			t.Errorf("operation %d: %d succeeded, %d failed again: want mostly success", o.ID, o.Succeeded, o.Relapsed)
		}
	}
	if states[operation.Finished] != 3 || states[operation.Aborted] != 1 {
		t.Errorf("operations %v, want 3 finished and 1 aborted", states)
	}
}

func theyJudged(t *testing.T, s shop) {
	groups, err := s.Groups.List(t.Context(), now, failures.Filter{}, failures.Cursor{}, 50)
	if err != nil {
		t.Fatal(err)
	}
	notes, states, reopened := 0, map[failures.State]int{}, 0
	for _, g := range groups.Groups {
		states[g.State]++
		if g.Note != "" {
			notes++
		}
		if g.ReopenedBy == failures.ByFailure {
			reopened++
		}
	}
	if len(groups.Groups) < 8 || len(groups.Groups) > 12 {
		t.Errorf("%d groups, want about one for each fault", len(groups.Groups))
	}
	if notes != 3 || states[failures.Ignored] != 1 || reopened != 1 {
		t.Errorf("%d notes, states %v, %d reopened, want 3, 1 ignored and 1", notes, states, reopened)
	}
}
