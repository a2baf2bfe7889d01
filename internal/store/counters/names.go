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

// Programs choose the names of queues and types, so the number of both has to be bounded.
//
// A queue is known from its first job or its first pause until a person removes it. There is a
// limit of known queues: Admit refuses the first job of a queue beyond it.
//
// A type is never refused. But only some names have counters of their own, in the tables and
// in metrics: the first thousand queues, and the first types up to Limits.Types. All others are
// counted together, as "other". The table labels has the names that are counted on their own.
// Which label a name gets is decided once, with the first job of a queue or the first count of a
// type, so that what is added under a label is also subtracted under it, even after a restart.
//
// The names at a source are chosen by programs of other people. Each source has bounds of its
// own, so that it cannot use up those of our own queues and types, or those of another source:
// Claim admits its queues, and its types have labels that count for that source alone.

const (
	maxQueueLabels = 1000
	otherLabel     = "other"

	maxSourceQueues = 100 // queues of one source, not counting the one for all that are too many
	maxSourceTypes  = 100 // types of one source that have counters of their own
)

// Limits bound the names of our own queues and types.
type Limits struct {
	Queues   int      // how many queues can be known; 0: 1000
	Types    int      // how many types have counters of their own; 0: 1000
	Reserved []string // queues that are always admitted: they count as known before their first job
}

// The limits that apply where [Limits] is zero.
const (
	defaultQueues = 1000
	defaultTypes  = 1000
)

// Label returns the name of a queue in metrics: its own name or "other".
func (p *Projection) Label(queue string) string {
	p.memory.mu.RLock()
	defer p.memory.mu.RUnlock()
	return p.shownLabel(queue)
}

// shownLabel is Label for a caller that holds the mutex of memory.
func (p *Projection) shownLabel(queue string) string {
	if p.queueLabels.kept[queue] {
		return queue
	}
	return otherLabel
}

// Admit makes room for jobs in these queues, or returns a *queues.Full that names the first
// queue beyond the limit: then none of them is admitted. The caller calls it before it writes
// anything in the transaction.
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

// Claim admits queues of the source with a name, as far as its limit allows, and returns those
// that it refuses. The caller puts the records of these into the overflow queue of the source.
// It calls Claim before it writes anything in the transaction.
func (p *Projection) Claim(t *db.Tx, name string, wanted []string) (refused map[string]bool) {
	// Count the queues that the source has, including those claimed in this transaction.
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

// places returns how many queues of our own count toward the limit: those that are known or
// admitted, and the reserved ones.
func (p *Projection) places(g *gathered) int {
	n := len(p.queues) - p.foreign + len(g.admitted)
	for _, name := range p.limits.Reserved {
		if _, known := p.queues[name]; !known {
			n++
		}
	}

	return n
}

// LearnQueue makes a queue known that may not have had a job, such as one that was paused. Only
// code that the writer runs may call it, because it does not lock.
func (p *Projection) LearnQueue(name string) {
	if _, known := p.queues[name]; !known {
		p.learn(name, false)
	}
}

// counted records that a queue has had a job, which makes it known.
func (p *Projection) counted(name string) {
	if !p.queues[name] {
		p.learn(name, true)
	}
}

// learn adds a queue to those that are known, or changes whether it has had a job.
func (p *Projection) learn(name string, hadJob bool) {
	if _, known := p.queues[name]; !known && isForeign(name) {
		p.foreign++
	}

	p.queues[name] = hadJob
	p.changed = true
}

// KnowsQueue reports whether a queue is known, as the transaction sees it: it has had a job or
// was paused, and has not been removed since.
func (p *Projection) KnowsQueue(t *db.Tx, name string) bool {
	_, known := p.queues[name]
	return known && !p.gathered.In(t).removed[name]
}

// Remove deletes what is kept of a queue to which no job belongs. It has to be alone in its
// transaction. The counters of the queue stay part of the totals, under an empty name. Those of
// each minute are kept until they are a day old, as for other queues.
func (p *Projection) Remove(t *db.Tx, name string) error {
	const keep = `INSERT INTO counters (queue, type, ` + totalColumns + `)
		SELECT '', type, ` + totalColumns + ` FROM counters WHERE queue = $1`
	// Add its counters to those of the empty name, so that the totals stay what they are.
	if p.queueLabels.kept[name] {
		err := db.Steps(t, db.Any(keep+adding("counters", "queue, type"), name), db.Any(`DELETE FROM counters WHERE queue = $1`, name),
			db.Any(`DELETE FROM labels WHERE kind = 'queue' AND name = $1`, name))
		if err != nil {
			return fmt.Errorf("keep the counts of queue %s: %w", name, err)
		}

		p.gathered.In(t).changesOf(&p.queueLabels).gone[name] = true
	}

	p.gathered.In(t).removed[name] = true

	return db.Steps(t, db.Any(`DELETE FROM reasons WHERE queue = $1 AND n = 0`, name), db.Any(`DELETE FROM held WHERE queue = $1`, name),
		db.Any(`DELETE FROM depths WHERE queue = $1`, name), db.Any(`DELETE FROM queues WHERE name = $1`, name))
}

// forget removes from memory the queues that the transaction removed.
func (p *Projection) forget(g *gathered) {
	for name := range g.removed {
		if _, known := p.queues[name]; known && isForeign(name) {
			p.foreign--
		}

		delete(p.queues, name)
		p.changed = true
	}

	if len(g.removed) > 0 {
		maps.DeleteFunc(p.memory.depths, func(k depthKey, _ int64) bool { return g.removed[k.queue] })
	}
}

// publishNames makes a new sorted list of the known queues for readers, if they have changed.
func (p *Projection) publishNames() {
	if p.changed || p.names.Load() == nil {
		names := slices.Sorted(maps.Keys(p.queues))
		p.names.Store(&names)
		p.changed = false
	}
}

// QueueNames returns the names of all queues that are known as of the last commit, sorted. The
// caller must not change the slice.
func (p *Projection) QueueNames() []string { return *p.names.Load() }

// HasQueue reports whether a queue is known as of the last commit.
func (p *Projection) HasQueue(name string) bool {
	_, known := slices.BinarySearch(p.QueueNames(), name)
	return known
}
