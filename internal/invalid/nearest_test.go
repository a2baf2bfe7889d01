package invalid_test

import (
	"testing"

	"redrive/internal/invalid"
)

func TestNearest_IsWhatWasProbablyMeant(t *testing.T) {
	names := []string{"queue", "queues", "type", "id", "schedule"}
	for name, want := range map[string]string{
		"qeue": "queue", "queus": "queue", "typ": "type", "types": "type", "x": "", "": "", "priority": "", "xy": "", "then": "", "idd": "id", "sched": "schedule", "que": "", "sc": "",
	} {
		if got := invalid.Nearest(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
