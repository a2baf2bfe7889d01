package store

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/store/db"
)

// Pause keeps claims away from a queue; what runs goes on. A queue that had no
// job yet can be paused too. Who paused first, and when, is kept.
func (s *Store) Pause(ctx context.Context, now time.Time, queue string, by audit.Actor) error {
	const upsert = `INSERT INTO queues (name, paused_at, paused_by) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at, paused_by = excluded.paused_by
		WHERE queues.paused_at = 0`

	return s.writer.Do(ctx, 1, func(t *db.Tx) error {
		n, err := t.Exec(upsert, queue, db.Micros(now), by.Name)
		if err != nil || n == 0 {
			return err
		}

		s.switched.In(t).paused = true

		err = s.pauses.setPaused(t, queue, true)
		if err != nil {
			return err
		}

		return s.Accounts.Log(t, audit.Entry{At: now, Actor: by, Action: "queue.pause", Subject: queue, Count: 1})
	})
}

// Resume lets claims take from a queue again. It returns job.ErrNotFound for a
// queue that never had a job and was never paused.
func (s *Store) Resume(ctx context.Context, now time.Time, queue string, by audit.Actor) error {
	const update = `UPDATE queues SET paused_at = 0, paused_by = '' WHERE name = $1 AND paused_at <> 0`

	return s.writer.Do(ctx, 1, func(t *db.Tx) error {
		n, err := t.Exec(update, queue)
		if err == nil && n == 0 && !s.Counters.KnowsQueue(t, queue) {
			err = fmt.Errorf("queue %s: %w", queue, job.ErrNotFound)
		}

		if err != nil || n == 0 {
			return err
		}

		s.switched.In(t).resumed = true

		err = s.pauses.setPaused(t, queue, false)
		if err != nil {
			return err
		}

		return s.Accounts.Log(t, audit.Entry{At: now, Actor: by, Action: "queue.resume", Subject: queue, Count: 1})
	})
}

// Paused tells since when a queue is paused, and by whom; the zero time when it
// runs. It reads one row, where Queues reads every queue with its last hour.
func (s *Store) Paused(ctx context.Context, queue string) (at time.Time, by string, err error) {
	const query = `SELECT paused_at, paused_by FROM queues WHERE name = $1`
	_, err = db.Row(s.reader.In(ctx), query, []any{db.Time(&at), &by}, queue)
	return at, by, err
}
