package store

import (
	"context"
	"database/sql"
	"time"
)

// Paused tells since when a queue is paused, and by whom; the zero time when it
// runs. It reads one row, where Queues reads every queue with its last hour.
func (s *Store) Paused(ctx context.Context, queue string) (at time.Time, by string, err error) {
	const query = `SELECT paused_at, paused_by FROM queues WHERE name = $1`
	err = s.reading(ctx).query(query, func(rows *sql.Rows) error {
		var since int64
		err := rows.Scan(&since, &by)
		at = fromMicros(since)
		return err
	}, queue)
	return at, by, err
}
