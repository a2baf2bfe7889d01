package search

import (
	"context"
	"fmt"

	"redrive/internal/filter"
	"redrive/internal/store/db"
)

// When the configuration hides something else than before, the texts in the
// index are no longer what they should be. Nothing of them is found any more (see
// Current), Update empties the index, and every failure is made searchable anew:
// the database keeps how far that came. Until then lists are incomplete, and what
// needs every job waits (see Complete).

// reindexStep is how many jobs one transaction looks through for failures.
const reindexStep = 5000

// Load notes whether the index was made by another redaction.
func (b *Book) Load(src db.Source) error {
	const query = `SELECT fingerprint <> $1, again <> 0 FROM redaction`
	var stale, reindexing bool
	_, err := db.Row(src, query, []any{&stale, &reindexing}, b.redact.Fingerprint)
	b.stale.Store(stale)
	b.reindexing.Store(stale || reindexing)
	return db.Wrap(err, "read the redaction of the search index")
}

// Reindexing reports whether the index is made anew, because something else is
// hidden than before.
func (b *Book) Reindexing() bool { return b.reindexing.Load() }

// Complete returns context.DeadlineExceeded for a search that does not find every
// job that it should, because the index is made anew.
func (b *Book) Complete(f filter.Filter) error {
	if f.Searches() && b.Reindexing() {
		return fmt.Errorf("search an index that is made anew: %w", context.DeadlineExceeded)
	}
	return nil
}

// Current returns context.DeadlineExceeded for a search that cannot be answered
// because the index has to be emptied first, which is about to happen.
func (b *Book) Current(f filter.Filter) error {
	if f.Searches() && b.stale.Load() {
		return fmt.Errorf("search an index that is to be emptied: %w", context.DeadlineExceeded)
	}
	return nil
}

// empty empties an index that another redaction made.
func (b *Book) empty(ctx context.Context) error {
	const begin = `UPDATE redaction SET fingerprint = $1, again = (SELECT coalesce(max(seq), 0) + 1 FROM jobs)`
	err := b.writer.Do(ctx, 1, func(t *db.Tx) error {
		if err := b.Clear(t); err != nil {
			return err
		}
		t.Wrote()
		return t.ExecExactly(1, begin, b.redact.Fingerprint)
	})
	if err == nil {
		b.stale.Store(false)
	}
	return err
}

// reindex notes the next failures that have to be made searchable anew, those of
// the newest jobs first, and reports whether there may be more. It is asked when
// those of before can be found.
func (b *Book) reindex(ctx context.Context) (more bool, err error) {
	const query = `SELECT again FROM redaction`
	const note = `INSERT INTO search_backlog (job_seq, execution)
		SELECT job_seq, max(execution) FROM (
			SELECT job_seq, execution FROM attempts WHERE job_seq >= $1 AND job_seq < $2 AND number > 0
			UNION ALL SELECT job_seq, 0 FROM dead_letters WHERE job_seq >= $1 AND job_seq < $2
		) AS failed WHERE true GROUP BY job_seq ON CONFLICT (job_seq) DO NOTHING`
	const move = `UPDATE redaction SET again = $1`
	before, err := db.Value[int64](b.reader.In(ctx), query)
	if err != nil || before == 0 {
		return false, err
	}
	first := max(1, before-reindexStep)
	if before == 1 {
		first = 0
	}
	err = b.writer.Do(ctx, reindexStep, func(t *db.Tx) error {
		if err := t.Run(note, first, before); err != nil {
			return err
		}
		t.Wrote()
		return t.ExecExactly(1, move, first)
	})
	if err == nil && first == 0 {
		b.reindexing.Store(false)
	}
	return true, err
}
