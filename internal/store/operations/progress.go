package operations

import (
	"context"
	"time"

	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/internal/store/db"
)

// Progress tells how an operation went so far, as far as its items say.
func (p *Projection) Progress(ctx context.Context, now time.Time, o operation.Operation) (progress operation.Progress, err error) {
	const paced = `SELECT second, n FROM operation_pace WHERE operation_id = $1`

	src := p.reader.In(ctx)
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

	// Items of an operation that ended are removed after a time. Then nothing is known of them.
	if o.Total > 0 && !o.Open() {
		progress.Pruned, err = itemless(src, o.ID)
		if err != nil {
			return progress, err
		}
	}

	if err := cheap(src, now, o, &progress); err != nil {
		return progress, err
	}

	progress.Canary.Causes, err = p.CanaryCauses(ctx, o)
	if err != nil {
		return progress, err
	}

	progress.SourceRuns, err = sourceRunsOf(src, now, o, unsettledItems)

	return progress, err
}

// cheap reads what is cheap to know of an operation's progress: its canary, and what its
// guard sees.
func cheap(src db.Source, now time.Time, o operation.Operation, p *operation.Progress) (err error) {
	const canary = `SELECT count(*), count(*) FILTER (WHERE outcome = 'succeeded'), count(*) FILTER (WHERE outcome = 'relapsed'),
			count(*) FILTER (WHERE outcome = 'dropped'), count(*) FILTER (WHERE outcome = 'unknown'), coalesce(max(ended_at), 0)
		FROM (SELECT outcome, ended_at FROM operation_items WHERE operation_id = $1 AND state = 'done' ORDER BY n LIMIT $2 + 0) AS canary`

	if o.Kind != operation.Replay {
		return nil
	}

	// The canary is over when the last of its runs has ended, and not before.
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

// The items of an operation whose replayed runs have not ended: all of them, and those of
// its canary.
const (
	unsettledItems = `SELECT job_seq, run FROM operation_items INDEXED BY operation_items_unsettled
		WHERE operation_id = $1 AND state = 'done' AND outcome = '' AND $3 IS NOT NULL`
	unsettledCanary = `SELECT job_seq, run FROM (SELECT job_seq, run, outcome FROM operation_items
		WHERE operation_id = $1 AND state = 'done' ORDER BY n LIMIT $3 + 0) AS canary WHERE outcome = ''`
)

// sourceRunsOf counts which of an operation's items sources have. Operations on jobs of Redrive's
// own are spared that: of a million jobs, as many may wait for a worker.
func sourceRunsOf(src db.Source, now time.Time, o operation.Operation, items string) (h operation.SourceRuns, err error) {
	const atSources = `SELECT EXISTS (SELECT 1 FROM operation_scope WHERE operation_id = $1 AND source <> '')`

	if o.Unsettled() == 0 {
		return h, nil
	}

	some, err := db.Value[bool](src, atSources, o.ID)
	if err != nil || !some {
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

	if h.Source != last { // several sources have them
		h.Source = ""
	}

	if !newest.IsZero() {
		h.Until = newest.Add(source.ReturnedAfter)
	}

	return h, err
}

// SourceRuns counts the replayed runs of an operation that sources have.
func (p *Projection) SourceRuns(ctx context.Context, now time.Time, o operation.Operation) (operation.SourceRuns, error) {
	if o.Kind != operation.Replay {
		return operation.SourceRuns{}, nil
	}
	return sourceRunsOf(p.reader.In(ctx), now, o, unsettledItems)
}

// CheapProgress is Progress without what takes longer the more items there are.
func (p *Projection) CheapProgress(ctx context.Context, now time.Time, o operation.Operation) (progress operation.Progress, err error) {
	return progress, cheap(p.reader.In(ctx), now, o, &progress)
}

// itemless reports whether all items of an operation are gone.
func itemless(src db.Source, id int64) (bool, error) {
	return db.Value[bool](src, `SELECT NOT EXISTS (SELECT 1 FROM operation_items WHERE operation_id = $1)`, id)
}
