package search

import (
	"context"
	"crypto/rand"
	"fmt"

	"redrive/internal/filter"
	"redrive/internal/store/db"
)

// maxLag is how far Lag counts.
const maxLag = 100_000

// Lag is how many failures cannot be searched yet, up to a hundred thousand, and one
// more while the index is being rebuilt.
func (p *Projection) Lag(ctx context.Context) (int, error) {
	const query = `SELECT count(*) + (SELECT CASE WHEN again > 0 OR fingerprint <> $2 THEN 1 ELSE 0 END FROM redaction)
		FROM (SELECT 1 FROM search_backlog WHERE execution >= 0 LIMIT $1 + 0) AS waiting`
	return db.Value[int](p.reader.In(ctx), query, maxLag, p.redact.Fingerprint)
}

// reindexStep is how many jobs one transaction looks through for failures.
const reindexStep = 5000

// Load notes whether the index was made by another redaction, or for another state of
// the database.
func (p *Projection) Load(src db.Source) error {
	const query = `SELECT fingerprint <> $1, again <> 0, index_mark, n FROM redaction, revision`
	var stale, reindexing bool

	_, err := db.Row(src, query, []any{&stale, &reindexing, &p.state.Version, &p.state.Revision}, p.redact.Fingerprint)
	if err != nil {
		return fmt.Errorf("read the redaction of the search index: %w", err)
	}

	// An index that cannot be read, or whose state is of another database, is emptied and filled again.
	there, err := p.State(src)
	if err != nil {
		p.log.Error("The search index cannot be read. Search results are incomplete.", "error", err)
	}

	stale = stale || err != nil || !there.BelongsTo(p.state)
	p.stale.Store(stale)
	p.reindexing.Store(stale || reindexing)

	return nil
}

// Reindexing reports whether the index is being rebuilt, because something else is
// hidden than before, or because it belonged to another state of the database.
func (p *Projection) Reindexing() bool { return p.reindexing.Load() }

// Complete returns context.DeadlineExceeded for a search that does not find every
// job that it should, because the index is being rebuilt.
func (p *Projection) Complete(f filter.Filter) error {
	if f.Searches() && p.Reindexing() {
		return fmt.Errorf("search an index that is being rebuilt: %w", context.DeadlineExceeded)
	}
	return nil
}

// Current returns context.DeadlineExceeded for a search that cannot be answered
// because the index has to be emptied first, which is about to happen.
func (p *Projection) Current(f filter.Filter) error {
	if f.Searches() && p.stale.Load() {
		return fmt.Errorf("search an index that is to be emptied: %w", context.DeadlineExceeded)
	}
	return nil
}

// empty empties an index that another redaction made, or that belongs to another
// database.
func (p *Projection) empty(ctx context.Context) error {
	const begin = `UPDATE redaction SET fingerprint = $1, index_mark = $2, again = (SELECT coalesce(max(seq), 0) + 1 FROM jobs)`

	fresh := db.IndexState{Version: rand.Text()}
	if err := p.Clear(ctx, fresh); err != nil {
		return fmt.Errorf("empty the search index: %w", err)
	}

	err := p.writer.Do(ctx, 1, func(t *db.Tx) error {
		t.Wrote()
		return t.ExecExactly(1, begin, p.redact.Fingerprint, fresh.Version)
	})
	if err == nil {
		p.state = fresh
		p.stale.Store(false)
	}

	return err
}

// reindex notes the next failures that have to be made searchable again, those of
// the newest jobs first, and reports whether there may be more. It is asked when
// those of before can be found.
func (p *Projection) reindex(ctx context.Context) (more bool, err error) {
	const query = `SELECT again FROM redaction`
	const note = `INSERT INTO search_backlog (job_seq, execution)
		SELECT job_seq, max(execution) FROM (
			SELECT job_seq, execution FROM attempts WHERE job_seq >= $1 AND job_seq < $2 AND number > 0
			UNION ALL SELECT job_seq, 0 FROM dead_letters WHERE job_seq >= $1 AND job_seq < $2
		) AS failed WHERE true GROUP BY job_seq ON CONFLICT (job_seq) DO NOTHING`
	const move = `UPDATE redaction SET again = $1`

	before, err := db.Value[int64](p.reader.In(ctx), query)
	if err != nil || before == 0 {
		return false, err
	}

	// Down to the first job, and once more from zero, which is the end.
	first := max(1, before-reindexStep)
	if before == 1 {
		first = 0
	}

	err = p.writer.Do(ctx, reindexStep, func(t *db.Tx) error {
		if err := t.Run(note, first, before); err != nil {
			return err
		}

		t.Wrote()

		return t.ExecExactly(1, move, first)
	})
	if err == nil && first == 0 {
		p.reindexing.Store(false)
	}

	return true, err
}
