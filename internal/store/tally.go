package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// atLeast is how far jobs are counted in the time that is left when they are too many.
const atLeast = 1000

// Tally counts the jobs that the filter selects, and what kind they are, by looking at
// up to limit jobs: for texts and all else that is not counted in advance (see
// [counters.Projection.Known] for what is). It looks at what the filter would select without
// its status, queue, type and reason, which is all that states and facets need. When that
// is too much, it counts facets among the jobs of that status only, and states among those
// of that queue, type and reason, and at last only what the filter selects. Each takes half
// of the time that ctx has left.
func (s *Store) Tally(ctx context.Context, f filter.Filter, limit int) (filter.Tally, error) {
	if err := cmp.Or(f.Check(), s.Search.Complete(f)); err != nil {
		return filter.Tally{}, err
	}

	// all selects most: it has neither the status nor the queue, type and reason of f. inStatus
	// keeps the status, and everyStatus all but the status.
	f.Sort = filter.Newest
	inStatus := f
	inStatus.Queue, inStatus.Type, inStatus.Reason = "", "", ""
	everyStatus := f
	everyStatus.Status = ""
	all := inStatus
	all.Status = ""

	t, counted, err := s.tally(ctx, f, all, limit)
	if counted || err != nil {
		return t, err
	}

	// That was too much, so t is incomplete. Without a status in f, inStatus is all, which was
	// tried already; likewise everyStatus without a queue, type and reason.
	t = filter.Tally{}
	if inStatus != all {
		among, ok, err := s.tally(ctx, f, inStatus, limit)
		if err != nil {
			return filter.Tally{}, err
		}

		if ok {
			t.Total, t.Facets = among.Total, among.Facets
			t.Whole, counted = true, true
		}
	}

	if everyStatus != all {
		among, ok, err := s.tally(ctx, f, everyStatus, limit)
		if err != nil {
			return filter.Tally{}, err
		}

		if ok {
			t.Total, t.States, counted = among.Total, among.States, true
		}
	}

	if counted {
		return t, nil
	}

	// Both are too many as well: only what f selects is counted, and not far.
	n, more, err := s.count(ctx, f, filter.Cursor{}, min(limit, atLeast))

	return filter.Tally{Total: int64(n), More: more}, err
}

// tally counts among the jobs that another filter selects. ok is false when these are
// more than the limit, or take longer than half of the time.
func (s *Store) tally(ctx context.Context, f, among filter.Filter, limit int) (t filter.Tally, ok bool, err error) {
	within, cancel := halfOf(ctx)
	defer cancel()
	const columns = "j.queue, j.type, j.state, j.letter, j.held, j.reason"
	list := rows.List{Filter: among, Limit: limit, Columns: columns}
	tallier, n := filter.NewTallier(f), 0
	var j job.Job
	var state, deadLetter, reason string
	fields := []any{&j.Queue, &j.Type, &state, &deadLetter, &j.Held, &reason}

	err = list.Read(within, s.reader, s.Search, func(row *sql.Rows) error {
		// The query selects one job more than the limit, which shows that there are too many.
		if n++; n > limit {
			return db.ErrEnough
		}

		err := row.Scan(fields...)
		j.State, j.DeadLetter, j.Reason = job.State(state), job.DeadLetterState(deadLetter), retry.Reason(reason)
		tallier.Add(j)

		return err
	})
	err = db.TimedOut(within, err)

	// Only the half is over. The caller can try a narrower selection in the time that is left.
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return t, false, nil
	}

	return tallier.Tally(), err == nil && n <= limit, err
}

// halfOf ends when half of the time has passed that ctx has left.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(end)/2)
	}
	return context.WithCancel(ctx)
}
