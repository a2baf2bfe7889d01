package counters

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/source"
	"redrive/internal/store/db"
)

// Names of queues and types are chosen by programs, so both are bounded.
//
// A queue is known from its first job or its first pause until a person removes
// it. Admit refuses one that would be one too many, before its first job.
//
// Types are not refused. What grows with the names, however, tells only so many of
// them apart: the counters, the open dead letters and the metrics keep the first
// thousand queues and the first types that come, a thousand unless a limit says
// otherwise, and count the rest as "other". The table labels says which these are. A
// label is decided once, with the first job of a queue or the first count of a type, so
// that what was counted in under a name is counted out under it, also after a restart.
//
// The names at a source are chosen by other people's programs. Each source has bounds of
// its own, so that it takes no place from our own queues and types, or from those of
// another source: Claim gives its queues their places, and its types have labels that
// count for it alone.

const (
	maxQueueLabels = 1000
	otherLabel     = "other"

	maxSourceQueues = 100 // of one source, beside the one for all others
	maxSourceTypes  = 100 // of one source that are told apart
)

// Limits bound the names of our own queues and types.
type Limits struct {
	Queues   int      // how many there may be; 0: a thousand
	Types    int      // how many are told apart; 0: a thousand
	Reserved []string // queues that are admitted always: they have their places before their first job
}

// The limits that hold unless [Limits] sets others.
const (
	defaultQueues = 1000
	defaultTypes  = 1000
)

// Label is the queue, or "other", as metrics name it.
func (p *Projection) Label(queue string) string {
	p.memory.mu.RLock()
	defer p.memory.mu.RUnlock()
	return p.shownLabel(queue)
}

func (p *Projection) shownLabel(queue string) string {
	if p.queueLabels.kept[queue] {
		return queue
	}
	return otherLabel
}

// Admit lets jobs come into queues, all of them or none: a queue that would be one
// too many is a *queues.Full. It must be asked before the transaction writes.
func (p *Projection) Admit(t *db.Tx, names iter.Seq[string]) error {
	g := p.gathered.In(t)

	var fresh map[string]bool
	for name := range names {
		if p.KnowsQueue(t, name) || g.admitted[name] || slices.Contains(p.limits.Reserved, name) {
			continue
		}

		if fresh == nil {
			fresh = map[string]bool{}
		}

		fresh[name] = true
		if count := p.places(g) + len(fresh); count > p.limits.Queues {
			return &queues.Full{Queue: name, Count: count, Limit: p.limits.Queues}
		}
	}

	maps.Copy(g.admitted, fresh)

	return nil
}

// Claim lets records of a source come into queues, as far as the source has places for
// them, and names those for which it has none. It must be asked before the transaction
// writes.
func (p *Projection) Claim(t *db.Tx, name string, wanted []string) (refused map[string]bool) {
	// How many places of the source are taken, by commits and by this transaction.
	g := p.gathered.In(t)
	taken := 0
	for queue := range p.queues {
		if job.SourceOf(queue) == name && queue != source.Overflow(name) {
			taken++
		}
	}

	for queue := range g.claimed {
		if job.SourceOf(queue) == name {
			taken++
		}
	}

	refused = map[string]bool{}
	for _, queue := range wanted {
		switch {
		case p.KnowsQueue(t, queue) || g.claimed[queue] || queue == source.Overflow(name):
		case taken < maxSourceQueues:
			g.claimed[queue] = true
			taken++
		default:
			refused[queue] = true
		}
	}

	return refused
}

// places is how many queues of our own there are, those included that have their place
// before their first job.
func (p *Projection) places(g *gathered) int {
	n := len(p.queues) - p.foreign + len(g.admitted)
	for _, name := range p.limits.Reserved {
		if _, known := p.queues[name]; !known {
			n++
		}
	}

	return n
}

// LearnQueue makes a queue known that may have no job. Only code that the
// writer runs may call it.
func (p *Projection) LearnQueue(name string) {
	if _, known := p.queues[name]; !known {
		p.learn(name, false)
	}
}

// counted makes a queue known that had a job.
func (p *Projection) counted(name string) {
	if !p.queues[name] {
		p.learn(name, true)
	}
}

// learn takes a queue over among those that are known.
func (p *Projection) learn(name string, hadJob bool) {
	if _, known := p.queues[name]; !known && isForeign(name) {
		p.foreign++
	}

	p.queues[name] = hadJob
	p.changed = true
}

// KnowsQueue reports whether a queue had a job or was paused, and was not
// removed since, as the transaction sees it.
func (p *Projection) KnowsQueue(t *db.Tx, name string) bool {
	_, known := p.queues[name]
	return known && !p.gathered.In(t).removed[name]
}

// Remove forgets a queue that no job belongs to, in a transaction that does
// nothing else. What it counted stays in the totals, under no name; what it counted
// by the minute is forgotten with its day.
func (p *Projection) Remove(t *db.Tx, name string) error {
	const keep = `INSERT INTO counters (queue, type, ` + totalColumns + `)
		SELECT '', type, ` + totalColumns + ` FROM counters WHERE queue = $1`
	// The counts move to a queue without a name, so that the totals stay what they are.
	if p.queueLabels.kept[name] {
		err := db.Steps(t, db.Any(keep+adding("counters", "queue, type"), name), db.Any(`DELETE FROM counters WHERE queue = $1`, name),
			db.Any(`DELETE FROM labels WHERE kind = 'queue' AND name = $1`, name))
		if err != nil {
			return fmt.Errorf("keep the counts of queue %s: %w", name, err)
		}

		p.gathered.In(t).of(&p.queueLabels).gone[name] = true
	}

	p.gathered.In(t).removed[name] = true

	return db.Steps(t, db.Any(`DELETE FROM reasons WHERE queue = $1 AND n = 0`, name), db.Any(`DELETE FROM held WHERE queue = $1`, name),
		db.Any(`DELETE FROM depths WHERE queue = $1`, name), db.Any(`DELETE FROM queues WHERE name = $1`, name))
}

// forget takes over that queues were removed.
func (p *Projection) forget(g *gathered) {
	for name := range g.removed {
		if _, known := p.queues[name]; known && isForeign(name) {
			p.foreign--
		}

		delete(p.queues, name)
		p.changed = true
	}

	if len(g.removed) > 0 {
		maps.DeleteFunc(p.memory.queued, func(k depthKey, _ int64) bool { return g.removed[k.queue] })
	}
}

func (p *Projection) publishNames() {
	if p.changed || p.names.Load() == nil {
		names := slices.Sorted(maps.Keys(p.queues))
		p.names.Store(&names)
		p.changed = false
	}
}

// QueueNames returns the names of all known queues, sorted, from memory. They
// must not be changed.
func (p *Projection) QueueNames() []string { return *p.names.Load() }

// HasQueue reports whether a queue was known after the last commit.
func (p *Projection) HasQueue(name string) bool {
	_, known := slices.BinarySearch(p.QueueNames(), name)
	return known
}
