package operations

import (
	"context"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/clause"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// Items returns a page of an operation's items in processing order, from the
// one after the number on, each with its job as it is now.
func (p *Projection) Items(ctx context.Context, id int64, f operation.ItemFilter, after int64, limit int) (operation.ItemList, error) {
	query, args := itemsQuery(id, f, after, limit)
	var list operation.ItemList
	err := p.reader.Consistently(ctx, func(src db.Source) (err error) {
		list.Items, err = db.All(src, query, func(it *operation.Item) []any {
			return []any{
				&it.N, &it.Job.Seq, &it.Run, &it.State, &it.Code, &it.Why, &it.Other, db.Time(&it.At), &it.Outcome, &it.Same, db.Time(&it.EndedAt),
			}
		}, args...)
		if err != nil {
			return err
		}

		if len(list.Items) > limit {
			list.Items = list.Items[:limit]
			list.Next = list.Items[limit-1].N
		}

		return p.withJobs(src, list.Items)
	})

	return list, err
}

// itemsQuery is the query of one page of items, and of one item more.
func itemsQuery(id int64, f operation.ItemFilter, after int64, limit int) (string, []any) {
	const columns = `SELECT i.n, i.job_seq, i.run, i.state, i.code, i.why, i.other, i.at, i.outcome, i.same, i.ended_at
		FROM operation_items AS i`
	var where clause.Where
	where.Add("i.operation_id = %s AND i.n > %s", id, after)

	// Items are worked on in the order of their numbers: the position bounds where those that
	// are done can be, and those that are pending.
	switch {
	case f.State == "":
	case f.State == operation.ItemDone:
		where.Add("i.state = 'done' AND i.n <= (SELECT position FROM operations WHERE id = %s)", id)
	case f.State == operation.ItemPending:
		where.Add("i.state = 'pending' AND i.n > (SELECT position FROM operations WHERE id = %s)", id)
	default:
		where.Add("i.state = %s AND i.state IN ('skipped', 'failed')", string(f.State))
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
	case f.State == operation.ItemSkipped || f.State == operation.ItemFailed:
		return " INDEXED BY operation_items_left"
	case f.Outcome == operation.RunUnsettled:
		return " INDEXED BY operation_items_unsettled"
	case f.Outcome != "":
		return " INDEXED BY operation_items_outcome"
	}

	return ""
}

// withJobs gives items their jobs.
func (p *Projection) withJobs(src db.Source, items []operation.Item) error {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`

	bySeq := make(map[int64]*job.Job, len(items))
	wanted := make([]int64, len(items))
	for i := range items {
		wanted[i] = items[i].Job.Seq
	}

	jobs, err := p.policies.Jobs(src, query, db.Numbers(wanted))
	if err != nil {
		return err
	}

	for i := range jobs {
		bySeq[jobs[i].Seq] = &jobs[i]
	}

	// The job of an item may have been removed: the item has only its number then.
	for i, seq := range wanted {
		if j := bySeq[seq]; j != nil {
			items[i].Job = *j
		}
	}

	return nil
}

// pruneQuery finds the items by their operations, which are few. Left to itself
// SQLite would rather read all items.
const pruneQuery = `DELETE FROM operation_items WHERE (operation_id, n) IN (
	SELECT i.operation_id, i.n FROM operations AS o CROSS JOIN operation_items AS i ON i.operation_id = o.id
	WHERE o.state IN ('finished', 'aborted') AND o.finished_at < $1 LIMIT $2 + 0)`

// PruneItems removes items of operations that ended before a time, at most so
// many. How far an operation came and what its scope was made of is not read
// from its items, and stays.
func (p *Projection) PruneItems(t *db.Tx, before time.Time, most int64) (int, error) {
	n, err := t.Exec(pruneQuery, db.Micros(before), most)
	return int(n), db.Wrap(err, "remove the items of old operations")
}

// Breakdown tells what an operation's scope is made of.
func (p *Projection) Breakdown(ctx context.Context, id int64) (made operation.Breakdown, err error) {
	// The scope has a row for each queue and type, the largest fifty of which are told. Jobs of
	// sources are also summed up by source, and all others by type.
	const scope = `SELECT queue, type, n FROM operation_scope WHERE operation_id = $1 ORDER BY n DESC, queue, type LIMIT 50`
	const sources = `SELECT source, sum(n) FROM operation_scope
		WHERE operation_id = $1 AND source <> '' GROUP BY 1 ORDER BY 2 DESC, 1`
	const types = `SELECT type, sum(n) FROM operation_scope
		WHERE operation_id = $1 AND source = '' GROUP BY type ORDER BY 2 DESC, 1`
	const skips = `SELECT code, n FROM operation_skips WHERE operation_id = $1 ORDER BY n DESC, code`
	src := p.reader.In(ctx)

	made.Scope, err = db.All(src, scope, func(n *operation.ScopePart) []any { return []any{&n.Queue, &n.Type, &n.Count} }, id)
	if err != nil {
		return made, err
	}

	made.Causes, err = causesOf(src, id)
	if err != nil {
		return made, err
	}

	made.Sources, err = db.All(src, sources, func(n *operation.SourcePart) []any { return []any{&n.Name, &n.Count} }, id)
	if err != nil {
		return made, err
	}

	made.Types, err = db.All(src, types, func(n *operation.TypePart) []any { return []any{&n.Type, &n.Count} }, id)
	if err != nil {
		return made, err
	}

	made.Skips, err = db.All(src, skips, func(c *operation.SkipCount) []any { return []any{&c.Code, &c.Count} }, id)
	if err != nil {
		return made, err
	}

	first, err := p.Items(ctx, id, operation.ItemFilter{State: operation.ItemSkipped}, 0, previewedSkips)
	made.Skipped = first.Items

	return made, err
}

// previewedSkips is how many of the jobs that are skipped a preview names.
const previewedSkips = 25
