package operations

import (
	"context"
	"time"

	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/internal/store/db"
)

// Progress returns how an operation has gone so far: its rate over time, its canary, what its
// guard sees, and the replayed runs that are at sources.
func (p *Projection) Progress(ctx context.Context, now time.Time, o operation.Operation) (progress operation.Progress, err error) {
	const paced = `SELECT second, n FROM operation_pace WHERE operation_id = $1`

	src := p.reader.In(ctx)

	// The rate: add up the items that were done in the seconds of each step.
	progress.Rate = o.Pacing(now)
	if len(progress.Rate.Done) > 0 {
		done, err := db.Map[int64, int64](src, paced, o.ID)
		if err != nil {
			return progress, err
		}

		for second, n := range done {
			if step := second / int64(progress.Rate.Step/time.Second); step < int64(len(progress.Rate.Done)) {
				progress.Rate.Done[step] += n
			}
		}
	}

	// Retention removes the items of an operation some time after its end.
	if o.Total > 0 && !o.Open() {
		progress.Pruned, err = hasNoItems(src, o.ID)
		if err != nil {
			return progress, err
		}
	}

	// What became of the replayed runs.
	if err := cheapProgress(src, now, o, &progress); err != nil {
		return progress, err
	}

	progress.Canary.Causes, err = p.CanaryCauses(ctx, o)
	if err != nil {
		return progress, err
	}

	progress.SourceRuns, err = sourceRunsOf(src, now, o, unsettledItems)

	return progress, err
}

// cheapProgress sets in p what does not take longer for an operation with more items: the counts of
// the canary, and what the guard sees.
func cheapProgress(src db.Source, now time.Time, o operation.Operation, p *operation.Progress) (err error) {
	const canary = `SELECT count(*), count(*) FILTER (WHERE outcome = 'succeeded'), count(*) FILTER (WHERE outcome = 'relapsed'),
			count(*) FILTER (WHERE outcome = 'dropped'), count(*) FILTER (WHERE outcome = 'unknown'), coalesce(max(ended_at), 0)
		FROM (SELECT outcome, ended_at FROM operation_items WHERE operation_id = $1 AND state = 'done' ORDER BY n LIMIT $2 + 0) AS canary`

	if o.Kind != operation.Replay {
		return nil
	}

	// The canary has ended when the last of its runs has.
	c := &p.Canary
	if !o.CanaryAt.IsZero() {
		_, err = db.Row(src, canary, []any{&c.Done, &c.Succeeded, &c.Relapsed, &c.Dropped, &c.Unknown, db.Time(&c.EndedAt)}, o.ID, o.Pace.Canary)
		if c.Unsettled() > 0 {
			c.EndedAt = time.Time{}
		}
	}

	if err == nil && o.Pace.Guard {
		err = guardSees(src, o, p)
	}

	if err == nil && p.Canary.Unsettled() > 0 {
		p.Canary.SourceRuns, err = sourceRunsOf(src, now, o, unsettledCanary)
	}

	return err
}

// These queries return the items of the operation $1 whose replayed runs have not ended: all such
// items, and those among the first $3, the canary.
const (
	unsettledItems = `SELECT job_seq, run FROM operation_items INDEXED BY operation_items_unsettled
		WHERE operation_id = $1 AND state = 'done' AND outcome = '' AND $3 IS NOT NULL`
	unsettledCanary = `SELECT job_seq, run FROM (SELECT job_seq, run, outcome FROM operation_items
		WHERE operation_id = $1 AND state = 'done' ORDER BY n LIMIT $3 + 0) AS canary WHERE outcome = ''`
)

// sourceRunsOf counts the replayed runs of an operation that are at sources, among the items that a
// query returns. It does not count for an operation that has only jobs of our own, because that
// could have to read a million jobs that wait for a worker.
func sourceRunsOf(src db.Source, now time.Time, o operation.Operation, items string) (h operation.SourceRuns, err error) {
	const atSources = `SELECT EXISTS (SELECT 1 FROM operation_scope WHERE operation_id = $1 AND source <> '')`

	if o.Unsettled() == 0 {
		return h, nil
	}

	hasSources, err := db.Value[bool](src, atSources, o.ID)
	if err != nil || !hasSources {
		return h, err
	}

	query := `SELECT count(*), count(*) FILTER (WHERE since <= $2), coalesce(min(source), ''), coalesce(max(source), ''),
			coalesce(max(since) FILTER (WHERE since > $2), 0)
		FROM (SELECT max(j.changed_at, j.run_at) AS since, j.source
			FROM (` + items + `) AS i JOIN jobs AS j ON j.seq = i.job_seq AND j.run = i.run + 1
			WHERE j.state = 'returned' AND j.unbegun = 0) AS returned`
	var last string
	var newest time.Time
	_, err = db.Row(src, query, []any{&h.AtSource, &h.Returned, &h.Source, &last, db.Time(&newest)},
		o.ID, db.Micros(now.Add(-source.ReturnedAfter)), o.Pace.Canary)

	if h.Source != last { // the runs are at more than one source
		h.Source = ""
	}

	if !newest.IsZero() {
		h.Until = newest.Add(source.ReturnedAfter)
	}

	return h, err
}

// SourceRuns counts the replayed runs of an operation that are at sources.
func (p *Projection) SourceRuns(ctx context.Context, now time.Time, o operation.Operation) (operation.SourceRuns, error) {
	if o.Kind != operation.Replay {
		return operation.SourceRuns{}, nil
	}
	return sourceRunsOf(p.reader.In(ctx), now, o, unsettledItems)
}

// CheapProgress returns the part of Progress that does not take longer for an operation with more
// items: the counts of its canary, and what its guard sees.
func (p *Projection) CheapProgress(ctx context.Context, now time.Time, o operation.Operation) (progress operation.Progress, err error) {
	return progress, cheapProgress(p.reader.In(ctx), now, o, &progress)
}

// hasNoItems reports whether an operation has no items, for example because retention has removed
// them.
func hasNoItems(src db.Source, id int64) (bool, error) {
	return db.Value[bool](src, `SELECT NOT EXISTS (SELECT 1 FROM operation_items WHERE operation_id = $1)`, id)
}
