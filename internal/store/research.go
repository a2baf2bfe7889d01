package store

import (
	"context"
	"database/sql"
	"fmt"

	"redrive/internal/filter"
)

// The index holds texts from which secrets were taken out as the configuration
// said when they came. When that says something else, nothing of them is found
// any more (see current), FillSearch empties the index, and every failure is made
// searchable anew: the database keeps how far it came. Until then lists are
// incomplete, and what needs every job waits (see filled).

// againStep is how many jobs one transaction looks through for failures.
const againStep = 5000

// loadRedaction notes whether the index was made by another redaction.
func (s *Store) loadRedaction(src source) error {
	const query = `SELECT fingerprint <> $1, again <> 0 FROM redaction`
	return src.query(query, func(rows *sql.Rows) error {
		var stale, filling bool
		err := rows.Scan(&stale, &filling)
		s.stale.Store(stale)
		s.filling.Store(stale || filling)
		return err
	}, s.redact.fingerprint)
}

// Filling reports whether the index of texts is filled anew, because something
// else is hidden than before.
func (s *Store) Filling() bool { return s.filling.Load() }

// filled returns context.DeadlineExceeded for a search that does not find every
// job that it should, because the index is filled anew.
func (s *Store) filled(f filter.Filter) error {
	if f.Searches() && s.Filling() {
		return fmt.Errorf("search an index that is filled anew: %w", context.DeadlineExceeded)
	}
	return nil
}

// current returns context.DeadlineExceeded for a search that cannot be answered
// because the index has to be emptied first, which is about to happen.
func (s *Store) current(f filter.Filter) error {
	if f.Searches() && s.stale.Load() {
		return fmt.Errorf("search an index that is made anew: %w", context.DeadlineExceeded)
	}
	return nil
}

// refresh empties an index that another redaction made.
func (s *Store) refresh(ctx context.Context) error {
	const (
		forget = `INSERT INTO search (search) VALUES ('delete-all')`
		begin  = `UPDATE redaction SET fingerprint = $1, again = (SELECT coalesce(max(seq), 0) + 1 FROM jobs)`
	)
	if !s.stale.Load() {
		return nil
	}
	_, err := write(ctx, s.writer, 1, func(t *tx) (struct{}, error) {
		if _, err := t.exec(forget); err != nil {
			return struct{}{}, err
		}
		t.proven = true
		n, err := t.exec(begin, s.redact.fingerprint)
		return struct{}{}, expect(1, n, err)
	})
	if err == nil {
		s.stale.Store(false)
	}
	return err
}

// again notes the next failures that have to be made searchable anew, those of
// the newest jobs first, and reports whether there may be more. It is asked when
// those of before can be found.
func (s *Store) again(ctx context.Context) (more bool, err error) {
	const (
		query = `SELECT again FROM redaction`
		note  = `INSERT INTO search_backlog (job_seq, execution)
			SELECT job_seq, max(execution) FROM (
				SELECT job_seq, execution FROM attempts WHERE job_seq >= $1 AND job_seq < $2 AND number > 0
				UNION ALL SELECT job_seq, 0 FROM dead_letters WHERE job_seq >= $1 AND job_seq < $2
			) WHERE true GROUP BY job_seq ON CONFLICT (job_seq) DO NOTHING`
		move = `UPDATE redaction SET again = $1`
	)
	var before int64
	err = s.reading(ctx).query(query, func(rows *sql.Rows) error { return rows.Scan(&before) })
	if err != nil || before == 0 {
		return false, err
	}
	first := max(1, before-againStep)
	if before == 1 {
		first = 0
	}
	_, err = write(ctx, s.writer, againStep, func(t *tx) (struct{}, error) {
		if _, err := t.exec(note, first, before); err != nil {
			return struct{}{}, err
		}
		t.proven = true
		n, err := t.exec(move, first)
		return struct{}{}, expect(1, n, err)
	})
	if err == nil && first == 0 {
		s.filling.Store(false)
	}
	return true, err
}
