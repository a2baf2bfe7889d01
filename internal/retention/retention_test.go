package retention_test

import (
	"math"
	"testing"
	"time"

	"redrive/internal/retention"
)

var noon = time.Date(2026, 3, 12, 12, 0, 0, 0, time.UTC)

const days = 24 * time.Hour

func TestFill_ShareOfItsLimit(t *testing.T) {
	for _, test := range []struct {
		open, limit int64
		want        float64
	}{{0, 10_000, 0}, {4210, 10_000, 0.421}, {10_000, 10_000, 1}, {15_000, 10_000, 1.5}, {7, 0, 0}} {
		if got := (retention.Usage{Open: test.open}).Share(retention.Limits{Count: test.limit}); got != test.want {
			t.Errorf("%d of %d: share %v, want %v", test.open, test.limit, got, test.want)
		}
	}
}

func TestFill_ForecastsAtThePaceOfTheLastDay(t *testing.T) {
	kept := retention.Limits{Ages: retention.Ages{retention.DeadLetters: 180 * days}, Count: 10_000}
	tests := []struct {
		name    string
		fill    retention.Usage
		keeps   retention.Limits
		share   float64
		wait    time.Duration
		forever bool
	}{
		{"full in three days", retention.Usage{Open: 4000, LastDay: 2000}, kept, 1, 3 * days, false},
		{"warns before", retention.Usage{Open: 4000, LastDay: 2000}, kept, retention.WarnShare, 2 * days, false},
		{"half a day", retention.Usage{Open: 9000, LastDay: 2000}, kept, 1, 12 * time.Hour, false},
		{"full already", retention.Usage{Open: 10_000, LastDay: 1}, kept, 1, 0, false},
		{"past its limit", retention.Usage{Open: 12_000}, kept, 1, 0, false},
		{"nothing comes", retention.Usage{Open: 9999}, kept, 1, 0, true},
		{"age removes them first", retention.Usage{Open: 9800, LastDay: 1}, kept, 1, 0, true},
		{"just before age removes them", retention.Usage{Open: 9820, LastDay: 1}, kept, 1, 180 * days, false},
		{"no age", retention.Usage{Open: 9000, LastDay: 1}, retention.Limits{Count: 10_000}, 1, 1000 * days, false},
		{"in more than ten years", retention.Usage{Open: 10, LastDay: 1}, retention.Limits{Count: 10_000}, 1, 0, true},
		{"no limit", retention.Usage{Open: 10, LastDay: 1}, retention.Limits{Ages: retention.Ages{retention.DeadLetters: days}}, 1, 0, true},
		{"no room for its date", retention.Usage{LastDay: 1}, retention.Limits{Count: math.MaxInt64}, 1, 0, true},
	}
	for _, test := range tests {
		at, ok := test.fill.Reaches(test.keeps, test.share, noon)
		if ok == test.forever || ok && !at.Equal(noon.Add(test.wait)) {
			t.Errorf("%s: %v, %v; want in %v, never %v", test.name, at, ok, test.wait, test.forever)
		}
	}
}
