package store

import (
	"cmp"
	"database/sql"
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// candidates returns the next n jobs of a queue: of the available ones those
// with the highest priority, of the others those that have been due for the
// longest, and of all these again those with the highest priority.
func (s *Store) candidates(t *db.Tx, queue string, now time.Time, n int) ([]job.Job, error) {
	var jobs []job.Job
	for _, state := range []job.State{job.Available, job.Scheduled, job.Retryable} {
		waits, err := s.depths.mayWait(t, queue, state)
		if err != nil {
			return nil, err
		}

		if waits == 0 {
			continue
		}

		next, err := s.first(t, list{queue, state, now}, int(min(int64(n), waits)))
		if err != nil {
			return nil, err
		}

		jobs = joined(jobs, next)
	}

	// Up to n jobs of each state were found. The next n are the first of them all.
	slices.SortStableFunc(jobs, func(a, b job.Job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.RunAt.Compare(b.RunAt), cmp.Compare(a.Seq, b.Seq))
	})

	return jobs[:min(n, len(jobs))], nil
}

// list is a list of jobs that wait: those of a queue in one state which can run at a moment.
type list struct {
	queue string
	state job.State
	now   time.Time
}

// How the next jobs of a list are read. (SQLite would prepare a statement again for each value
// of a bare LIMIT $2.)
const (
	fromQueue = `SELECT ` + rows.NextColumns + ` FROM jobs JOIN bodies ON job_seq = seq WHERE queue = $1 AND `
	available = fromQueue + isAvailable
	due       = fromQueue + `run_at <= $3 AND list_state IN ('scheduled', 'retryable') AND list_state = `

	isAvailable = `state = 'available' AND held = 0`

	byPriority = ` ORDER BY priority DESC, run_at, seq LIMIT $2 + 0`
	byTime     = ` ORDER BY run_at, seq LIMIT $2 + 0`
)

// first returns the first n jobs of a list, fewer if it has fewer, and sets its bookmark.
func (s *Store) first(t *db.Tx, l list, n int) (jobs []job.Job, err error) {
	if l.state == job.Available {
		return s.available(t, l, n)
	}

	from, marked := s.bookmarks.At(t, l.queue, l.state)
	state := `'` + string(l.state) + `'` // a state of ours, and not an argument: the statistics of each differ

	if marked {
		jobs, err = s.read(t, l, n, due+state+` AND (run_at, seq) >= ($4, $5)`+byTime, db.Micros(l.now), from.RunAt, from.Seq)
	} else {
		jobs, err = s.read(t, l, n, due+state+byTime, db.Micros(l.now))
	}

	if err == nil && len(jobs) > 0 {
		s.bookmarks.Set(t, &jobs[0])
	}

	return jobs, err
}

// read reads at most n jobs of a list.
func (s *Store) read(t *db.Tx, l list, n int, query string, args ...any) ([]job.Job, error) {
	found := rows.FoundFor(n)
	err := t.Query(query, func(row *sql.Rows) error {
		return found.ScanNext(row, job.Job{Queue: l.queue, State: l.state})
	}, append([]any{l.queue, n}, args...)...)

	return s.policies.Complete(t, found, err)
}
