package counters

import (
	"cmp"
	"maps"
	"slices"

	"redrive/internal/job"
	"redrive/internal/store/db"
)

// labels are the names of one kind under which is counted.
type labels struct {
	kind   string                 // as the table labels calls it: queue or type
	source string                 // whose types these are; empty: Redrive's own, or the queues of all
	most   int                    // names that are kept, without the exempt ones
	free   func(name string) bool // the names that are exempt: they are bounded elsewhere; nil: none

	kept map[string]bool // as of the last commit
}

func newLabels(kind, source string, most int) labels {
	return labels{kind: kind, source: source, most: most, kept: map[string]bool{}}
}

// of is the label of a name. Counted says that it is no new one: then it is not
// kept either if it was not before. A place that is given back is free after the
// commit, so that a name has one label in a transaction.
func (l *labels) of(g *gathered, name string, counted bool) string {
	changes := g.of(l)
	switch {
	case l.kept[name] && !changes.gone[name], changes.kept[name]:
		return name
	case counted || !l.hasRoom(changes, name):
		return otherLabel
	}

	changes.kept[name] = true

	return name
}

// hasRoom reports whether a new name can be kept.
func (l *labels) hasRoom(changes *labelChanges, name string) bool {
	if l.free == nil {
		return len(l.kept)+len(changes.kept) < l.most
	}

	if l.free(name) {
		return true
	}

	bounded := 0
	for _, names := range []map[string]bool{l.kept, changes.kept} {
		for kept := range names {
			if !l.free(kept) {
				bounded++
			}
		}
	}

	return bounded < l.most
}

// isForeign reports whether a queue belongs to a source.
func isForeign(queue string) bool { return job.SourceOf(queue) != "" }

// committed takes over what a transaction has changed.
func (l *labels) committed(changes *labelChanges) {
	for name := range changes.gone {
		delete(l.kept, name)
	}

	maps.Copy(l.kept, changes.kept)
}

func (l *labels) load(src db.Source) (err error) {
	const query = `SELECT name, true FROM labels WHERE kind = $1 AND ($1 = 'queue' OR source = $2)`
	l.kept, err = db.Map[string, bool](src, query, l.kind, l.source)
	return err
}

// flush writes the names that are kept from now on.
func (l *labels) flush(t *db.Tx, changes *labelChanges) error {
	return db.AddSums(t, addLabels, changes.kept, func(name string, _ bool) []any {
		source := l.source
		if l.kind == "queue" {
			source = job.SourceOf(name)
		}

		return []any{l.kind, source, name}
	})
}

// queueLabel is what a queue is counted under.
func (p *Projection) queueLabel(g *gathered, name string) string {
	return p.queueLabels.of(g, name, p.queues[name] && !g.removed[name])
}

// typeLabel is what the type of a job is counted under, a job of our own or of a source.
func (p *Projection) typeLabel(g *gathered, j *job.Job) string {
	if j.Source == "" {
		return p.typeLabels.of(g, j.Type, false)
	}
	return p.sourceTypesOf(j.Source).of(g, j.Type, false)
}

// sourceTypesOf are the labels of the types of one source.
func (p *Projection) sourceTypesOf(name string) *labels {
	l, ok := p.sourceTypes[name]
	if !ok {
		made := newLabels("type", name, maxSourceTypes)
		l = &made
		p.sourceTypes[name] = l
	}

	return l
}

// loadSourceTypes reads the labels of the types of every source.
func (p *Projection) loadSourceTypes(src db.Source) error {
	const query = `SELECT DISTINCT source FROM labels WHERE kind = 'type' AND source <> ''`

	names, err := db.All(src, query, func(name *string) []any { return []any{name} })
	if err != nil {
		return err
	}

	for _, name := range names {
		if err := p.sourceTypesOf(name).load(src); err != nil {
			return err
		}
	}

	return nil
}

// flushLabels writes the names under which is counted from now on, always in the same order of
// kinds: two transactions that write the same rows must not wait for each other.
func (p *Projection) flushLabels(t *db.Tx) error {
	changed := p.gathered.In(t).labels
	kinds := slices.SortedFunc(maps.Keys(changed), func(a, b *labels) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.source, b.source))
	})

	for _, l := range kinds {
		err := l.flush(t, changed[l])
		if err != nil {
			return err
		}
	}

	return nil
}

// CountedTypes is how many types are told apart, without those of sources.
func (p *Projection) CountedTypes() int {
	p.memory.mu.RLock()
	defer p.memory.mu.RUnlock()
	return len(p.typeLabels.kept)
}
