package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"redrive/internal/job"
)

// candidate is a job that a claim may take, as its index tells it.
type candidate struct {
	seq   int64
	typ   string
	state job.State
}

// claim takes, in each queue that is not paused, as many of the next jobs as
// can start.
func (t *tx) claim(c job.Claim) ([]job.Job, error) {
	var claimed []job.Job
	for _, queue := range slices.Sorted(maps.Keys(c.Free)) {
		if c.Free[queue] <= 0 || t.isPaused(queue) {
			continue
		}
		jobs, err := t.claimQueue(c, queue, c.Free[queue])
		if err != nil {
			return nil, fmt.Errorf("claim from queue %s: %w", queue, err)
		}
		claimed = append(claimed, jobs...)
	}
	return claimed, nil
}

func (t *tx) isPaused(queue string) bool {
	if on, ok := t.paused[queue]; ok {
		return on
	}
	return t.rollup.paused[queue]
}

// maxHeld bounds how many jobs of unknown types one claim moves aside, so that
// a flood of them delays nobody else's commit for long. Their changes are told,
// so the claimer comes again for the rest.
const maxHeld = 2000

// claimQueue holds the jobs that nobody knows, so that they are not looked at
// again, and goes on to the next ones until n are found.
func (t *tx) claimQueue(c job.Claim, queue string, n int) ([]job.Job, error) {
	var claimed []job.Job
	for held := 0; len(claimed) < n && held < maxHeld; {
		next, err := t.candidates(queue, c.Now, n-len(claimed))
		if err != nil {
			return nil, err
		}
		known, unknown := sortOut(next, c.Knows)
		if err := t.hold(unknown, c.Now); err != nil {
			return nil, err
		}
		held += len(unknown)
		jobs, err := t.take(c, known)
		if err != nil {
			return nil, err
		}
		claimed = append(claimed, jobs...)
		if len(unknown) == 0 {
			break
		}
	}
	return claimed, nil
}

// candidates returns the next n jobs of a queue: of the available ones those
// with the highest priority, of the others those that have been due for the
// longest, and of all these again those with the highest priority.
func (t *tx) candidates(queue string, now time.Time, n int) ([]candidate, error) {
	const query = `SELECT seq, type, state FROM (
			SELECT * FROM (SELECT seq, type, state, priority, run_at FROM jobs
				WHERE queue = $1 AND state = 'available' AND held = 0 ORDER BY priority DESC, run_at, seq LIMIT $3)
			UNION ALL SELECT * FROM (SELECT seq, type, state, priority, run_at FROM jobs
				WHERE queue = $1 AND state = 'scheduled' AND run_at <= $2 ORDER BY run_at, seq LIMIT $3)
			UNION ALL SELECT * FROM (SELECT seq, type, state, priority, run_at FROM jobs
				WHERE queue = $1 AND state = 'retryable' AND run_at <= $2 ORDER BY run_at, seq LIMIT $3)
		) AS next ORDER BY priority DESC, run_at, seq LIMIT $3`
	found := make([]candidate, 0, n)
	err := t.query(query, func(rows *sql.Rows) error {
		var c candidate
		var state string
		err := rows.Scan(&c.seq, &c.typ, &state)
		c.state = job.State(state)
		found = append(found, c)
		return err
	}, queue, micros(now), n)
	return found, err
}

// sortOut tells the jobs that have a handler from the others.
func sortOut(all []candidate, knows func(string) bool) (known, unknown []candidate) {
	if knows == nil {
		return all, nil
	}
	for _, c := range all {
		if knows(c.typ) {
			known = append(known, c)
		} else {
			unknown = append(unknown, c)
		}
	}
	return known, unknown
}

// take starts executions of the jobs, in their order.
func (t *tx) take(c job.Claim, next []candidate) ([]job.Job, error) {
	const update = `UPDATE jobs SET state = 'active', execution = execution + 1, changed_at = $2, started_at = $2,
			worker = $3, lease_until = $4, last_seen = $2
		WHERE seq = $1 RETURNING ` + jobColumns
	jobs := make([]job.Job, 0, len(next))
	for _, n := range next {
		j, err := one(t.store.policies.jobs(t, update, n.seq, micros(c.Now), c.Worker, micros(c.Now.Add(c.Lease))))
		if err != nil {
			return nil, err
		}
		from := j
		from.State = n.state
		t.moved(from, j)
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// hold makes jobs wait for a handler: they stay available, and no claim sees
// them.
func (t *tx) hold(jobs []candidate, now time.Time) error {
	const update = `UPDATE jobs SET state = 'available', held = 1, changed_at = $2 WHERE seq = $1 RETURNING ` + jobColumns
	for _, c := range jobs {
		j, err := one(t.store.policies.jobs(t, update, c.seq, micros(now)))
		if err != nil {
			return fmt.Errorf("hold a job of type %s: %w", c.typ, err)
		}
		from := j
		from.State, from.Held = c.state, false
		t.moved(from, j)
	}
	return nil
}

// unholdChunk is how many jobs one transaction lets go.
const unholdChunk = 500

// Unhold makes held jobs claimable again whose type is known now, and returns
// how many.
func (s *Store) Unhold(ctx context.Context, knows func(string) bool) (int, error) {
	held, err := s.Held(ctx)
	if err != nil {
		return 0, err
	}
	types := map[string]bool{}
	for _, h := range held {
		if knows(h.Type) {
			types[h.Type] = true
		}
	}
	total := 0
	for _, typ := range slices.Sorted(maps.Keys(types)) {
		for {
			n, err := write(ctx, s.writer, unholdChunk, func(t *tx) (int, error) { return t.unhold(typ) })
			if err != nil {
				return total, fmt.Errorf("let the held jobs of type %s go: %w", typ, err)
			}
			if total += n; n < unholdChunk {
				break
			}
		}
	}
	return total, nil
}

func (t *tx) unhold(typ string) (int, error) {
	const update = `UPDATE jobs SET held = 0
		WHERE seq IN (SELECT seq FROM jobs WHERE held = 1 AND type = $1 ORDER BY seq LIMIT $2) RETURNING ` + jobColumns
	jobs, err := t.store.policies.jobs(t, update, typ, unholdChunk)
	for _, j := range jobs {
		from := j
		from.Held = true
		t.moved(from, j)
	}
	return len(jobs), err
}

// Held tells, by queue and type, how many jobs wait for a handler.
func (s *Store) Held(ctx context.Context) ([]job.HeldType, error) {
	const query = `SELECT queue, type, n FROM held WHERE n > 0 ORDER BY queue, type`
	var held []job.HeldType
	err := s.reading(ctx).query(query, func(rows *sql.Rows) error {
		var h job.HeldType
		err := rows.Scan(&h.Queue, &h.Type, &h.Count)
		held = append(held, h)
		return err
	})
	return held, err
}

// Leases returns the active jobs whose lease ends at endedBy or before, all
// active jobs for the zero time, without their payloads beyond the first bytes.
func (s *Store) Leases(ctx context.Context, endedBy time.Time) ([]job.Job, error) {
	const query = `SELECT ` + rowColumns + ` FROM jobs WHERE state = 'active' AND ($1 = 0 OR lease_until <= $1) ORDER BY changed_at, seq`
	return s.policies.jobs(s.reading(ctx), query, micros(endedBy))
}

// NextDue returns the earliest time at which a scheduled or retryable job can
// run in a queue that is not paused; zero when none waits for its time.
func (s *Store) NextDue(ctx context.Context) (time.Time, error) {
	const query = `SELECT coalesce(min(due), 0) FROM (
		SELECT CASE d.status
			WHEN 'scheduled' THEN (SELECT min(run_at) FROM jobs WHERE queue = d.queue AND state = 'scheduled')
			ELSE (SELECT min(run_at) FROM jobs WHERE queue = d.queue AND state = 'retryable') END AS due
		FROM depths AS d
		WHERE d.status IN ('scheduled', 'retryable') AND d.n > 0
			AND NOT EXISTS (SELECT 1 FROM queues AS q WHERE q.name = d.queue AND q.paused_at <> 0)) AS next`
	var due int64
	err := s.reading(ctx).query(query, func(rows *sql.Rows) error { return rows.Scan(&due) })
	return fromMicros(due), err
}
