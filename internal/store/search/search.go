// Package search is the projection that makes failures searchable.
//
// Feeding the index of texts costs as much as recording the failure itself, so
// it is fed apart: the transaction that records a failure leaves a row in
// search_backlog, [Projection.Sweep] turns those rows into documents in transactions of the
// index, which has a writer of its own, and removes the rows afterwards. A job that
// failed again by then is made searchable once. The texts of a job that is removed
// leave the index the same way.
//
// What a crash leaves half done is done again: a document that is put twice is the
// same. An index that does not belong to the database, because one of them was
// restored or lost, is noticed by its state (db.IndexState) and rebuilt.
//
// The index holds texts from which secrets were taken out, as the configuration
// said when they came (see reindexStep for when that changes).
package search

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"redrive/internal/fault"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// Redaction takes out of texts what no user may find. Data takes it out of the
// payload or meta of a type of job, Text out of an error. Fingerprint changes
// with what they take out; everything is then made searchable again. The zero
// value takes nothing out.
type Redaction struct {
	Data        func(typ string, data []byte) []byte
	Text        func(string) string
	Fingerprint string
}

// Complete fills in what is not set.
func (r Redaction) Complete() Redaction {
	if r.Data == nil {
		r.Data = func(_ string, data []byte) []byte { return data }
	}

	if r.Text == nil {
		r.Text = func(text string) string { return text }
	}

	return r
}

// document is what a search finds of a failure. A failure that stops the
// redaction with a panic is left out of the index; nothing else ends for it.
func (r Redaction) document(j job.Job) (d db.Document, fault error) {
	defer func() {
		if why := recover(); why != nil {
			d, fault = db.Document{ID: j.ID}, fmt.Errorf("hide the secrets of job %s: panic: %v", j.ID, why)
		}
	}()

	j.Payload, j.Meta = r.Data(j.Type, j.Payload), r.Data(j.Type, j.Meta)
	j.Error = job.ErrorInfo{Type: r.Text(j.Error.Type), Message: r.Text(j.Error.Message)}

	return db.DocumentOf(j), nil
}

// Projection feeds the index.
type Projection struct {
	db.Search
	writer     *db.Writer
	reader     *db.Reader
	log        *slog.Logger
	redact     Redaction
	stale      atomic.Bool // the index was made by another redaction, or for another database
	reindexing atomic.Bool // the index is being rebuilt and does not hold every failure yet

	state  db.IndexState // of the index, as the database says
	read   int64         // the revision of the database after the newest failures were read
	swept  int64         // how far the sweep has come: the number of a job
	until  int64         // where it ends; 0: none is under way
	room   int           // for so many more segments in the index, at least
	failed *db.Slot[failures]
}

// failures are the newest failed executions of a transaction, by their jobs.
type failures map[int64]int64

// New returns a projection; Load reads whether the index has to be rebuilt.
func New(writer *db.Writer, reader *db.Reader, index db.Search, redact Redaction, log *slog.Logger) *Projection {
	return &Projection{
		Search: index, writer: writer, reader: reader, log: log, redact: redact,
		failed: db.NewSlot(func() *failures { return &failures{} }),
	}
}

// Failed notes that a job failed again.
func (p *Projection) Failed(t *db.Tx, f projection.Failure) error {
	failed := *p.failed.In(t)
	failed[f.Job.Seq] = max(failed[f.Job.Seq], int64(f.Execution))

	return nil
}

// Flush writes down which failures cannot be searched yet, each job once: the
// newest failure of a job is the one that is searched.
func (p *Projection) Flush(t *db.Tx) error {
	rows := db.NewBatch(2, `INSERT INTO search_backlog (job_seq, execution) VALUES `,
		` ON CONFLICT (job_seq) DO UPDATE SET execution = excluded.execution`)
	return db.AddSums(t, rows, *p.failed.In(t), func(seq, execution int64) []any { return []any{seq, execution} })
}

// Committed has nothing to make known.
func (p *Projection) Committed(*db.Tx) {}

// removed is the execution in search_backlog of a job that is gone.
const removed = -1

// Removed writes down that the texts of jobs have to leave the index. A job that
// succeeded at once never had any.
func (p *Projection) Removed(t *db.Tx, jobs []job.Job) error {
	const forget = `INSERT INTO search_backlog (job_seq, execution) SELECT value, $2 FROM json_each($1) WHERE true
		ON CONFLICT (job_seq) DO UPDATE SET execution = excluded.execution`

	seqs := make([]int64, 0, len(jobs))
	for i := range jobs {
		if j := &jobs[i]; j.State != job.Completed || j.Run > 1 || j.Attempts > 1 {
			seqs = append(seqs, j.Seq)
		}
	}

	if len(seqs) == 0 {
		return nil
	}

	return t.Run(forget, db.Numbers(seqs), removed)
}

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
		if n, more, err = p.Step(ctx); err != nil {
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
	if p.room--; p.room > 0 {
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
// (see db.Search): as few as the bounds say, and one at least. What the index knows
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
	if p.until == 0 {
		if p.until, err = db.Value[int64](p.reader.In(ctx), newest); err != nil {
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

		if size += len(j.Payload) + len(j.Meta) + len(j.Error.Message); size >= stepBytes {
			return db.ErrEnough
		}

		return nil
	}, p.swept, p.until, stepRows)
	if err != nil || len(all) == 0 {
		return nil, err
	}

	if p.read, err = db.Value[int64](p.reader.In(ctx), `SELECT n FROM revision`); err != nil {
		return nil, err
	}

	known, err := p.Known(p.reader.In(ctx), numbers(all))
	for i := range all {
		all[i].before = known[all[i].seq]
	}

	return all, err
}

// maxLag is how far Lag counts.
const maxLag = 100_000

// Lag is how many failures cannot be searched yet, up to a hundred thousand, and one
// more while the index is being rebuilt.
func (p *Projection) Lag(ctx context.Context) (int, error) {
	const query = `SELECT count(*) + (SELECT CASE WHEN again > 0 OR fingerprint <> $2 THEN 1 ELSE 0 END FROM redaction)
		FROM (SELECT 1 FROM search_backlog WHERE execution >= 0 LIMIT $1 + 0) AS waiting`
	return db.Value[int](p.reader.In(ctx), query, maxLag, p.redact.Fingerprint)
}

// When the configuration hides something else than before, the texts in the
// index are no longer what they should be. Nothing of them is found any more (see
// Current), Update empties the index, and every failure is made searchable again:
// the database keeps how far that came. Until then lists are incomplete, and what
// needs every job waits (see Complete).

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
