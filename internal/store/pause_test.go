package store

import (
	"testing"

	"redrive/internal/audit"
)

func TestPaused_TellsSinceWhenAndByWhom(t *testing.T) {
	s := open(t, Options{})
	enqueue(t, s, 1)
	want := func(queue, by string) {
		t.Helper()
		since, who, err := s.Paused(t.Context(), queue)
		check(t, err)
		if who != by || since.IsZero() != (by == "") || by != "" && !since.Equal(testTime) {
			t.Errorf("%s is paused since %v by %q, want by %q", queue, since, who, by)
		}
	}
	want("orders", "")
	want("unknown", "")
	check(t, s.Pause(t.Context(), testTime, "orders", audit.Actor{Name: "ana"}))
	want("orders", "ana")
	check(t, s.Resume(t.Context(), testTime, "orders", audit.Actor{Name: "ana"}))
	want("orders", "")
}
