// Package retention holds how long jobs are kept after they ended, what a sweep
// has removed, and the forecast of what will be removed next.
//
// A job belongs to one [Kind], which has an age for all jobs. A queue can have
// another age for it, and a type of job another again. Nothing is removed for the
// number of dead letters unless the configuration sets one.
package retention

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// Kind is what retention calls jobs that ended in the same way.
type Kind string

// The kinds of jobs that retention removes.
const (
	Completed   Kind = "completed"
	Cancelled   Kind = "cancelled"
	Discarded   Kind = "discarded"           // by their policy, a rule or their handler
	DeadLetters Kind = "dead_letters"        // for their age
	OverCount   Kind = "excess_dead_letters" // for their number
	Trash       Kind = "trash"               // discarded by a person
)

// Kinds are all kinds in the order in which they are shown.
func Kinds() []Kind { return []Kind{Completed, Cancelled, Discarded, DeadLetters, OverCount, Trash} }

// WithAge are the kinds that have an age in [Ages].
func WithAge() []Kind { return []Kind{Completed, Cancelled, Discarded, DeadLetters} }

// Ages is how long jobs are kept after they ended, by kind. A kind that is not in
// it has no age of its own; zero keeps jobs forever.
type Ages map[Kind]time.Duration

// Limits say what is kept, and for how long.
type Limits struct {
	Ages   Ages            // of all jobs; also of the items of operations and of error groups without a job, as DeadLetters
	Queues map[string]Ages // of the jobs of a queue
	Types  map[string]Ages // of jobs of a type, or of all types below a prefix such as "email.*"
	Count  int64           // of dead letters; zero: any number
	Trash  time.Duration   // since a person discarded a job; zero: forever
	Said   map[Kind]bool   // the ages of all jobs that a person wrote down; the others are defaults
}

// WithoutDefaults are the limits while a database is new to the defaults: an age that no
// person wrote down removes nothing of what had no age before.
func (l Limits) WithoutDefaults() Limits {
	ages := maps.Clone(l.Ages)
	for _, k := range []Kind{Completed, Cancelled, Discarded} {
		if !l.Said[k] {
			delete(ages, k)
		}
	}

	l.Ages = ages

	return l
}

// Age is how long a job of a queue and a type is kept: the type says it first, the
// most exact pattern before others, then the queue. Zero means forever.
func (l Limits) Age(k Kind, queue, typ string) time.Duration {
	if own, ok := l.Types[typ][k]; ok {
		return own
	}

	age, longest := l.Ages[k], -1
	if own, ok := l.Queues[queue][k]; ok {
		age = own
	}

	for pattern, ages := range l.Types {
		if own, ok := ages[k]; ok && len(pattern) > longest && retry.Matches(pattern, typ) {
			age, longest = own, len(pattern)
		}
	}

	return age
}

// Different are the ages that jobs of a kind can have, the shortest first. Jobs
// that are kept forever have none.
func (l Limits) Different(k Kind) []time.Duration {
	var all []time.Duration
	for _, ages := range append(append([]Ages{l.Ages}, slices.Collect(maps.Values(l.Queues))...), slices.Collect(maps.Values(l.Types))...) {
		if ages[k] > 0 {
			all = append(all, ages[k])
		}
	}

	slices.Sort(all)

	return slices.Compact(all)
}

// defaultMemory is how long the removal of a job is remembered that had no age.
const defaultMemory = 30 * 24 * time.Hour

// Memory is how long the removal of a job is remembered: as long as jobs like it
// are kept.
func (l Limits) Memory(k Kind, queue, typ string) time.Duration {
	switch k {
	case Trash:
		return cmp.Or(l.Trash, defaultMemory)
	case OverCount:
		return cmp.Or(l.Age(DeadLetters, queue, typ), defaultMemory)
	}

	return cmp.Or(l.Age(k, queue, typ), defaultMemory)
}

// Part is the jobs of one kind in one queue.
type Part struct {
	Kind  Kind
	Queue string
}

// Pruned counts what a sweep removed permanently.
type Pruned struct {
	Jobs   map[Part]int64
	Items  int // of operations
	Groups int // error groups
}

// Of is how many jobs of a kind were removed.
func (p Pruned) Of(k Kind) (n int64) {
	for part, count := range p.Jobs {
		if part.Kind == k {
			n += count
		}
	}

	return n
}

// Total is how many jobs were removed.
func (p Pruned) Total() (n int64) {
	for _, count := range p.Jobs {
		n += count
	}
	return n
}

// maxNamed is how many queues are named where all are counted.
const maxNamed = 10

// Queues says how many jobs of a kind were removed from which queue, most first:
// "orders 1200, mail 3".
func (p Pruned) Queues(k Kind) string {
	var all []Part
	for part, n := range p.Jobs {
		if part.Kind == k && n > 0 {
			all = append(all, part)
		}
	}

	slices.SortFunc(all, func(a, b Part) int {
		return cmp.Or(cmp.Compare(p.Jobs[b], p.Jobs[a]), strings.Compare(a.Queue, b.Queue))
	})

	var words []string
	for _, part := range all[:min(len(all), maxNamed)] {
		words = append(words, fmt.Sprintf("%s %d", part.Queue, p.Jobs[part]))
	}

	if more := len(all) - maxNamed; more > 0 {
		words = append(words, fmt.Sprintf("and %d more queues", more))
	}

	return strings.Join(words, ", ")
}

// String lists what was removed by kind and queue, as the audit log keeps it.
func (p Pruned) String() string {
	var words []string
	for _, k := range Kinds() {
		if n := p.Of(k); n > 0 {
			words = append(words, fmt.Sprintf("%s: %d (%s)", k, n, p.Queues(k)))
		}
	}

	return strings.Join(words, "; ")
}

// Removal is what retention removed of one kind from one queue since the beginning.
type Removal struct {
	Part
	Jobs int64
	Last time.Time // when the newest of them was removed
}

// Removed is the error for a job that retention removed, with what is still known
// of it. It is a job.ErrNotFound.
type Removed struct {
	ID         string
	Kind       Kind
	EnqueuedAt time.Time
	RemovedAt  time.Time
	Kept       time.Duration // how long such jobs were kept when it was removed
}

// Error says what is known.
func (r *Removed) Error() string {
	const form = "2006-01-02 15:04:05 UTC"
	return fmt.Sprintf("retention removed the job %s at %s (%s); it was enqueued at %s",
		r.ID, r.RemovedAt.UTC().Format(form), r.Kind, r.EnqueuedAt.UTC().Format(form))
}

// Unwrap makes the error a job.ErrNotFound.
func (*Removed) Unwrap() error { return job.ErrNotFound }
