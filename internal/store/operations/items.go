package operations

import (
	"context"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// Items returns a page of an operation's items in the order of work, from the
// one after the number on, each with its job as it is now.
func (b *Book) Items(ctx context.Context, id int64, f operation.ItemFilter, after int64, limit int) (operation.ItemList, error) {
	query, args := itemsQuery(id, f, after, limit)
	var list operation.ItemList
	var err error
	src := b.reader.In(ctx)
	list.Items, err = db.All(src, query, func(it *operation.Item) []any {
		return []any{
			&it.N, &it.Job.Seq, &it.Run, &it.State, &it.Code, &it.Why, &it.Other, db.Time(&it.At), &it.Outcome, &it.Same, db.Time(&it.EndedAt),
		}
	}, args...)
	if err != nil {
		return list, err
	}
	if len(list.Items) > limit {
		list.Items = list.Items[:limit]
		list.Next = list.Items[limit-1].N
	}
	return list, b.withJobs(src, list.Items)
}

func itemsQuery(id int64, f operation.ItemFilter, after int64, limit int) (string, []any) {
	const columns = `SELECT i.n, i.job_seq, i.run, i.state, i.code, i.why, i.other, i.at, i.outcome, i.same, i.ended_at
		FROM operation_items AS i`
	var where db.Where
	where.Add("i.operation_id = %s AND i.n > %s", id, after)
	switch {
	case f.State == "":
	case f.State == operation.ItemDone: // they lie before the first one that waits
		where.Add(`i.state = 'done' AND i.n < coalesce((SELECT n FROM operation_items INDEXED BY operation_items_state
			WHERE operation_id = %s AND state = 'pending' AND state <> 'done' ORDER BY n LIMIT 1), 9223372036854775807)`, id)
	default:
		where.Add("i.state = %s AND i.state <> 'done'", string(f.State))
	}
	switch f.Outcome {
	case "":
	case operation.RunUnsettled:
		where.Add("i.state = 'done' AND i.outcome = ''")
	default:
		where.Add("i.outcome = %s AND i.outcome <> ''", string(f.Outcome))
	}
	last, args := where.Limit(limit + 1)
	return columns + itemsIndex(f) + where.String() + " ORDER BY i.n" + last, args
}

// itemsIndex names the index of a list of items. SQLite would rather follow the
// key, past every item that the filter does not want.
func itemsIndex(f operation.ItemFilter) string {
	switch {
	case f.State != "" && f.State != operation.ItemDone:
		return " INDEXED BY operation_items_state"
	case f.Outcome == operation.RunUnsettled:
		return " INDEXED BY operation_items_unsettled"
	case f.Outcome != "":
		return " INDEXED BY operation_items_outcome"
	}
	return ""
}

// withJobs gives items their jobs.
func (b *Book) withJobs(src db.Source, items []operation.Item) error {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`
	bySeq := make(map[int64]*job.Job, len(items))
	wanted := make([]int64, len(items))
	for i := range items {
		wanted[i] = items[i].Job.Seq
	}
	jobs, err := b.policies.Jobs(src, query, db.Numbers(wanted))
	if err != nil {
		return err
	}
	for i := range jobs {
		bySeq[jobs[i].Seq] = &jobs[i]
	}
	for i, seq := range wanted {
		if j := bySeq[seq]; j != nil {
			items[i].Job = *j
		}
	}
	return nil
}

// Progress tells how an operation went so far, as far as its items say.
func (b *Book) Progress(ctx context.Context, now time.Time, o operation.Operation) (p operation.Progress, err error) {
	const paced = `SELECT second, n FROM operation_pace WHERE operation_id = $1`
	src := b.reader.In(ctx)
	if p.Rate = o.Pacing(now); len(p.Rate.Done) > 0 {
		done, err := db.Map[int64, int64](src, paced, o.ID)
		if err != nil {
			return p, err
		}
		for second, n := range done {
			if step := second / int64(p.Rate.Step/time.Second); step < int64(len(p.Rate.Done)) {
				p.Rate.Done[step] += n
			}
		}
	}
	if o.Total > 0 && !o.Open() {
		if p.Pruned, err = itemless(src, o.ID); err != nil {
			return p, err
		}
	}
	return p, cheap(src, o, &p)
}

// cheap reads what is cheap to know of an operation's progress: its canary, and
// what its guard sees.
func cheap(src db.Source, o operation.Operation, p *operation.Progress) (err error) {
	const canary = `SELECT count(*), count(*) FILTER (WHERE outcome = 'succeeded'), count(*) FILTER (WHERE outcome = 'relapsed'),
			count(*) FILTER (WHERE outcome = 'dropped'), coalesce(max(ended_at), 0)
		FROM (SELECT outcome, ended_at FROM operation_items WHERE operation_id = $1 AND state = 'done' ORDER BY n LIMIT $2 + 0) AS canary`
	if o.Kind != operation.Replay {
		return nil
	}
	if c := &p.Canary; !o.CanaryAt.IsZero() {
		_, err = db.Row(src, canary, []any{&c.Done, &c.Succeeded, &c.Relapsed, &c.Dropped, db.Time(&c.EndedAt)}, o.ID, o.Pace.Canary)
		if c.Unsettled() > 0 {
			c.EndedAt = time.Time{}
		}
	}
	if err == nil && o.Pace.Guard {
		p.Ended, p.Same, err = guardSees(src, o)
	}
	return err
}

// CheapProgress is Progress without what takes longer the more items there are.
func (b *Book) CheapProgress(ctx context.Context, o operation.Operation) (p operation.Progress, err error) {
	return p, cheap(b.reader.In(ctx), o, &p)
}

func itemless(src db.Source, id int64) (bool, error) {
	return db.Value[bool](src, `SELECT NOT EXISTS (SELECT 1 FROM operation_items WHERE operation_id = $1)`, id)
}

// pruneQuery finds the items by their operations, which are few. Left to itself
// SQLite would rather read all items.
const pruneQuery = `DELETE FROM operation_items WHERE (operation_id, n) IN (
	SELECT i.operation_id, i.n FROM operations AS o CROSS JOIN operation_items AS i ON i.operation_id = o.id
	WHERE o.state IN ('finished', 'aborted') AND o.finished_at < $1 LIMIT $2 + 0)`

// PruneItems removes items of operations that ended before a time, at most so
// many. Where an operation stands and what its scope was made of is not read
// from its items, and stays.
func (b *Book) PruneItems(t *db.Tx, before time.Time, most int64) (int, error) {
	n, err := t.Exec(pruneQuery, db.Micros(before), most)
	return int(n), db.Wrap(err, "remove the items of old operations")
}

// Breakdown tells what an operation's scope is made of.
func (b *Book) Breakdown(ctx context.Context, id int64) (made operation.Breakdown, err error) {
	const scope = `SELECT queue, type, n FROM operation_scope WHERE operation_id = $1 ORDER BY n DESC, queue, type LIMIT 50`
	const skips = `SELECT code, n FROM operation_skips WHERE operation_id = $1 ORDER BY n DESC, code`
	src := b.reader.In(ctx)
	made.Scope, err = db.All(src, scope, func(p *operation.ScopePart) []any { return []any{&p.Queue, &p.Type, &p.Count} }, id)
	if err != nil {
		return made, err
	}
	made.Skips, err = db.All(src, skips, func(c *operation.SkipCount) []any { return []any{&c.Code, &c.Count} }, id)
	if err != nil {
		return made, err
	}
	first, err := b.Items(ctx, id, operation.ItemFilter{State: operation.ItemSkipped}, 0, previewedSkips)
	made.Skipped = first.Items
	return made, err
}

// previewedSkips is how many of the jobs that are skipped a preview names.
const previewedSkips = 25
