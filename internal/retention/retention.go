// Package retention holds the limits of the dead-letter queue and the trash,
// and the forecast of when a limit will be reached.
package retention

import (
	"time"
)

// Limits bounds the dead-letter queue and the trash. A zero field bounds
// nothing.
type Limits struct {
	Age   time.Duration // of a dead letter, of the items of an operation that has ended, and of an error group without a job
	Count int64         // of dead letters
	Trash time.Duration // since a person discarded a job
}

// Pruned counts what the retention removed for good.
type Pruned struct {
	ByAge, ByCount int // dead letters
	Trash          int // discarded jobs
	Items          int // of operations
	Groups         int // error groups
}

// Usage is how full the dead-letter queue is.
type Usage struct {
	Open    int64     // letters that are neither replayed nor discarded
	LastDay int64     // of these, failed in this hour or the 23 before
	Oldest  time.Time // when the oldest failed; zero when there is none
}

// WarnShare is the share of its limit from which the dead-letter queue warns.
const WarnShare = 0.8

// farAhead bounds what is forecast: beyond, nobody plans.
const farAhead = 10 * 365 * 24 * time.Hour

// Share is how much of the retention's number of letters is in use: 1 when it
// is full. Without such a number it is zero.
func (f Usage) Share(r Limits) float64 {
	if r.Count <= 0 {
		return 0
	}
	return float64(f.Open) / float64(r.Count)
}

// Reaches forecasts when the share will be reached, at the pace of the last
// day; now when it is reached already. ok is false when that will never be, or
// in more than ten years: nothing comes in, or age removes each letter before
// so many have come together.
func (f Usage) Reaches(r Limits, share float64, now time.Time) (at time.Time, ok bool) {
	room := float64(r.Count)*share - float64(f.Open)
	switch {
	case r.Count <= 0:
		return time.Time{}, false
	case room <= 0:
		return now, true
	case f.LastDay <= 0:
		return time.Time{}, false
	}
	wait := room / float64(f.LastDay) * float64(24*time.Hour)
	if wait > float64(farAhead) || r.Age > 0 && wait > float64(r.Age) {
		return time.Time{}, false
	}
	return now.Add(time.Duration(wait)), true
}
