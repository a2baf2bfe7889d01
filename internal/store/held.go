package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/stats"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// hold makes jobs wait for a handler: they stay available, and no claim sees
// them.
func (s *Store) hold(t *db.Tx, jobs []job.Job, now time.Time) error {
	const update = `UPDATE jobs SET state = 'available', list_state = '', held = 1, changed_at = $2
		WHERE seq IN (SELECT value FROM json_each($1))`

	if len(jobs) == 0 {
		return nil
	}

	if err := t.Run(update, rows.Seqs(jobs), db.Micros(now)); err != nil {
		return fmt.Errorf("hold jobs of unknown types: %w", err)
	}

	s.core.MoveAll(t, jobs, stats.Totals{}, func(j *job.Job) {
		j.State, j.Held, j.ChangedAt = job.Available, true, db.FromMicros(db.Micros(now))
	})

	return nil
}

// unholdChunk is how many jobs one transaction lets go.
const unholdChunk = 500

// Unhold makes held jobs claimable again whose type is known now, and returns
// how many. It waits for the commit under way, in which a claim may hold a job whose
// type was not known when it asked.
func (s *Store) Unhold(ctx context.Context, knows func(string) bool) (int, error) {
	if err := s.writer.Do(ctx, 0, func(*db.Tx) error { return nil }); err != nil {
		return 0, fmt.Errorf("wait for claims under way: %w", err)
	}

	held, err := s.Counters.HeldTypes(ctx)
	known := slices.DeleteFunc(held, func(typ string) bool { return !knows(typ) })
	if err != nil || len(known) == 0 {
		return 0, err
	}

	types := db.Texts(known)

	total := 0
	var after filter.Cursor
	for {
		jobs, err := db.Write(ctx, s.writer, unholdChunk, func(t *db.Tx) ([]job.Job, error) { return s.unhold(t, types, after) })
		if err != nil {
			return total, fmt.Errorf("let held jobs go: %w", err)
		}

		// The jobs come in no certain order: the next chunk begins behind the last one of them.
		for _, j := range jobs {
			if j.ChangedAt.After(after.At) || j.ChangedAt.Equal(after.At) && j.Seq > after.Seq {
				after = filter.Cursor{At: j.ChangedAt, Seq: j.Seq}
			}
		}

		total += len(jobs)
		if len(jobs) < unholdChunk {
			return total, nil
		}
	}
}

// unhold lets the next held jobs of the types go, the longest held first, from
// a place on, so that those that stay are passed once only.
func (s *Store) unhold(t *db.Tx, types db.Texts, after filter.Cursor) ([]job.Job, error) {
	const update = `UPDATE jobs SET held = 0 WHERE seq IN (SELECT seq FROM jobs
			WHERE held = 1 AND (changed_at, seq) > ($1, $2) AND type IN (SELECT value FROM json_each($3))
			ORDER BY changed_at, seq LIMIT $4 + 0)
		RETURNING ` + rows.Columns

	jobs, err := s.policies.Jobs(t, update, db.Micros(after.At), after.Seq, types, unholdChunk)
	for i := range jobs {
		from := jobs[i]
		from.Held = true
		s.core.Move(t, &from, &jobs[i], stats.Totals{})
	}

	return jobs, err
}
