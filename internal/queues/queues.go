// Package queues holds what pages and metrics show of a queue: its depth, its
// counters and its last hour.
package queues

import (
	"redrive/internal/stats"
	"time"
)

// Info is one queue as pages show it.
type Info struct {
	Name     string
	Source   string // whose queue it is; empty: Redrive's own
	Depths   stats.Depths
	Totals   stats.Totals   // since the beginning
	LastHour []stats.Totals // 60 minutes, oldest first
	Oldest   time.Time      // since when the next waiting job could run; zero when none waits
	PausedAt time.Time      // zero when it runs
	PausedBy string
}

// Pause is since when a worker claims no jobs, and who paused it.
type Pause struct {
	Since time.Time
	By    string
}

// Scale is a span of time, cut in equal pieces, over which counters are drawn.
type Scale struct {
	Step  time.Duration
	Steps int
}

// LastHour is an hour by the minute.
func LastHour() Scale { return Scale{time.Minute, 60} }

// LastDay is a day by the quarter of an hour.
func LastDay() Scale { return Scale{15 * time.Minute, 96} }

// First is the beginning of the oldest piece when the newest one holds now.
// Pieces begin at whole multiples of their length.
func (s Scale) First(now time.Time) time.Time {
	return now.UTC().Truncate(s.Step).Add(-time.Duration(s.Steps-1) * s.Step)
}

// Tally is the totals of one queue and type, as /metrics shows them. Past the
// first thousand names the rest is counted under "other".
type Tally struct {
	Queue, Type string
	Totals      stats.Totals
}

// Held is a type of job that waits for a handler, in one queue.
type Held struct {
	Queue, Type string
	Count       int64
}
