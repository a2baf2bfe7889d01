package source_test

import (
	"strings"
	"testing"

	"redrive/internal/filter"
	"redrive/internal/source"
)

// A person can always ask for the queue of a source's jobs.
func TestQueue_CanBeAskedFor(t *testing.T) {
	for queue, want := range map[string]string{
		"orders": "orders@shop", "": "default@shop", "App\\Jobs": "App_Jobs@shop", "<b>bold": "b_bold@shop", "__": "default@shop",
		strings.Repeat("x", 300): strings.Repeat("x", 123) + "@shop",
	} {
		got := source.Queue("shop", queue)
		if got != want {
			t.Errorf("%q is in the queue %q, want %q", queue, got, want)
		}
		if err := filter.CheckQueue(got); err != nil {
			t.Errorf("%q: %v", queue, err)
		}
	}
}
