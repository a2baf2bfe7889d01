package store

import (
	"fmt"
	"strings"

	"redrive/internal/job"
	"redrive/internal/store/bookmark"
	"redrive/internal/store/counters"
	"redrive/internal/store/db"
)

// available returns the first n available jobs of a queue, of which there are at least so many, in
// the order of their priorities.
func (s *Store) available(t *db.Tx, l list, n int) ([]job.Job, error) {
	if !s.bookmarks.On() {
		return s.read(t, l, n, available+byPriority)
	}

	lanes, err := s.lanes(t, l.queue)
	if err != nil {
		return nil, err
	}

	jobs, err := s.fromLanes(t, l, n, lanes)
	if err != nil {
		return nil, err
	}

	// At least n jobs are available, so a bookmark is wrong if fewer were found.
	if len(jobs) < n {
		s.bookmarks.Forget(t, l.queue)
		return s.read(t, l, n, available+byPriority)
	}

	s.bookmarks.Found(t, l.queue, jobs)

	return jobs, nil
}

// lanes are the lanes of a queue, which are looked for where they are not known: the highest
// priority, the highest one below it, and so on.
func (s *Store) lanes(t *db.Tx, queue string) ([]bookmark.Lane, error) {
	const highest = `SELECT max(priority) AS priority FROM jobs WHERE queue = $1 AND ` + isAvailable
	const query = `WITH RECURSIVE lanes AS (` + highest + `
		UNION ALL SELECT (` + highest + ` AND jobs.priority < lanes.priority) FROM lanes WHERE lanes.priority IS NOT NULL)
		SELECT priority FROM lanes WHERE priority IS NOT NULL`

	lanes, known := s.bookmarks.Lanes(t, queue)
	if known {
		return lanes, nil
	}

	priorities, err := db.All(t, query, func(priority *int) []any { return []any{priority} }, queue)
	if err != nil {
		return nil, fmt.Errorf("look for the priorities of the jobs that wait: %w", err)
	}

	return s.bookmarks.Learn(t, queue, priorities), nil
}

// lanesAtOnce is how many lanes are read with one statement. More of them are rare.
const lanesAtOnce = 8

// fromLanes returns the first n jobs of lanes. Those of the first lanes are looked for from their
// bookmarks on, one lane after the other until there are enough jobs, and those of all further
// lanes from their front.
func (s *Store) fromLanes(t *db.Tx, l list, n int, lanes []bookmark.Lane) (jobs []job.Job, err error) {
	const lower = available + ` AND priority < $3` + byPriority

	first := lanes[:min(len(lanes), lanesAtOnce)]
	if len(first) > 0 {
		query, args := ofLanes(first)
		jobs, err = s.read(t, l, n, query, args...)
	}

	if err != nil || len(jobs) == n || len(first) == len(lanes) {
		return jobs, err
	}

	rest, err := s.read(t, l, n-len(jobs), lower, first[len(first)-1].Priority)

	return joined(jobs, rest), err
}

// ofLanes is the query of the first jobs of some lanes, and its arguments.
func ofLanes(lanes []bookmark.Lane) (query string, args []any) {
	const lane = available + ` AND priority = $%d AND (run_at, seq) >= ($%d, $%d)` + byTime

	parts := make([]string, len(lanes))
	for i, l := range lanes {
		first := len(args) + 3 // behind the queue and the number of jobs
		parts[i] = fmt.Sprintf(lane, first, first+1, first+2)
		args = append(args, l.Priority, l.From.RunAt, l.From.Seq)
	}

	if len(parts) == 1 {
		return parts[0], args
	}

	return `SELECT * FROM (` + strings.Join(parts, `) AS lane UNION ALL SELECT * FROM (`) + `) AS lane LIMIT $2 + 0`, args
}

// fronts are the places of bookmarks, for the counters of queues.
type fronts struct{ *bookmark.Bookmarks }

func (f fronts) Due(queue string, state job.State) counters.Front {
	p := f.Front(queue, state)
	return counters.Front{RunAt: p.RunAt, Seq: p.Seq}
}

func (f fronts) Available(queue string) (all []counters.Front, ok bool) {
	lanes, ok := f.Fronts(queue)
	for _, lane := range lanes {
		all = append(all, counters.Front{Priority: lane.Priority, RunAt: lane.From.RunAt, Seq: lane.From.Seq})
	}

	return all, ok
}
