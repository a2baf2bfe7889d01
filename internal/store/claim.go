package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/stats"
	"redrive/internal/store/bookmark"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// claim takes, in each queue that is not paused, as many of the next jobs as can
// start, and as many more as are wanted to prefetch.
func (s *Store) claim(t *db.Tx, c job.Claim) ([]job.Job, error) {
	var claimed []job.Job
	for _, queue := range queuesAsked(c) {
		paused, err := s.pauses.isPaused(t, queue)
		if err != nil {
			return nil, err
		}

		if paused {
			continue
		}

		jobs, err := s.claimQueue(t, c, queue)
		if err != nil {
			return nil, fmt.Errorf("claim from queue %s: %w", queue, err)
		}

		claimed = joined(claimed, jobs)
	}

	return claimed, nil
}

// queuesAsked names the queues from which jobs are wanted, sorted.
func queuesAsked(c job.Claim) []string {
	all := make([]string, 0, len(c.Free)+len(c.Prefetch))
	for queue := range c.Free {
		all = append(all, queue)
	}

	for queue := range c.Prefetch {
		if _, too := c.Free[queue]; !too {
			all = append(all, queue)
		}
	}

	slices.Sort(all)

	return all
}

// joined appends, without copying in the usual case that one of them is empty:
// jobs are large.
func joined(a, b []job.Job) []job.Job {
	if len(a) == 0 {
		return b
	}
	return append(a, b...)
}

// maxHeld bounds how many jobs of unknown types one claim moves aside, so that
// a flood of them does not delay other callers' commits for long. Their changes are
// announced, so the claimer comes back for the rest.
const maxHeld = 2000

// claimQueue takes the next jobs of a queue. Jobs whose type no worker knows are
// held, so that they are not looked at again, and others are taken in their place.
func (s *Store) claimQueue(t *db.Tx, c job.Claim, queue string) ([]job.Job, error) {
	free := max(0, c.Free[queue])

	n := free + max(0, c.Prefetch[queue])
	if n == 0 {
		return nil, nil
	}

	// Jobs that are moved aside make room for others among the next n, which are read again.
	// Past maxHeld, the known ones of the last round have to do.
	var known []job.Job
	held := 0
	for held < maxHeld {
		next, err := s.candidates(t, queue, c.Now, n)
		if err != nil {
			return nil, err
		}

		var unknown []job.Job
		known, unknown = sortOut(next, c.Knows)
		if len(unknown) == 0 {
			break
		}

		if err := s.hold(t, unknown, c.Now); err != nil {
			return nil, err
		}

		held += len(unknown)
	}

	// The first ones start at once, as far as workers are free; the others are prefetched.
	free = min(free, len(known))
	if err := s.start(t, c, known[:free], false); err != nil {
		return nil, err
	}

	return known, s.start(t, c, known[free:], true)
}

// sortOut tells the jobs that have a handler from the others.
func sortOut(all []job.Job, knows func(string) bool) (known, unknown []job.Job) {
	if knows == nil || !slices.ContainsFunc(all, func(j job.Job) bool { return !knows(j.Type) }) {
		return all, nil
	}

	for _, j := range all {
		if knows(j.Type) {
			known = append(known, j)
		} else {
			unknown = append(unknown, j)
		}
	}

	return known, unknown
}

// start starts executions of jobs. One that is prefetched is not known to have
// begun, unless it was not known the last time either: a job that kills its process
// must not run again and again forever.
func (s *Store) start(t *db.Tx, c job.Claim, jobs []job.Job, prefetched bool) error {
	const update = `UPDATE jobs SET state = 'active', execution = execution + 1, started_at = $2,
		worker = $3, lease_until = $4, last_seen = $2, unbegun = CASE WHEN unbegun = 0 THEN $5 ELSE 0 END`
	const these = ` WHERE seq IN (SELECT value FROM json_each($1))`

	if len(jobs) == 0 {
		return nil
	}

	now, until := db.FromMicros(db.Micros(c.Now)), db.FromMicros(db.Micros(c.Now.Add(c.Lease)))

	query := update + these // the usual one touches no list
	if slices.ContainsFunc(jobs, func(j job.Job) bool { return j.State != job.Available }) {
		query = update + `, list_state = ''` + these
	}

	if err := t.Run(query, rows.Seqs(jobs), db.Micros(now), c.Worker, db.Micros(until), prefetched); err != nil {
		return err
	}

	s.core.MoveAll(t, jobs, stats.Totals{}, func(j *job.Job) {
		j.State, j.Execution = job.Active, j.Execution+1
		j.Worker, j.LeaseUntil = c.Worker, until
		j.ChangedAt, j.StartedAt, j.LastSeen = now, now, now
		j.Unbegun = prefetched && !j.Unbegun
	})

	return s.leases.began(t, jobs)
}

// noteBegun notes that executions that were prefetched have begun. Those that were
// fenced off since are no longer known.
func (s *Store) noteBegun(t *db.Tx, all []job.Token) error {
	const update = `UPDATE jobs SET unbegun = 0 WHERE seq IN (SELECT value FROM json_each($1))`

	seqs := make([]int64, 0, len(all))
	for _, token := range all {
		j, ok, err := s.leases.execution(t, token)
		if err != nil {
			return err
		}

		if ok {
			seqs = append(seqs, j.Seq)
		}
	}

	if len(seqs) == 0 {
		return nil
	}

	return t.ExecExactly(len(seqs), update, db.Numbers(seqs))
}

// Leases returns the active jobs whose lease ends at endedBy or before, all
// active jobs for the zero time. They come with their payloads: what one process
// had in memory, the next one can hold.
func (s *Store) Leases(ctx context.Context, endedBy time.Time) ([]job.Job, error) {
	const all = rows.Whole + ` WHERE state = 'active' ORDER BY started_at, seq`
	const ended = rows.Whole + ` WHERE state = 'active' AND (started_at, seq) >= ($1, $2) AND lease_until <= $3 ORDER BY started_at, seq`
	const first = `SELECT started_at, seq FROM jobs WHERE state = 'active' AND (started_at, seq) >= ($1, $2) ORDER BY started_at, seq LIMIT 1`

	src := s.reader.In(ctx)
	if endedBy.IsZero() {
		return s.policies.Whole(src, all)
	}

	from, err := s.running.Find(func(from bookmark.Place) (p bookmark.Place, ok bool, err error) {
		ok, err = db.Row(src, first, []any{&p.RunAt, &p.Seq}, from.RunAt, from.Seq)
		return p, ok, err
	})
	if err != nil {
		return nil, err
	}

	return s.policies.Whole(src, ended, from.RunAt, from.Seq, db.Micros(endedBy))
}

// active returns the active jobs without what their workers alone need: a start
// reads what ten thousand of them left behind in half the time of [Store.Leases].
func (s *Store) active(src db.Source) ([]job.Job, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE state = 'active' ORDER BY started_at, seq`
	return s.policies.Jobs(src, query)
}

// NextDue returns the earliest time after a moment at which a scheduled or
// retryable job can run in a queue that is not paused; zero when none waits for
// its time. Jobs that are due already do not hide later ones.
func (s *Store) NextDue(ctx context.Context, after time.Time) (time.Time, error) {
	const query = `SELECT coalesce(min(due), 0) FROM (
		SELECT (SELECT run_at FROM jobs WHERE queue = d.queue AND list_state = d.status AND list_state IN ('scheduled', 'retryable')
			AND run_at > $1 ORDER BY run_at LIMIT 1) AS due
		FROM depths AS d
		WHERE d.status IN ('scheduled', 'retryable') AND d.n > 0
			AND NOT EXISTS (SELECT 1 FROM queues AS q WHERE q.name = d.queue AND q.paused_at <> 0)) AS next`
	due, err := db.Value[int64](s.reader.In(ctx), query, db.Micros(after))

	return db.FromMicros(due), err
}
