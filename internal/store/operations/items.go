package operations

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/clause"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// Items returns at most limit items of an operation that a filter selects, in the order of their
// numbers, beginning after a number. Each has its job as it is now; of a job that was removed,
// only the number is set.
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

// itemsQuery returns the query for one page of items, and for one item more.
func itemsQuery(id int64, f operation.ItemFilter, after int64, limit int) (string, []any) {
	const columns = `SELECT i.n, i.job_seq, i.run, i.state, i.code, i.why, i.other, i.at, i.outcome, i.same, i.ended_at
		FROM operation_items AS i`
	var where clause.Where
	where.Add("i.operation_id = %s AND i.n > %s", id, after)

	// Items are processed in the order of their numbers, so those up to the position of the
	// operation are not pending any more, and those after it are not done.
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

// itemsIndex returns the clause that makes SQLite use the right index for a filter. On its own it
// would read all items of the operation by their primary key.
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

// withJobs reads the jobs of items, and sets them.
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

	// An item whose job was removed keeps only the number of the job.
	for i, seq := range wanted {
		if j := bySeq[seq]; j != nil {
			items[i].Job = *j
		}
	}

	return nil
}

// endedQuery finds the first operation after another one that ended before a time and still has items.
const endedQuery = `SELECT o.id FROM operations AS o WHERE o.state IN ('finished', 'aborted') AND o.finished_at < $1 AND o.id > $2
	AND EXISTS (SELECT 1 FROM operation_items AS i WHERE i.operation_id = o.id) ORDER BY o.id LIMIT 1`

// pruneQuery deletes the first items of an operation.
const pruneQuery = `DELETE FROM operation_items WHERE operation_id = $1 AND n IN (
	SELECT n FROM operation_items WHERE operation_id = $1 ORDER BY n LIMIT $2 + 0)`

// PruneItems removes at most limit items of operations that ended before a time, and returns how
// many it removed. The counts of an operation and of its scope are stored apart, and stay.
func (p *Projection) PruneItems(t *db.Tx, before time.Time, limit int64) (int, error) {
	removed, id := int64(0), int64(0)
	for removed < limit {
		var err error

		id, err = db.Value[int64](t, endedQuery, db.Micros(before), id)
		if err != nil || id == 0 {
			return int(removed), db.Wrap(err, "find the items of old operations")
		}

		n, err := t.Exec(pruneQuery, id, limit-removed)
		if err != nil {
			return int(removed), fmt.Errorf("remove the items of operation %d: %w", id, err)
		}

		removed += n
	}

	return int(removed), nil
}

// Breakdown returns what the scope of an operation consists of: its largest parts, its causes,
// its sources and types, and the items that were skipped, with the first of them.
func (p *Projection) Breakdown(ctx context.Context, id int64) (made operation.Breakdown, err error) {
	// The scope has a row for each queue and type, of which the fifty largest are returned. All
	// jobs of sources are also summed up by source, and all others by type.
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

// previewedSkips is how many skipped items a Breakdown lists.
const previewedSkips = 25
