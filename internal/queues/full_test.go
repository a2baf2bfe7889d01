package queues_test

import (
	"strings"
	"testing"

	"redrive/internal/queues"
)

// The error says how many queues there would be, which can be far more than a limit that was
// lowered.
func TestFull_TellsTheCountFromTheLimit(t *testing.T) {
	text := (&queues.Full{Queue: "late", Count: 11, Limit: 3}).Error()
	if !strings.HasPrefix(text, `"late" would be a new queue, with which there would be 11, and the limit is 3; nothing was changed: `) {
		t.Error(text)
	}
}
