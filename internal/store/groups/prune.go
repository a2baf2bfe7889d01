package groups

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"redrive/internal/store/db"
)

// Size is how many groups there are, without those that sources brought: these have a bound
// of their own.
func (p *Projection) Size() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.sizes[""]
}

// MakeRoom prunes groups of any age, the oldest first, while more than nine tenths
// of those that there may be are there. Our own groups and those that each source brought
// are looked at one after the other, and those of one make no room for another.
func (p *Projection) MakeRoom(t *db.Tx, now time.Time, most int64) (removed int, err error) {
	for _, source := range slices.Sorted(maps.Keys(p.sizes)) {
		over := int64(p.size(p.gathered.In(t), source) - p.bound(source)*9/10)
		over = min(over, most-int64(removed))
		if over <= 0 {
			continue
		}

		n, err := p.prune(t, `source = $4`, now, over, source)
		if err != nil {
			return removed, err
		}

		removed += n
	}

	return removed, nil
}

// Prune removes error groups that no job belongs to any more and in which
// nothing has failed since a time, at most so many. Those stay that have a note,
// or that a person resolved or ignores; and so does the newest, because the
// next number follows from it and none is given twice.
func (p *Projection) Prune(t *db.Tx, before time.Time, most int64) (int, error) {
	return p.prune(t, `true`, before, most)
}

// prune is Prune of the groups for which a condition holds.
func (p *Projection) prune(t *db.Tx, condition string, before time.Time, most int64, args ...any) (int, error) {
	in := p.gathered.In(t)
	query := `SELECT id, fingerprint FROM groups AS g WHERE state = 'open' AND last_seen < $1 AND note = '' AND id <> $2
		AND NOT EXISTS (SELECT 1 FROM jobs WHERE group_id = g.id AND group_id <> 0) AND ` + condition + ` ORDER BY last_seen, id LIMIT $3 + 0`

	old, err := db.Map[int64, string](t, query, append([]any{db.Micros(before), in.newest, most}, args...)...)
	if err != nil {
		return 0, err
	}

	// Those stay of which something waits to be written. What was written in this transaction is
	// found by the query: such a group has a job, or its newest failure is new.
	maps.DeleteFunc(old, func(id int64, _ string) bool { return in.groups[id] != nil })

	if len(old) == 0 {
		return 0, nil
	}

	const hours = `DELETE FROM group_hours WHERE group_id IN (SELECT value FROM json_each($1))`
	const queues = `DELETE FROM group_queues WHERE group_id IN (SELECT value FROM json_each($1))`

	const groups = `DELETE FROM groups WHERE id IN (SELECT value FROM json_each($1))`
	numbers := db.Numbers(slices.Collect(maps.Keys(old)))
	if err := db.Steps(t, db.Any(hours, numbers), db.Any(queues, numbers), db.Any(groups, numbers)); err != nil {
		return 0, fmt.Errorf("remove old error groups: %w", err)
	}

	for _, fingerprint := range old {
		g, _ := p.group(in, fingerprint)
		in.sizes[g.source]--
		in.removed[fingerprint] = true
	}

	t.Touch()

	return len(old), nil
}
