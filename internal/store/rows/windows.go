package rows

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/store/clause"
	"redrive/internal/store/db"
)

// windows reads the list window by window.
func (s *listing) windows(ctx context.Context) (reached filter.Cursor, err error) {
	within, cancel := db.Finishing(ctx)
	defer cancel()

	// Most lists are full soon, so the first windows are small.
	size := max(1, db.Window/16)
	for at := s.After; ; size = min(2*size, db.Window) {
		next, more, err := s.window(within, at, size)
		if err != nil {
			return s.endAt(at), err
		}

		if !more || s.found > s.Limit {
			return filter.Cursor{}, nil
		}

		at = next

		err = ctx.Err()
		if err != nil {
			return s.endAt(at), err
		}
	}
}

// window reads the next window behind a place, and returns its end. more is false where the list has no
// others, or where no more are wanted.
func (s *listing) window(ctx context.Context, after filter.Cursor, size int) (end filter.Cursor, more bool, err error) {
	err = s.reader.Consistently(ctx, func(src db.Source) error {
		var window Part

		window, more, err = nextWindow(src, s.search, s.indexed, after, size)
		if err != nil {
			return err
		}

		query, args := Select(s.search, s.Columns, s.Join, s.Filter, window, s.Limit-s.found)
		n, enough, err := s.look(src, query, args)
		s.found += n
		end, more = window.Until, more && !enough

		return err
	})

	return end, more, err
}

// endAt is where a search goes on that ended at a place: behind the last job that it found, if there is one.
func (s *listing) endAt(at filter.Cursor) filter.Cursor {
	if s.found > 0 {
		return filter.Cursor{}
	}

	return at
}

// indexedPart is the filter without the conditions that the index of its list does not have. Some
// lists are left as they are: those that an index of texts, ids, items or groups finds, and those
// that are in order for each queue only.
func indexedPart(f filter.Filter) filter.Filter {
	index := indexFor(f)

	switch {
	case f.Searches() || f.Order() == filter.Next || narrow(f) && index != " INDEXED BY jobs_group":
		return f
	case f.Status == job.Status(job.Available):
		return filter.Filter{Status: f.Status, Sort: f.Sort}
	case f.ByEnqueueing():
		return filter.Filter{Sort: f.Sort}
	case f.Status == "":
		return filter.Filter{Source: f.Foreign(), Sort: f.Sort}
	}

	indexed := filter.Filter{Status: f.Status, From: f.From, To: f.To, Sort: f.Sort}
	switch index {
	case " INDEXED BY jobs_group":
		indexed.Group = f.Group
	case " INDEXED BY jobs_failed_type":
		indexed.Type = f.Type
	case " INDEXED BY jobs_letter_queue", " INDEXED BY jobs_failed_queue":
		indexed.Queue = f.Queue
	case " INDEXED BY jobs_letter_source":
		indexed.Source = f.Source
	case " INDEXED BY jobs_letter_reason":
		indexed.Reason = f.Reason
	}

	return indexed
}

// narrow reports whether an index finds the few jobs that a filter can select.
func narrow(f filter.Filter) bool { return f.ID != "" || f.Operation != 0 || f.Group != "" }

// nextWindow is the next part of a list, behind a place: so many jobs of those that its index has. more
// is false where the list has no others.
func nextWindow(src db.Source, search db.Finder, indexed filter.Filter, after filter.Cursor, size int) (
	window Part, more bool, err error,
) {
	if indexed == (filter.Filter{Sort: indexed.Sort}) {
		return nextNumbers(src, indexed.Sort == filter.Oldest, after, size)
	}

	window = Part{After: after, Size: size, Among: indexed}
	order, to := orderOf(indexed), []any{db.Time(&window.Until.At), &window.Until.Seq}
	if len(order) == 1 { // the number
		to = to[1:]
	}

	query, args := Select(search, strings.Join(order, ", "), "", indexed, Part{After: after}, 0)
	more, err = db.Row(src, query+fmt.Sprintf(" OFFSET %d", size-1), to, args...)

	return window, more, err
}

// nextNumbers is nextWindow of all jobs, which are in the order of their numbers: so many numbers,
// of which some can be those of jobs that were removed. It has both ends, so that PostgreSQL knows how
// little it is.
func nextNumbers(src db.Source, ascending bool, after filter.Cursor, size int) (window Part, more bool, err error) {
	var where clause.Where

	query, beyond := `SELECT max(j.seq) FROM jobs AS j`, "j.seq < %s"
	if ascending {
		query, beyond = `SELECT min(j.seq) FROM jobs AS j`, "j.seq > %s"
	}

	if after != (filter.Cursor{}) {
		where.Add(beyond, after.Seq)
	}

	var first sql.NullInt64

	_, err = db.Row(src, query+where.String(), []any{&first}, where.Args...)

	switch n, size := first.Int64, int64(size); {
	case !first.Valid:
		return Part{After: after, Until: after}, false, err
	case ascending:
		before := filter.Cursor{At: time.Unix(0, 0), Seq: n - 1} // not zero, also before the first number
		return Part{After: before, Until: filter.Cursor{Seq: n + size - 1}}, true, err
	default:
		last := max(1, n-size+1)
		return Part{After: filter.Cursor{Seq: n + 1}, Until: filter.Cursor{Seq: last}}, last > 1, err
	}
}
