package queuepage

import (
	"cmp"
	"slices"
	"time"

	"redrive/internal/retention"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// Retention is the page /retention: how long jobs are kept after they ended, and
// what will be removed next.
type Retention struct {
	templates.Frame
	templates.DeadLetterUsage
	Removals []retention.Removal
}

// kind is a row of the page.
type kind struct {
	retention.Outlook
	name    string
	kept    string    // for how long, or up to which number
	removed int64     // since the beginning
	last    time.Time // when the newest of them was removed
}

// kindName is what the page calls the jobs of a kind.
func kindName(k retention.Kind) string {
	switch k {
	case retention.Completed:
		return "Completed"
	case retention.Cancelled:
		return "Cancelled"
	case retention.Discarded:
		return "Discarded by policy"
	case retention.DeadLetters:
		return "Dead letters"
	case retention.OverCount:
		return "Dead letters above the maximum"
	case retention.Trash:
		return "Trash"
	}

	return format.Visible(string(k))
}

// kinds are the rows of the page. Dead letters above the maximum have a row when
// there is a maximum, or was. How many jobs are stored is the number that the page says
// elsewhere; the rest of the forecast is a little older.
func (v Retention) kinds() []kind {
	var all []kind
	for _, o := range v.Forecast.Kinds {
		k := kind{Outlook: o, name: kindName(o.Kind), kept: v.kept(o.Kind)}
		k.Jobs = v.Limits.Jobs(o.Kind, v.Snapshot.Depths, v.AtSources)
		for _, r := range v.Removals {
			if r.Kind == o.Kind {
				k.removed += r.Jobs
				k.last = later(k.last, r.Last)
			}
		}

		if o.Kind != retention.OverCount || v.Limits.Count > 0 || k.removed > 0 {
			all = append(all, k)
		}
	}

	return all
}

// kept says what bounds the stay of the jobs of a kind.
func (v Retention) kept(k retention.Kind) string {
	switch {
	case k == retention.Trash:
		return keptFor(v.Limits.Trash)
	case k == retention.OverCount && v.Limits.Count > 0:
		return "up to " + format.Number(v.Limits.Count)
	}

	return keptFor(v.Limits.Ages[k])
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// keptFor says how long something is kept.
func keptFor(age time.Duration) string {
	if age <= 0 {
		return "forever"
	}
	return format.About(age)
}

// exception is an age that a queue or a type has of its own.
type exception struct {
	what, name string
	kind       retention.Kind
	age        time.Duration
}

// exceptions are the ages of queues and types, in order.
func (v Retention) exceptions() []exception {
	var all []exception
	for what, places := range map[string]map[string]retention.Ages{"Queue": v.Limits.Queues, "Type": v.Limits.Types} {
		for name, ages := range places {
			for kind, age := range ages {
				all = append(all, exception{what, name, kind, age})
			}
		}
	}

	slices.SortFunc(all, func(a, b exception) int {
		return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind))
	})

	return all
}

// soonest is how many jobs will be removed within 24 h.
func (v Retention) soonest() retention.Outlook {
	var all retention.Outlook
	for _, o := range v.Forecast.Kinds {
		all.Soon, all.More = all.Soon+o.Soon, all.More || o.More
	}

	return all
}

// removals are what was removed, most first.
func (v Retention) removals() []retention.Removal {
	all := slices.Clone(v.Removals)
	slices.SortStableFunc(all, func(a, b retention.Removal) int { return cmp.Compare(b.Jobs, a.Jobs) })
	return all[:min(len(all), maxRemovals)]
}

// maxRemovals is how many rows of what was removed the page shows.
const maxRemovals = 100

// soonText is how many jobs of a kind will be removed soon.
func soonText(o retention.Outlook) string {
	if o.More {
		return "over " + format.Number(o.Soon)
	}
	return format.Number(o.Soon)
}

// maximum says how many dead letters there may be.
func maximum(l retention.Limits) string {
	if l.Count <= 0 {
		return "The number of dead letters is not limited."
	}
	return "Beyond " + format.Counted(l.Count, "dead letter", "dead letters") + " the oldest are removed."
}
