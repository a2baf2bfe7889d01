package operations

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// collectChunk is how many jobs one transaction makes items of.
const collectChunk = 1000

// Collect writes the next chunk of an operation's scope down. more is false
// once it is complete: the operation is then a preview, or runs when that was
// asked for. Jobs are read beside the writer, however long a search takes, and
// written down by one transaction that knows where the last one ended.
func (p *Projection) Collect(ctx context.Context, now time.Time, id int64) (more bool, err error) {
	o, cursor, err := withCursor(p.reader.In(ctx), id)
	if err != nil || o.State != operation.Collecting {
		return false, err
	}

	found, next, err := p.candidates(ctx, o, cursor)
	if err != nil {
		return false, fmt.Errorf("collect the scope of operation %d: %w", id, err)
	}

	return db.Write(ctx, p.writer, len(found)+1, func(t *db.Tx) (bool, error) {
		o, at, err := withCursor(t, id)
		if err != nil || o.State != operation.Collecting || at != cursor { // a person aborted it, or another caller was faster
			return err == nil && o.State == operation.Collecting, err
		}

		if o, err = p.addItems(t, o, found, now); err != nil {
			return false, err
		}

		const update = `UPDATE operations SET cursor = $2 WHERE id = $1`
		if err := t.Run(update, id, next); err != nil {
			return false, err
		}

		if len(found) == collectChunk {
			return true, p.save(t, operation.Collecting, o)
		}

		return false, p.collected(t, o, now)
	})
}

// candidates reads the next chunk of a scope, and where it ends.
func (p *Projection) candidates(ctx context.Context, o operation.Operation, cursor string) (all []workItem, next string, err error) {
	after, err := filter.ParseCursor(cursor)
	if err != nil {
		return nil, "", err
	}

	if o.Source != 0 {
		return p.relapses(ctx, o, after)
	}

	f, err := scope(o)
	if err == nil {
		err = p.index.Complete(f)
	}

	if err != nil {
		return nil, "", err
	}

	const columns = `seq, queue, source, type, state, letter, held, run, group_id, changed_at`
	query, args := rows.Select(p.index, columns, "", f, after, collectChunk-1)
	all = make([]workItem, 0, collectChunk)
	jobs := make([]job.Job, collectChunk)
	var last filter.Cursor
	err = p.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		j := &jobs[len(all)]
		err := rows.Scan(&j.Seq, &j.Queue, &j.Source, &j.Type, (*string)(&j.State), (*string)(&j.DeadLetter), &j.Held, &j.Run,
			&j.Group, db.Time(&last.At))
		all = append(all, workItem{seq: j.Seq, run: j.Run, job: j})
		last.Seq = j.Seq

		return err
	}, args...)

	return all, last.String(), err
}

// scope is the filter of an operation as it is collected: the jobs that changed
// before it was made, the longest unchanged first. What fails meanwhile changes
// later than that, and what is replayed meanwhile leaves the scope.
func scope(o operation.Operation) (filter.Filter, error) {
	f, err := filter.Parse(o.Filter, o.Until)
	if err != nil {
		return f, fmt.Errorf("read the filter of operation %d: %w", o.ID, err)
	}

	if f.Sort = filter.Oldest; f.To.IsZero() || f.To.After(o.Until) {
		f.To = o.Until.Add(time.Microsecond)
	}

	return f, nil
}

// relapses reads the next runs that another operation replayed and that failed
// permanently again.
func (p *Projection) relapses(ctx context.Context, o operation.Operation, after filter.Cursor) (all []workItem, next string, err error) {
	const query = `SELECT job_seq, run + 1, n FROM operation_items
		WHERE operation_id = $1 AND outcome = 'relapsed' AND outcome <> '' AND n > $2 AND ended_at <= $3 ORDER BY n LIMIT $4 + 0`

	all, err = db.All(p.reader.In(ctx), query, func(it *workItem) []any { return []any{&it.seq, &it.run, &it.n} },
		o.Source, after.Seq, db.Micros(o.Until), collectChunk)
	if len(all) > 0 {
		next = filter.Cursor{At: o.Until, Seq: all[len(all)-1].n}.String()
	}

	return all, next, err
}

// collectNamed makes items of the jobs that the request named, each once.
func (p *Projection) collectNamed(t *db.Tx, o operation.Operation, named []operation.Named, now time.Time) (operation.Operation, error) {
	const query = `SELECT id, seq FROM jobs WHERE id IN (SELECT value FROM json_each($1))`

	ids := make([]string, len(named))
	for i, n := range named {
		ids[i] = n.ID
	}

	known, err := db.Map[string, int64](t, query, db.Texts(ids))
	if err != nil {
		return o, err
	}

	var all []workItem
	seen := map[string]bool{}
	for _, n := range named {
		if !seen[n.ID] {
			seen[n.ID] = true
			all = append(all, workItem{seq: known[n.ID], run: n.Run, id: n.ID})
		}
	}

	if o, err = p.addItems(t, o, all, now); err != nil {
		return o, err
	}

	if err := p.collected(t, o, now); err != nil {
		return o, err
	}

	return byID(t, o.ID)
}

// addItems appends items, and counts them. Those that do not fit are skipped
// from the beginning.
func (p *Projection) addItems(t *db.Tx, o operation.Operation, items []workItem, now time.Time) (operation.Operation, error) {
	if err := p.judge(t, o, items); err != nil {
		return o, err
	}

	rows := db.NewBatch(10, `INSERT INTO operation_items (operation_id, n, job_seq, run, state, code, why, other, at, cause) VALUES `, "")
	scope, causes, skips := map[part]int64{}, causes{}, map[operation.Skip]int64{}
	for _, it := range items {
		state, at, group := operation.ItemPending, int64(0), int64(0)
		o.Total++
		if it.code != "" {
			state, at = operation.ItemSkipped, db.Micros(now)
			skips[it.code]++
			o.Skipped++
		} else {
			scope[part{it.job.Queue, it.job.Source, it.job.Type}]++
			causes.add(it.job, o.Total)
			group = it.job.Group
			o.Pending++
		}

		err := rows.Add(t, o.ID, o.Total, it.seq, it.run, string(state), string(it.code), it.why, it.other, at, group)
		if err != nil {
			return o, fmt.Errorf("write the items of operation %d: %w", o.ID, err)
		}
	}

	if err := rows.Flush(t); err != nil {
		return o, fmt.Errorf("write the items of operation %d: %w", o.ID, err)
	}

	return o, db.Steps(t,
		func(t *db.Tx) error { return causes.write(t, o.ID) },
		func(t *db.Tx) error { return p.countScope(t, o.ID, scope, skips) })
}

// countScope moves the rollups of a scope.
func (p *Projection) countScope(t *db.Tx, id int64, scope map[part]int64, skips map[operation.Skip]int64) error {
	parts := db.NewBatch(5, `INSERT INTO operation_scope (operation_id, queue, source, type, n) VALUES `,
		` ON CONFLICT (operation_id, queue, type) DO UPDATE SET n = operation_scope.n + excluded.n`)
	codes := db.NewBatch(3, `INSERT INTO operation_skips (operation_id, code, n) VALUES `,
		` ON CONFLICT (operation_id, code) DO UPDATE SET n = operation_skips.n + excluded.n`)

	if err := db.AddSums(t, parts, scope, func(k part, n int64) []any { return []any{id, k.queue, k.source, k.typ, n} }); err != nil {
		return err
	}

	return db.AddSums(t, codes, skips, func(code operation.Skip, n int64) []any { return []any{id, string(code), n} })
}

// part is the jobs of one queue and type in a scope. All jobs of a queue have one source.
type part struct{ queue, source, typ string }

// collected ends the collection: a person looks at the preview now, or has said
// that this is not needed.
func (p *Projection) collected(t *db.Tx, o operation.Operation, now time.Time) error {
	const count = `UPDATE operations SET causes = (SELECT count(*) FROM operation_causes WHERE operation_id = $1) WHERE id = $1
		RETURNING causes`
	var err error

	o.Causes, err = db.Value[int64](t, count, o.ID)
	if err != nil {
		return fmt.Errorf("count the causes of operation %d: %w", o.ID, err)
	}

	o.State = operation.Preview
	by := audit.Actor{Name: o.CreatedBy}
	if err := p.record(t, operation.Collecting, o, entry(o, "operation.preview", now, by)); err != nil || !o.Start {
		return err
	}

	return p.start(t, o, o.Pace, now, by)
}

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
	var where db.Where
	where.Add("i.operation_id = %s AND i.n > %s", id, after)

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

	for i, seq := range wanted {
		if j := bySeq[seq]; j != nil {
			items[i].Job = *j
		}
	}

	return nil
}

// Progress tells how an operation went so far, as far as its items say.
func (p *Projection) Progress(ctx context.Context, now time.Time, o operation.Operation) (progress operation.Progress, err error) {
	const paced = `SELECT second, n FROM operation_pace WHERE operation_id = $1`
	src := p.reader.In(ctx)
	if progress.Rate = o.Pacing(now); len(progress.Rate.Done) > 0 {
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

	if o.Total > 0 && !o.Open() {
		if progress.Pruned, err = itemless(src, o.ID); err != nil {
			return progress, err
		}
	}

	if err := cheap(src, now, o, &progress); err != nil {
		return progress, err
	}

	if progress.Canary.Causes, err = p.CanaryCauses(ctx, o); err != nil {
		return progress, err
	}

	progress.SourceRuns, err = handedOf(src, now, o, unsettledItems)

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
		p.Canary.SourceRuns, err = handedOf(src, now, o, unsettledCanary)
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

// handedOf counts which of an operation's items sources have. Operations on jobs of Redrive's
// own are spared that: of a million jobs, as many may wait for a worker.
func handedOf(src db.Source, now time.Time, o operation.Operation, items string) (h operation.SourceRuns, err error) {
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
			WHERE j.state = 'returned' AND j.unbegun = 0) AS handed`
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
	return handedOf(p.reader.In(ctx), now, o, unsettledItems)
}

// CheapProgress is Progress without what takes longer the more items there are.
func (p *Projection) CheapProgress(ctx context.Context, now time.Time, o operation.Operation) (progress operation.Progress, err error) {
	return progress, cheap(p.reader.In(ctx), now, o, &progress)
}

// itemless reports whether all items of an operation are gone.
func itemless(src db.Source, id int64) (bool, error) {
	return db.Value[bool](src, `SELECT NOT EXISTS (SELECT 1 FROM operation_items WHERE operation_id = $1)`, id)
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
