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
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// collectChunk is how many jobs one transaction makes items of.
const collectChunk = 1000

// Collect adds the next chunk of jobs that an operation selects to its items. more is false once
// all are added: the operation is then a preview, or runs if its request says so. more is also
// false for an operation that is not collecting.
func (p *Projection) Collect(ctx context.Context, now time.Time, id int64) (more bool, err error) {
	o, cursor, err := withCursor(p.reader.In(ctx), id)
	if err != nil || o.State != operation.Collecting {
		return false, err
	}

	// Search outside of the transaction, so that a long search does not block the writer.
	found, next, err := p.candidates(ctx, o, cursor)
	if err != nil {
		return false, fmt.Errorf("collect the scope of operation %d: %w", id, err)
	}

	return db.Write(ctx, p.writer, len(found)+1, func(t *db.Tx) (bool, error) {
		// Meanwhile a person may have aborted the operation, or another call may have added this
		// chunk.
		o, at, err := withCursor(t, id)
		if err != nil || o.State != operation.Collecting || at != cursor {
			return err == nil && o.State == operation.Collecting, err
		}

		// Add the chunk, and remember where the next one begins.
		o, err = p.addItems(t, o, found, now)
		if err != nil {
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

// candidates reads the next chunk of jobs that an operation selects, after a cursor, and returns
// the cursor of its end.
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
	// One row is selected more than the limit says; here each of them is used.
	list := rows.List{Filter: f, After: after, Limit: collectChunk - 1, Columns: columns}
	all = make([]workItem, 0, collectChunk)
	jobs := make([]job.Job, collectChunk)
	var last filter.Cursor
	err = list.Read(ctx, p.reader, p.index, func(rows *sql.Rows) error {
		j := &jobs[len(all)]
		err := rows.Scan(&j.Seq, &j.Queue, &j.Source, &j.Type, (*string)(&j.State), (*string)(&j.DeadLetter), &j.Held, &j.Run,
			&j.Group, db.Time(&last.At))
		all = append(all, workItem{seq: j.Seq, run: j.Run, job: j})
		last.Seq = j.Seq

		return err
	})

	return all, last.String(), err
}

// scope returns the filter of an operation, limited to jobs that last changed before the
// operation was made, the oldest change first. So a job that fails while the scope is collected
// is not in it, and one that is replayed meanwhile leaves it.
func scope(o operation.Operation) (filter.Filter, error) {
	f, err := filter.Parse(o.Filter, o.Until)
	if err != nil {
		return f, fmt.Errorf("read the filter of operation %d: %w", o.ID, err)
	}

	f.Sort = filter.Oldest
	if f.To.IsZero() || f.To.After(o.Until) {
		f.To = o.Until.Add(time.Microsecond)
	}

	return f, nil
}

// relapses is candidates for an operation on the relapses of another one: on the runs that the
// other operation started and that failed permanently again.
func (p *Projection) relapses(ctx context.Context, o operation.Operation, after filter.Cursor) (all []workItem, next string, err error) {
	// An item has the run that was replayed. The run after it is the one that failed again.
	const query = `SELECT job_seq, run + 1, n FROM operation_items
		WHERE operation_id = $1 AND outcome = 'relapsed' AND outcome <> '' AND n > $2 AND ended_at <= $3 ORDER BY n LIMIT $4 + 0`

	all, err = db.All(p.reader.In(ctx), query, func(it *workItem) []any { return []any{&it.seq, &it.run, &it.n} },
		o.Source, after.Seq, db.Micros(o.Until), collectChunk)
	if len(all) > 0 {
		// This cursor has the number of the last item in place of the number of a job.
		next = filter.Cursor{At: o.Until, Seq: all[len(all)-1].n}.String()
	}

	return all, next, err
}

// collectNamed makes items of the jobs that the request names, one for each job, and ends the
// collection. It returns the operation as it is then.
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

	// A job that is named more than once has the run that is named first. A job that does not
	// exist has the number 0, and judge will say that it is gone.
	var all []workItem
	seen := map[string]bool{}
	for _, n := range named {
		if !seen[n.ID] {
			seen[n.ID] = true
			all = append(all, workItem{seq: known[n.ID], run: n.Run, id: n.ID})
		}
	}

	o, err = p.addItems(t, o, all, now)
	if err != nil {
		return o, err
	}

	if err := p.collected(t, o, now); err != nil {
		return o, err
	}

	return byID(t, o.ID)
}

// addItems appends items to an operation, and counts them. Items whose jobs do not fit are stored
// as skipped. It returns the operation with its new counts, which the caller saves.
func (p *Projection) addItems(t *db.Tx, o operation.Operation, items []workItem, now time.Time) (operation.Operation, error) {
	if err := p.judge(t, o, items); err != nil {
		return o, err
	}

	rows := db.NewBatch(10, `INSERT INTO operation_items (operation_id, n, job_seq, run, state, code, why, other, at, cause) VALUES `, "")
	scope, causes, skips := map[part]int64{}, causes{}, map[operation.Skip]int64{}
	for _, it := range items {
		// A skipped job belongs to no part of the scope and to no cause.
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

// countScope adds to the stored counts of jobs by queue and type, and of skipped items by reason.
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

// part is a part of a scope: the jobs of one queue and one type. The source follows from the queue.
type part struct{ queue, source, typ string }

// collected ends the collection of an operation. It becomes a preview, or runs at once if its
// request says so.
func (p *Projection) collected(t *db.Tx, o operation.Operation, now time.Time) error {
	const count = `UPDATE operations SET causes = (SELECT count(*) FROM operation_causes WHERE operation_id = $1) WHERE id = $1
		RETURNING causes`
	var err error

	o.Causes, err = db.Value[int64](t, count, o.ID)
	if err != nil {
		return fmt.Errorf("count the causes of operation %d: %w", o.ID, err)
	}

	// The audit log has the preview even if the operation starts at once.
	o.State = operation.Preview
	by := audit.Actor{Name: o.CreatedBy}
	if err := p.record(t, operation.Collecting, o, entry(o, "operation.preview", now, by)); err != nil || !o.Start {
		return err
	}

	return p.start(t, o, o.Pace, now, by)
}
