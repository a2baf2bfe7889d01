package rows

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"redrive/internal/filter"
	"redrive/internal/store/db"
)

// List is a list of jobs, which is read from a place on: at most Limit jobs, and one more.
//
// No index has all conditions of every list. Where some are left, one query could look at all jobs to find
// none. An engine on which that does harm ([db.Dialect]) reads such a list window by window:
// each query looks at a bounded number of jobs, by an index that has the other conditions.
type List struct {
	Filter filter.Filter
	After  filter.Cursor
	Limit  int

	Columns string // of jobs AS j
	Join    string // adds tables to these
}

// Read gives each row to a function, which can end the list with [db.ErrEnough].
func (l List) Read(ctx context.Context, reader *db.Reader, search db.Finder, each func(*sql.Rows) error) error {
	return l.listing(reader, search, rowByRow(each)).all(ctx)
}

// ReadOn is Read of a list that people leaf through. When the time of ctx is over before anything was
// found, reached is how far the search has come, from where the next page goes on. It always comes on.
func (l List) ReadOn(ctx context.Context, reader *db.Reader, search db.Finder, each func(*sql.Rows) error) (
	reached filter.Cursor, err error,
) {
	return l.listing(reader, search, rowByRow(each)).page(ctx)
}

// Count counts the jobs of a list.
func (l List) Count(ctx context.Context, reader *db.Reader, search db.Finder) (n int, err error) {
	l.Columns = "1"
	s := l.listing(reader, search, func(src db.Source, query string, args []any) (int, bool, error) {
		found, err := db.Value[int](src, "SELECT count(*) FROM ("+query+") AS found", args...)
		return found, false, err
	})
	err = s.all(ctx)

	return s.found, err
}

// look reads one query of a list, and returns how many jobs it found and whether the reader wants no more.
type look func(src db.Source, query string, args []any) (n int, enough bool, err error)

// rowByRow gives each row to a function.
func rowByRow(each func(*sql.Rows) error) look {
	return func(src db.Source, query string, args []any) (n int, enough bool, err error) {
		err = src.Query(query, func(row *sql.Rows) error {
			n++

			err := each(row)
			enough = errors.Is(err, db.ErrEnough)

			return err
		}, args...)

		return n, enough, err
	}
}

// listing is how one list is read.
type listing struct {
	List
	indexed filter.Filter // the conditions that an index has

	reader *db.Reader
	search db.Finder
	look   look
	found  int
}

func (l List) listing(reader *db.Reader, search db.Finder, look look) *listing {
	return &listing{List: l, indexed: indexedPart(l.Filter), reader: reader, search: search, look: look}
}

// all reads the list as the engine does it best.
func (s *listing) all(ctx context.Context) error {
	windows, err := s.inWindows(ctx)
	if err != nil {
		return err
	}

	if !windows {
		return s.whole(ctx)
	}

	_, err = s.windows(ctx)

	return err
}

// page is all, and says how far the search has come if it has found nothing.
func (s *listing) page(ctx context.Context) (reached filter.Cursor, err error) {
	windows, err := s.inWindows(ctx)
	switch {
	case err != nil:
		return reached, err
	case windows:
		return s.windows(ctx)
	case s.indexed == s.Filter: // no job is looked at in vain
		return reached, s.whole(ctx)
	}

	// One query is the fastest way, but does not say how far it has come. The rest of the time is enough for
	// some windows.
	most, cancel := mostOf(ctx)
	defer cancel()

	err = db.TimedOut(most, s.whole(most))
	if errors.Is(err, context.DeadlineExceeded) && s.found == 0 {
		return s.windows(ctx)
	}

	return reached, err
}

// inWindows reports whether the list is read window by window from the start.
func (s *listing) inWindows(ctx context.Context) (bool, error) {
	if !s.reader.InWindows() {
		return false, nil
	}

	// Documents are in the order of their jobs. The index finds the few that have a rare text.
	if s.Filter.Searches() && !narrow(s.Filter) {
		many, err := s.search.Many(s.reader.In(ctx), s.Filter)
		if err != nil || !many {
			return false, err
		}

		s.indexed = filter.Filter{Sort: s.Filter.Sort}
	}

	return s.indexed != s.Filter, nil
}

// whole reads the list with one query.
func (s *listing) whole(ctx context.Context) (err error) {
	query, args := Select(s.search, s.Columns, s.Join, s.Filter, Part{After: s.After}, s.Limit)
	s.found, _, err = s.look(s.reader.In(ctx), query, args)

	return err
}

// mostOf ends when three quarters of the time have passed that ctx has left.
func mostOf(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(end)*3/4)
	}

	return context.WithCancel(ctx)
}
