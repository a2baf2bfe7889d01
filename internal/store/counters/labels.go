package counters

import (
	"cmp"
	"maps"
	"slices"

	"redrive/internal/job"
	"redrive/internal/store/db"
)

// labels are the names of one kind that have counters of their own. All other names of the kind
// are counted together, as "other".
type labels struct {
	kind   string                 // the kind, as the table labels has it: "queue" or "type"
	source string                 // for types: the source that has them, "" for types of our own; for queues: ""
	most   int                    // how many names can be kept, not counting exempt ones
	exempt func(name string) bool // whether a name is always kept, because something else bounds it; nil: none is

	kept map[string]bool // as of the last commit
}

func newLabels(kind, source string, most int) labels {
	return labels{kind: kind, source: source, most: most, kept: map[string]bool{}}
}

// labelOf returns the label under which a name is counted: the name itself or "other". A new
// name is kept if there is room. counted says that the name has been counted before: then it
// keeps the label that it has, even if there is room now. The room of a name that is removed is
// free only after the commit, so that each name has one label within a transaction.
func (l *labels) labelOf(g *gathered, name string, counted bool) string {
	changes := g.changesOf(l)
	switch {
	case l.kept[name] && !changes.gone[name], changes.kept[name]:
		return name
	case counted || !l.hasRoom(changes, name):
		return otherLabel
	}

	changes.kept[name] = true

	return name
}

// hasRoom reports whether a new name can be kept: whether fewer names than most are kept, apart
// from exempt ones.
func (l *labels) hasRoom(changes *labelChanges, name string) bool {
	if l.exempt == nil {
		return len(l.kept)+len(changes.kept) < l.most
	}

	if l.exempt(name) {
		return true
	}

	bounded := 0
	for _, names := range []map[string]bool{l.kept, changes.kept} {
		for kept := range names {
			if !l.exempt(kept) {
				bounded++
			}
		}
	}

	return bounded < l.most
}

// isForeign reports whether a queue belongs to a source.
func isForeign(queue string) bool { return job.SourceOf(queue) != "" }

// committed updates the kept names after a commit.
func (l *labels) committed(changes *labelChanges) {
	for name := range changes.gone {
		delete(l.kept, name)
	}

	maps.Copy(l.kept, changes.kept)
}

// load reads the kept names from the database.
func (l *labels) load(src db.Source) (err error) {
	const query = `SELECT name, true FROM labels WHERE kind = $1 AND ($1 = 'queue' OR source = $2)`
	l.kept, err = db.Map[string, bool](src, query, l.kind, l.source)
	return err
}

// flush writes the names that are kept from now on. Remove has deleted the others.
func (l *labels) flush(t *db.Tx, changes *labelChanges) error {
	return db.AddSums(t, addLabels, changes.kept, func(name string, _ bool) []any {
		source := l.source
		if l.kind == "queue" {
			source = job.SourceOf(name)
		}

		return []any{l.kind, source, name}
	})
}

// queueLabel returns the label under which a queue is counted: its name or "other".
func (p *Projection) queueLabel(g *gathered, name string) string {
	return p.queueLabels.labelOf(g, name, p.queues[name] && !g.removed[name])
}

// typeLabel returns the label under which the type of a job is counted: its name or "other".
func (p *Projection) typeLabel(g *gathered, j *job.Job) string {
	if j.Source == "" {
		return p.typeLabels.labelOf(g, j.Type, false)
	}
	return p.sourceTypesOf(j.Source).labelOf(g, j.Type, false)
}

// sourceTypesOf returns the labels of the types of one source, and makes them if it has none.
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

// flushLabels writes the names that are kept from now on. The kinds have a fixed order, so that
// two transactions that write the same rows do not wait for each other.
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

// CountedTypes returns how many types have counters of their own, not counting those of sources.
func (p *Projection) CountedTypes() int {
	p.memory.mu.RLock()
	defer p.memory.mu.RUnlock()
	return len(p.typeLabels.kept)
}
