package groups

import (
	"database/sql"
	"fmt"
	"time"

	"redrive/internal/store/db"
)

// Prune removes error groups that no job belongs to any more and in which
// nothing has failed since a time, at most so many. Those stay that have a note,
// or that a person resolved or ignores; and so does the newest, because the
// next number follows from it and none is given twice.
func (b *Book) Prune(t *db.Tx, before time.Time, most int64) (int, error) {
	const query = `SELECT id, fingerprint FROM groups AS g WHERE state = 'open' AND last_seen < $1 AND note = '' AND id <> $2
		AND NOT EXISTS (SELECT 1 FROM jobs WHERE group_id = g.id AND group_id <> 0) ORDER BY last_seen, id LIMIT $3 + 0`
	old := map[int64]string{}
	err := t.Query(query, func(rows *sql.Rows) error {
		var id int64
		var fingerprint string
		err := rows.Scan(&id, &fingerprint)
		if b.sums.groups[id] == nil { // nothing of it waits to be written
			old[id] = fingerprint
		}
		return err
	}, db.Micros(before), b.newestNow, most)
	if err != nil || len(old) == 0 {
		return 0, err
	}
	if err := b.remove(t, old); err != nil {
		return 0, fmt.Errorf("remove old error groups: %w", err)
	}
	t.Touch()
	return len(old), nil
}

func (b *Book) remove(t *db.Tx, old map[int64]string) error {
	numbers := make([]int64, 0, len(old))
	for id := range old {
		numbers = append(numbers, id)
	}
	for _, remove := range []string{
		`DELETE FROM group_hours WHERE group_id IN (SELECT value FROM json_each($1))`,
		`DELETE FROM group_queues WHERE group_id IN (SELECT value FROM json_each($1))`,
		`DELETE FROM groups WHERE id IN (SELECT value FROM json_each($1))`,
	} {
		if _, err := t.Exec(remove, db.Numbers(numbers)); err != nil {
			return err
		}
	}
	for _, fingerprint := range old {
		b.changed[fingerprint] = nil
	}
	return nil
}
