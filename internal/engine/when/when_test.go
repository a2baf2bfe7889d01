package when_test

import (
	"testing"
	"time"

	"redrive/internal/engine/when"
)

func TestWhen_ZeroIsNever(t *testing.T) {
	var never time.Time
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	later := now.Add(time.Second)

	for _, test := range []struct{ a, b, want time.Time }{
		{never, never, never}, {never, now, now}, {now, never, now}, {now, later, now}, {later, now, now},
	} {
		if got := when.Earlier(test.a, test.b); !got.Equal(test.want) {
			t.Errorf("the earlier of %v and %v is %v, want %v", test.a, test.b, got, test.want)
		}
	}

	for _, test := range []struct {
		moment time.Time
		want   bool
	}{{never, false}, {now.Add(-time.Second), true}, {now, true}, {later, false}} {
		if got := when.Reached(test.moment, now); got != test.want {
			t.Errorf("%v was reached: %v, want %v", test.moment, got, test.want)
		}
	}
}
