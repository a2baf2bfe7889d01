package filter

import (
	"cmp"
	"maps"
	"slices"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// Tally is how many jobs a filter selects, and of what kind they are.
type Tally struct {
	Total  int64
	More   bool                 // there are more than Total, too many to count
	States map[job.Status]int64 // by status, under all that the filter says but its status; nil: not counted
	Facets Facets
	Whole  bool // Facets are counted under the whole filter; otherwise under its status, queue, type and reason
}

// Tallier makes the tally of a filter of the jobs that it is told of.
type Tallier struct {
	filter        Filter
	total         int64
	states        map[job.Status]int64
	reasons       map[retry.Reason]int64
	queues, types map[string]int64
}

// NewTallier returns a tallier that has counted nothing.
func NewTallier(f Filter) *Tallier {
	return &Tallier{
		filter: f, states: map[job.Status]int64{}, reasons: map[retry.Reason]int64{}, queues: map[string]int64{}, types: map[string]int64{},
	}
}

// Add counts a job that has all that the filter says but, perhaps, its status,
// queue, type and reason.
func (t *Tallier) Add(j job.Job) {
	f := &t.filter
	queue, typ := f.MatchesQueue(j.Queue), f.MatchesType(j.Type)

	reason := f.Reason == "" || f.Reason == j.Reason
	state, view := job.Status(j.State), j.Status()
	if queue && typ && reason {
		// A dead letter counts twice: as discarded, its state, and as a dead letter, the part
		// of it.
		t.states[state]++
		if view != state {
			t.states[view]++
		}
	}

	if f.Status != "" && f.Status != state && f.Status != view {
		return
	}

	if queue && typ && reason {
		t.total++
	}

	// Each facet leaves out its own field of the filter, to show what another choice would
	// select.
	if queue && typ && j.Reason != "" {
		t.reasons[j.Reason]++
	}

	if typ && reason {
		t.queues[j.Queue]++
	}

	if queue && reason {
		t.types[j.Type]++
	}
}

// Tally is what was counted.
func (t *Tallier) Tally() Tally {
	facets := Facets{Reasons: ReasonCounts(t.reasons), Queues: NameCounts(t.queues), Types: NameCounts(t.types)}
	return Tally{Total: t.total, States: t.states, Facets: facets, Whole: true}
}

// ReasonCount is a facet: how many jobs have a reason.
type ReasonCount struct {
	Reason retry.Reason
	Count  int64
}

// NameCount is a count under a name: of a queue or of a type.
type NameCount struct {
	Name  string
	Count int64
}

// Facets are what a list can be narrowed to, the most frequent first. Each is
// counted under what the filter says of the other two.
type Facets struct {
	Reasons []ReasonCount
	Queues  []NameCount
	Types   []NameCount
}

// ReasonCounts lists the counts of reasons, the most frequent first.
func ReasonCounts(counts map[retry.Reason]int64) []ReasonCount {
	return mostFirst(counts, func(reason retry.Reason, n int64) ReasonCount { return ReasonCount{reason, n} })
}

// NameCounts lists the counts of names, the most frequent first.
func NameCounts(counts map[string]int64) []NameCount {
	return mostFirst(counts, func(name string, n int64) NameCount { return NameCount{name, n} })
}

// mostFirst lists counts, the most frequent first.
func mostFirst[K cmp.Ordered, C any](counts map[K]int64, count func(K, int64) C) []C {
	var all []C
	for _, k := range slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}) {
		all = append(all, count(k, counts[k]))
	}

	return all
}
