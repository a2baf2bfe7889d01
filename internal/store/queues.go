package store

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// maxFinished is how many finished jobs are removed with their queue.
const maxFinished = 10_000

// removeChunk is how many of them one transaction removes.
const removeChunk = 500

// RemoveQueue forgets a queue that is empty: no job in it waits or runs, none has
// an open or refused dead letter, and none is in the trash. Its finished jobs are
// removed with it, as long as they are no more than maxFinished; it returns how
// many those were. A queue that is not empty is a *job.Conflict, one that is not
// known job.ErrNotFound. What the queue counted stays in the totals.
func (s *Store) RemoveQueue(ctx context.Context, now time.Time, queue string, by audit.Actor) (removed int64, err error) {
	const query = `SELECT seq FROM jobs WHERE queue = $1 AND state IN ('completed', 'cancelled', 'discarded') AND letter = '' LIMIT $2 + 0`

	// A queue that cannot be removed is refused before anything of it is removed.
	err = s.writer.Do(ctx, 1, func(t *db.Tx) error { return s.removable(t, queue, maxFinished) })
	if err != nil {
		return 0, err
	}

	finished, err := db.All(s.reader.In(ctx), query, func(seq *int64) []any { return []any{seq} }, queue, maxFinished+1)
	if err != nil {
		return 0, fmt.Errorf("look for the finished jobs of queue %s: %w", queue, err)
	}

	// Each chunk is a transaction of its own, and other callers can write in between.
	for len(finished) > 0 {
		some := finished[:min(len(finished), removeChunk)]

		n, err := db.Write(ctx, s.writer, removeChunk, func(t *db.Tx) (int64, error) { return s.removeFinished(t, now, queue, some, by) })
		if err != nil {
			return removed, err
		}

		removed, finished = removed+n, finished[len(some):]
	}

	// Jobs may have come into the queue meanwhile, or ended there: the queue is removed only if
	// none is left.
	return removed, s.writer.Do(ctx, removeChunk, func(t *db.Tx) error {
		if err := s.removable(t, queue, 0); err != nil {
			return err
		}

		if err := s.Counters.Remove(t, queue); err != nil {
			return fmt.Errorf("remove queue %s: %w", queue, err)
		}

		// The row that says that the queue is paused is deleted by now, and claims have to
		// learn of that.
		paused, err := s.pauses.isPaused(t, queue)
		if err == nil && paused {
			err = s.pauses.setPaused(t, queue, false)
		}

		if err != nil {
			return err
		}

		t.Touch()

		return s.Accounts.Log(t, audit.Entry{At: now, Actor: by, Action: "queue.remove", Subject: queue, Count: 1})
	})
}

// removable says why a queue cannot be removed: it is not empty, or has more
// finished jobs than are removed with it.
func (s *Store) removable(t *db.Tx, queue string, most int64) error {
	if !s.Counters.KnowsQueue(t, queue) {
		return fmt.Errorf("queue %s: %w", queue, job.ErrNotFound)
	}

	var finished int64
	for _, status := range job.Statuses() {
		n := s.Counters.Depth(t, queue, status)
		switch status {
		case job.Status(job.Completed), job.Status(job.Cancelled), job.Status(job.Discarded):
			finished += n
			continue
		case job.StatusHeld: // they are available too
			continue
		}

		if n != 0 {
			return &job.Conflict{Problem: fmt.Sprintf(
				"the queue %s is not empty: it has %d jobs that are %s; nothing was removed", queue, n, status)}
		}
	}

	if finished > most {
		return &job.Conflict{Problem: fmt.Sprintf("the queue %s has the history of %d finished jobs, and at most %d are removed with a queue; "+
			"the queue is still there", queue, finished, most)}
	}

	return nil
}

// removeFinished removes those of the jobs that are finished and still in the
// queue.
func (s *Store) removeFinished(t *db.Tx, now time.Time, queue string, seqs []int64, by audit.Actor) (int64, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1)) AND queue = $2
		AND state IN ('completed', 'cancelled', 'discarded') AND letter = ''`

	jobs, err := s.policies.Jobs(t, query, db.Numbers(seqs), queue)
	if err != nil || len(jobs) == 0 {
		return 0, err
	}

	if err := s.core.Remove(t, jobs); err != nil {
		return 0, fmt.Errorf("remove the finished jobs of queue %s: %w", queue, err)
	}

	n := int64(len(jobs))

	return n, s.Accounts.Log(t, audit.Entry{At: now, Actor: by, Action: "queue.purge", Subject: queue, Count: n})
}
