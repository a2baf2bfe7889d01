package sweep

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// overAge removes jobs that are older than they may be.
func (p *pass) overAge(ctx context.Context) error {
	for _, kind := range retention.WithAge() {
		if err := p.overAgeOf(ctx, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}

	return nil
}

func (p *pass) overAgeOf(ctx context.Context, kind retention.Kind) error {
	ages := p.limits.Different(kind)
	if len(ages) == 0 {
		return nil
	}

	var last int64
	if kind == retention.Completed {
		if depths := p.depths(); depths[job.Status(job.Completed)]+depths[job.Status(job.Returned)] == 0 {
			return nil // all other jobs would be read to find none, which can be a million dead letters
		}

		var err error

		last, err = p.enqueuedBefore(ctx, p.now.Add(-ages[0]))
		if err != nil {
			return err
		}
	}

	// The shortest age finds every job that can be too old; p.due looks at the age of each.
	next, more := (place{}), true
	for more {
		var due []int64
		var err error

		due, next, more, err = p.due(ctx, kind, p.now.Add(-ages[0]), next, last)
		if err != nil {
			return err
		}

		if err := p.removeDue(ctx, kind, due); err != nil {
			return err
		}
	}

	return nil
}

// due reads the next page of jobs of a kind that ended before a time, and names
// those whose own time has come.
func (p *pass) due(ctx context.Context, kind retention.Kind, before time.Time, after place, last int64) (
	due []int64, next place, more bool, err error,
) {
	where, at := ended(kind)

	query := `SELECT ` + at + `, seq, queue, type FROM jobs WHERE ` + where + ` AND ` + notAtSource + ` AND changed_at < $1
		AND (changed_at, seq) > ($2, $3) ORDER BY changed_at, seq LIMIT $4 + 0`
	args := []any{db.Micros(before), after.at, after.seq, duePage}
	if kind == retention.Completed {
		query = `SELECT ` + at + `, seq, queue, type FROM jobs WHERE ` + where + ` AND ` + notAtSource + `
			AND ` + at + ` < $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4 + 0`
		args = []any{db.Micros(before), after.seq, last, duePage}
	}

	type row struct {
		place
		queue, typ string
	}
	page, err := db.All(p.reader.In(ctx), query, func(r *row) []any { return []any{&r.at, &r.seq, &r.queue, &r.typ} }, args...)
	for _, r := range page {
		next = r.place
		if p.over(kind, r.queue, r.typ, db.FromMicros(r.at)) {
			due = append(due, r.seq)
		}
	}

	return due, next, len(page) == duePage, err
}

// over reports whether a job that ended at a time is older than it may be.
func (p *pass) over(kind retention.Kind, queue, typ string, at time.Time) bool {
	age := p.limits.Age(kind, queue, typ)
	return age > 0 && at.Before(p.now.Add(-age))
}

// enqueuedBefore is the number of the newest job that was enqueued before a time.
// Jobs are numbered in the order of their enqueueing, so it is found by halving.
func (s *Sweeper) enqueuedBefore(ctx context.Context, at time.Time) (int64, error) {
	const newest = `SELECT newest FROM revision`
	const query = `SELECT seq, enqueued_at FROM jobs WHERE seq BETWEEN $1 AND $2 ORDER BY seq LIMIT 1`
	src := s.reader.In(ctx)

	high, err := db.Value[int64](src, newest)
	low := int64(0)
	for low < high && err == nil {
		middle := low + (high-low+1)/2

		var seq, enqueued int64
		var found bool

		// Jobs were removed, so this is the first one from the middle on. If it is old enough,
		// the search goes on above it; otherwise all jobs from the middle on are too new.
		found, err = db.Row(src, query, []any{&seq, &enqueued}, middle, high)
		if found && enqueued < db.Micros(at) {
			low = seq
		} else {
			high = middle - 1
		}
	}

	return low, err
}

// removeDue removes jobs in as many steps as it takes.
func (p *pass) removeDue(ctx context.Context, kind retention.Kind, due []int64) error {
	type step struct {
		looked int
		jobs   parts
	}
	for len(due) > 0 {
		these := due // the write may still run when its caller no longer waits for it

		done, err := db.Write(ctx, p.writer, heavyStep, func(t *db.Tx) (s step, err error) {
			s.jobs = parts{}
			for more := true; more; more = s.looked < len(these) && !p.writer.Waited() {
				some := these[s.looked:min(s.looked+dueChunk, len(these))]

				err = p.removeSome(t, kind, some, s.jobs)
				if err != nil {
					return s, err
				}

				s.looked += len(some)
			}

			return s, nil
		})
		if err != nil {
			return err
		}

		p.count(done.jobs)
		due = due[done.looked:]
	}

	return nil
}

// heavyStep is what a step counts for in the database's writer, which lets it take
// turns with everything smaller.
const heavyStep = 500

// removeSome removes those of the jobs whose time has still come.
func (p *pass) removeSome(t *db.Tx, kind retention.Kind, seqs []int64, into parts) error {
	where, _ := ended(kind)
	query := `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1)) AND ` + where + `
		AND ` + notHeld + ` AND ` + notAtSource
	if kind == retention.DeadLetters {
		query += ` AND ` + notNewest
	}

	// The jobs were found by a reader. Since then they may have moved, and an operation may
	// need them.
	found, err := p.policies.Jobs(t, query, db.Numbers(seqs))
	if err != nil {
		return err
	}

	jobs := found[:0]
	for _, j := range found {
		// A returned job counts from when it was to run, if that is later (see ended).
		at := j.ChangedAt
		if j.State == job.Returned && j.RunAt.After(at) {
			at = j.RunAt
		}

		if p.over(kind, j.Queue, j.Type, at) {
			jobs = append(jobs, j)
		}
	}

	removed, err := p.remove(t, kind, jobs)
	for part, n := range removed {
		into[part] += n
	}

	return err
}
