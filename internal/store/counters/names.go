package counters

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"redrive/internal/queues"
	"redrive/internal/store/db"
)

// Names of queues and types are chosen by programs, so both are bounded.
//
// A queue is known from its first job or its first pause until a person removes
// it. Admit refuses one that would be one too many, before its first job.
//
// Types are not refused. What grows with the names, however, tells only so many of
// them apart: the counters, the open dead letters and the metrics keep the first
// thousand queues and the first types that come, a thousand unless a limit says otherwise, and count the rest as
// "other". The table labels says which these are. A label is decided once, with
// the first job of a queue or the first count of a type, so that what was counted
// in under a name is counted out under it, also after a restart.

const (
	maxQueueLabels = 1000
	otherLabel     = "other"
)

// Limits bound the names of queues and types.
type Limits struct {
	Queues   int      // how many there may be; 0: a thousand
	Types    int      // how many are told apart; 0: a thousand
	Reserved []string // queues that are admitted always: they have their places before their first job
}

// What the limits are unless somebody says otherwise.
const (
	defaultQueues = 1000
	defaultTypes  = 1000
)

// labels are the names of one kind under which is counted.
type labels struct {
	kind string          // as the table labels calls it
	most int             // names that are kept
	kept map[string]bool // as of the last commit
	now  map[string]bool // by the transaction that is under way
	gone map[string]bool // given back by it
}

func newLabels(kind string, most int) labels {
	return labels{kind: kind, most: most, kept: map[string]bool{}, now: map[string]bool{}, gone: map[string]bool{}}
}

func (l *labels) begin() {
	clear(l.now)
	clear(l.gone)
}

// of is the label of a name. Counted says that it is no new one: then it is not
// kept either if it was not before. A place that is given back is free after the
// commit, so that a name has one label in a transaction.
func (l *labels) of(name string, counted bool) string {
	switch {
	case l.kept[name] && !l.gone[name], l.now[name]:
		return name
	case counted || len(l.kept)+len(l.now) >= l.most:
		return otherLabel
	}
	l.now[name] = true
	return name
}

func (l *labels) committed() {
	for name := range l.gone {
		delete(l.kept, name)
	}
	maps.Copy(l.kept, l.now)
}

func (l *labels) load(src db.Source) (err error) {
	l.kept, err = db.Map[string, bool](src, `SELECT name, true FROM labels WHERE kind = $1`, l.kind)
	return err
}

// flush writes the names that are kept from now on.
func (l *labels) flush(t *db.Tx) error {
	return db.AddSums(t, addLabels, l.now, func(name string, _ bool) []any { return []any{l.kind, name} })
}

// queueLabel is what a queue is counted under.
func (b *Book) queueLabel(name string) string {
	return b.queueLabels.of(name, b.queues[name] && !b.removed[name])
}

// CountedTypes is how many types are told apart.
func (b *Book) CountedTypes() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.typeLabels.kept)
}

// Label is the queue, or "other", as metrics name it.
func (b *Book) Label(queue string) string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.shownLabel(queue)
}

func (b *Book) shownLabel(queue string) string {
	if b.queueLabels.kept[queue] {
		return queue
	}
	return otherLabel
}

// Admit lets jobs come into queues, all of them or none: a queue that would be one
// too many is a *queues.Full. It must be asked before the transaction writes.
func (b *Book) Admit(names iter.Seq[string]) error {
	var fresh map[string]bool
	for name := range names {
		if b.KnowsQueue(name) || b.admitted[name] || slices.Contains(b.limits.Reserved, name) {
			continue
		}
		if fresh == nil {
			fresh = map[string]bool{}
		}
		if fresh[name] = true; b.places()+len(fresh) > b.limits.Queues {
			return &queues.Full{Queue: name, Limit: b.limits.Queues}
		}
	}
	maps.Copy(b.admitted, fresh)
	return nil
}

// places is how many queues there are, those included that have their place
// before their first job.
func (b *Book) places() int {
	n := len(b.queues) + len(b.admitted)
	for _, name := range b.limits.Reserved {
		if _, known := b.queues[name]; !known {
			n++
		}
	}
	return n
}

// LearnQueue makes a queue known that may have no job. Only code that the
// writer runs may call it.
func (b *Book) LearnQueue(name string) {
	if _, known := b.queues[name]; !known {
		b.queues[name], b.changed = false, true
	}
}

// counted makes a queue known that had a job.
func (b *Book) counted(name string) {
	if !b.queues[name] {
		b.queues[name], b.changed = true, true
	}
}

// KnowsQueue reports whether a queue had a job or was paused, and was not
// removed since. Only code that the writer runs may
// call it.
func (b *Book) KnowsQueue(name string) bool {
	_, known := b.queues[name]
	return known && !b.removed[name]
}

// Remove forgets a queue that no job belongs to, in a transaction that does
// nothing else. What it counted stays in the totals, under no name; what it counted
// by the minute is forgotten with its day.
func (b *Book) Remove(t *db.Tx, name string) error {
	const keep = `INSERT INTO counters (queue, type, ` + totalColumns + `)
		SELECT '', type, ` + totalColumns + ` FROM counters WHERE queue = $1`
	if b.queueLabels.kept[name] {
		err := db.Steps(t, db.Any(keep+adding("counters", "queue, type"), name), db.Any(`DELETE FROM counters WHERE queue = $1`, name),
			db.Any(`DELETE FROM labels WHERE kind = 'queue' AND name = $1`, name))
		if err != nil {
			return fmt.Errorf("keep the counts of queue %s: %w", name, err)
		}
		b.queueLabels.gone[name] = true
	}
	b.removed[name] = true
	return db.Steps(t, db.Any(`DELETE FROM reasons WHERE queue = $1 AND n = 0`, name), db.Any(`DELETE FROM held WHERE queue = $1`, name),
		db.Any(`DELETE FROM depths WHERE queue = $1`, name), db.Any(`DELETE FROM queues WHERE name = $1`, name))
}

// forget takes over that queues were removed.
func (b *Book) forget() {
	for name := range b.removed {
		delete(b.queues, name)
		b.changed = true
	}
	if len(b.removed) > 0 {
		maps.DeleteFunc(b.queued, func(k depthKey, _ int64) bool { return b.removed[k.queue] })
	}
}

func (b *Book) publishNames() {
	if b.changed || b.names.Load() == nil {
		names := slices.Sorted(maps.Keys(b.queues))
		b.names.Store(&names)
		b.changed = false
	}
}

// QueueNames returns the names of all known queues, sorted, from memory. They
// must not be changed.
func (b *Book) QueueNames() []string { return *b.names.Load() }

// HasQueue reports whether a queue was known after the last commit.
func (b *Book) HasQueue(name string) bool {
	_, known := slices.BinarySearch(b.QueueNames(), name)
	return known
}
