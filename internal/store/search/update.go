package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/store/db"
)

// The bounds of one transaction of Step.
const (
	stepRows  = 1024
	stepBytes = 1 << 20
)

// doneRows is how many rows the removal of a step's rows from the backlog counts for
// in the database's writer: they are stored side by side and quickly removed.
const doneRows = 32

// maxSegments is how many parts the index may have before each step also joins
// some. A search spends 40 µs on each.
const maxSegments = 256

// unsearched is a failure that waits to become searchable.
type unsearched struct {
	seq, execution int64
	before         db.Document // as the index knows it
	document       db.Document
	fault          error // why there is no document
}

// Update makes every failure searchable that is not yet, and returns how many it
// did. Then it joins the segments of the index.
func (p *Projection) Update(ctx context.Context) (total int, err error) {
	for {
		n, err := p.Sweep(ctx)
		total += n
		if err != nil {
			return total, err
		}

		if n == 0 {
			return total, p.merge(ctx, func(time.Duration) {})
		}
	}
}

// Sweep makes failures searchable, those of the oldest jobs first, up to the newest
// job that waits at its beginning, and returns how many. What fails meanwhile may have
// to wait for the next sweep, so no failure waits for more than two. Other writers
// come in between.
func (p *Projection) Sweep(ctx context.Context) (total int, err error) {
	more := true
	for more {
		var n int

		n, more, err = p.Step(ctx)
		if err != nil {
			return total, fmt.Errorf("update the search index: %w", err)
		}

		total += n
	}

	return total, nil
}

// Step makes the next failures of a sweep searchable, at most one transaction's
// worth, and returns how many; more is false once the sweep has ended.
func (p *Projection) Step(ctx context.Context) (n int, more bool, err error) {
	if p.stale.Load() {
		return 0, true, p.empty(ctx)
	}

	waiting, err := p.unsearched(ctx)
	if err != nil {
		return 0, false, err
	}

	// The end of a sweep. A rebuild has more to give to the next one.
	if len(waiting) == 0 {
		p.swept, p.until = 0, 0
		more, err = p.reindex(ctx)
		return 0, more, err
	}

	if err := p.add(ctx, waiting); err != nil {
		return 0, false, err
	}

	p.swept = waiting[len(waiting)-1].seq

	return len(waiting), true, p.bound(ctx)
}

// bound joins segments of the index while failures pour in: the more there are, the
// more. Counting 128 of them takes 2 ms, so that is done when they may be many.
func (p *Projection) bound(ctx context.Context) error {
	p.room--
	if p.room > 0 {
		return nil
	}

	n, err := p.Segments(p.reader.In(ctx))
	p.room = maxSegments - n
	for more := true; n >= maxSegments && more && err == nil; n -= maxSegments {
		more, err = p.Tidy(ctx)
	}

	return db.Wrap(err, "join segments of the search index")
}

// Merge joins the segments of the index, which makes searches quicker, a little in
// each transaction, until there is nothing to do or the next failure waits. It takes
// a fifth of the writer's time: no caller waits for its end.
func (p *Projection) Merge(ctx context.Context) error {
	return p.merge(ctx, func(took time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(4 * took):
		}
	})
}

// merge is Merge with what to do after each transaction that took so long.
func (p *Projection) merge(ctx context.Context, then func(took time.Duration)) error {
	for {
		if lag, err := p.Lag(ctx); lag > 0 || err != nil {
			return err
		}

		begin := time.Now()

		more, err := p.Tidy(ctx)
		if err != nil || !more {
			return db.Wrap(err, "join the segments of the search index")
		}

		then(time.Since(begin))
	}
}

// add makes failures searchable. One that the index refuses for its own fault is
// left out, so that it keeps no others from being found.
func (p *Projection) add(ctx context.Context, all []unsearched) error {
	err := p.index(ctx, all)
	if err == nil || ctx.Err() != nil || db.Common(err) || errors.Is(err, fault.ErrStorageFull) {
		return err
	}

	// One of them is at fault. Halves find it, and the others get in.
	if half := len(all) / 2; half > 0 {
		if err := p.add(ctx, all[:half]); err != nil {
			return err
		}
		return p.add(ctx, all[half:])
	}

	p.log.Error("A failure cannot be made searchable. No search finds it until it fails again.", "job", all[0].document.ID, "error", err)

	return p.done(ctx, all, p.state)
}

// index brings failures into the index, and notes in the database that they are there.
func (p *Projection) index(ctx context.Context, all []unsearched) error {
	entries := make([]db.Entry, 0, len(all))
	var gone []int64
	for _, u := range all {
		switch {
		case u.fault != nil:
			return u.fault
		case u.execution == removed:
			gone = append(gone, u.seq)
		default:
			entries = append(entries, db.Entry{Seq: u.seq, Before: u.before, Document: u.document})
		}
	}

	// The index goes first: after a crash in between, it is one step ahead, which its state tells.
	next := p.state.Next(p.read)
	if err := p.Put(ctx, next, entries, gone); err != nil {
		return fmt.Errorf("make failures searchable: %w", err)
	}

	return p.done(ctx, all, next)
}

// done takes failures out of those that wait, unless their jobs failed again or were
// removed meanwhile, and notes the state of the index.
func (p *Projection) done(ctx context.Context, all []unsearched, now db.IndexState) error {
	const remove = `DELETE FROM search_backlog WHERE job_seq IN (SELECT value FROM json_each($1)) AND execution = $2`
	const note = `UPDATE redaction SET index_mark = $1`

	byExecution := map[int64][]int64{} // a few numbers, each of many jobs
	for _, u := range all {
		byExecution[u.execution] = append(byExecution[u.execution], u.seq)
	}

	err := p.writer.Do(ctx, doneRows, func(t *db.Tx) error {
		for execution, seqs := range byExecution {
			if err := t.Run(remove, db.Numbers(seqs), execution); err != nil {
				return err
			}
		}

		t.Wrote()

		return t.ExecExactly(1, note, now.Version)
	})
	if err == nil {
		p.state = now
	}

	return err
}

func numbers(all []unsearched) []int64 {
	seqs := make([]int64, len(all))
	for i, u := range all {
		seqs[i] = u.seq
	}

	return seqs
}

// unsearched reads the next failures of the sweep, in rising order of their numbers
// (see db.Index): as few as the bounds say, and one at least. What the index knows
// of them does not change until the sweep puts them into it: nothing else does that,
// and a job that is removed meanwhile waits no longer.
func (p *Projection) unsearched(ctx context.Context) (all []unsearched, err error) {
	const query = `SELECT w.job_seq, w.execution, coalesce(j.id, ''), coalesce(j.type, ''),
			coalesce(a.error_type, l.exception, ''), coalesce(a.error_message, l.error, ''), b.payload, b.meta
		FROM search_backlog AS w LEFT JOIN jobs AS j ON j.seq = w.job_seq LEFT JOIN bodies AS b ON b.job_seq = w.job_seq
		LEFT JOIN attempts AS a ON a.job_seq = w.job_seq AND a.execution = w.execution
		LEFT JOIN dead_letters AS l ON l.job_seq = w.job_seq AND l.run = 1 AND w.execution = 0
		WHERE w.job_seq > $1 AND w.job_seq <= $2 ORDER BY w.job_seq LIMIT $3 + 0`

	const newest = `SELECT coalesce(max(job_seq), 0) FROM search_backlog`
	// A sweep begins: it ends with the newest job that waits now.
	if p.until == 0 {
		p.until, err = db.Value[int64](p.reader.In(ctx), newest)
		if err != nil {
			return nil, err
		}
	}

	size := 0

	err = p.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		var u unsearched
		var j job.Job

		err := rows.Scan(&u.seq, &u.execution, &j.ID, &j.Type, &j.Error.Type, &j.Error.Message, &j.Payload, (*[]byte)(&j.Meta))
		if err != nil {
			return err
		}

		u.document, u.fault = p.redact.document(j)
		all = append(all, u)

		size += len(j.Payload) + len(j.Meta) + len(j.Error.Message)
		if size >= stepBytes {
			return db.ErrEnough
		}

		return nil
	}, p.swept, p.until, stepRows)
	if err != nil || len(all) == 0 {
		return nil, err
	}

	// What was read is of this revision or of an earlier one: a database that is older does not
	// belong to an index with these failures.
	p.read, err = db.Value[int64](p.reader.In(ctx), `SELECT n FROM revision`)
	if err != nil {
		return nil, err
	}

	known, err := p.Known(p.reader.In(ctx), numbers(all))
	for i := range all {
		all[i].before = known[all[i].seq]
	}

	return all, err
}
