package groups

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"redrive/internal/store/db"
)

// Size returns how many groups there are, not counting those of sources, which have bounds of
// their own.
func (p *Projection) Size() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.sizes[""]
}

// MakeRoom removes groups of any age, those without failures for the longest time first, until
// no more than nine tenths of the bound are left, or until it has removed limit groups. It does
// so separately for our own groups and for those of each source, each with its own bound. Like
// Prune, it removes only groups that nothing needs, and returns how many it removed.
func (p *Projection) MakeRoom(t *db.Tx, now time.Time, limit int64) (removed int, err error) {
	for _, source := range slices.Sorted(maps.Keys(p.sizes)) {
		over := int64(p.size(p.gathered.In(t), source) - p.bound(source)*9/10)
		over = min(over, limit-int64(removed))
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

// Prune removes at most limit error groups to which no job belongs any more and in which nothing
// has failed since a time, and returns how many it removed. It keeps groups that have a note and
// those that a person resolved or ignores. It also keeps the newest group, because the number
// of the next one is higher by one, and no number may be used twice.
func (p *Projection) Prune(t *db.Tx, before time.Time, limit int64) (int, error) {
	return p.prune(t, `true`, before, limit)
}

// prune is Prune for the groups for which a condition holds, which can use args from $4 on.
func (p *Projection) prune(t *db.Tx, condition string, before time.Time, limit int64, args ...any) (int, error) {
	in := p.gathered.In(t)
	query := `SELECT id, fingerprint FROM groups AS g WHERE state = 'open' AND last_seen < $1 AND note = '' AND id <> $2
		AND NOT EXISTS (SELECT 1 FROM jobs WHERE group_id = g.id AND group_id <> 0) AND ` + condition + ` ORDER BY last_seen, id LIMIT $3 + 0`

	old, err := db.Map[int64, string](t, query, append([]any{db.Micros(before), in.newest, limit}, args...)...)
	if err != nil {
		return 0, err
	}

	// Keep the groups for which this transaction has counted something that is not written yet.
	// The query has left out those for which it is written: such a group has a job, or its newest
	// failure is new.
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
