package retention

import (
	"time"

	"redrive/internal/job"
	"redrive/internal/stats"
)

// Soon is how far ahead it is told what will be removed.
const Soon = 24 * time.Hour

// Notice is for how long a database that is new to the defaults is left alone.
const Notice = Soon

// MaxSoon is how many jobs of a kind are counted that will be removed soon.
const MaxSoon = 1_000_000

// Outlook is what is kept of one kind, and what of it will be removed soon.
type Outlook struct {
	Kind   Kind
	Jobs   int64     // how many there are; the jobs of Excess are those that are too many
	Oldest time.Time // when the oldest ended; zero when there is none
	Soon   int64     // how many will be removed within [Soon], if no one acts on them; of Excess, by the next sweep
	More   bool      // there are more than that
}

// Forecast is what is kept, and what will be removed soon, as of one moment.
type Forecast struct {
	At    time.Time // zero: nothing was counted yet
	Kinds []Outlook // in the order of [Kinds]; no job counts as removed in two of them
	Since time.Time // from when on the defaults apply to a database that is new to them; zero: they do
	Clock Clock     // whether nothing is removed because the clock moved forward
}

// Of is the outlook of a kind.
func (f Forecast) Of(k Kind) Outlook {
	for _, o := range f.Kinds {
		if o.Kind == k {
			return o
		}
	}

	return Outlook{Kind: k}
}

// Jobs is how many jobs of a kind there are. Dead letters that are at a source count in no
// kind: retention does not remove them. They may have become more since the depths were
// counted.
func (l Limits) Jobs(k Kind, depths stats.Depths, atSources int64) int64 {
	switch k {
	case Completed:
		return depths[job.Status(job.Completed)] + depths[job.Status(job.Returned)] // they are kept for the same age
	case Cancelled:
		return depths[job.Status(job.Cancelled)]
	case Trash:
		return depths[job.StatusTrashed]
	case Discarded:
		return depths[job.Status(job.Discarded)] - depths[job.StatusDeadLetter] - depths[job.StatusDLQFailed] - depths[job.StatusTrashed]
	case OverCount:
		if l.Count <= 0 {
			return 0
		}
		return max(0, depths[job.StatusDeadLetter]-atSources-l.Count)
	}

	return max(0, depths[job.StatusDeadLetter]-atSources)
}

// Usage is how full the dead-letter queue is. Dead letters that are at a source take no
// room in it.
type Usage struct {
	Open    int64     // letters that are neither replayed nor discarded
	LastDay int64     // of these, failed in this hour or the 23 before
	Oldest  time.Time // when the oldest failed; zero when there is none

	AtSources int64 // open letters beside these that are at sources
}

// WarnShare is the share of its limit from which the dead-letter queue warns.
const WarnShare = 0.8

// farAhead bounds what is forecast: no one plans beyond it.
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
	if age := r.Ages[DeadLetters]; wait > float64(farAhead) || age > 0 && wait > float64(age) {
		return time.Time{}, false
	}

	return now.Add(time.Duration(wait)), true
}
