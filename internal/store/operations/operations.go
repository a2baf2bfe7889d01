// Package operations is the projection of operations: acts on many jobs.
//
// The jobs of an operation are chosen before it runs. Collect stores them as items, a chunk in
// each transaction, together with the position up to which it has searched, so that it goes on
// there after a restart. Work then processes the items in the order of their numbers. It checks
// each job once more: if the job is no longer in the run that was collected, or no longer fits,
// the item is skipped with a reason. No job is touched before its turn, so a pause or an abort
// takes effect at once.
//
// Each chunk is one transaction, with its items, their jobs, the counts and the audit log. So
// however the process ends, an item was done once or not at all.
//
// The projection is also told how replayed runs end, and counts that for the operations that
// started them.
package operations

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/clause"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
	"redrive/internal/store/rows"
)

// Acts carries out an operation on jobs. The jobs were read in the same transaction, and fit.
type Acts interface {
	ReplayAll(t *db.Tx, jobs []job.Job, now time.Time, by audit.Actor, operation int64) error
	DiscardAll(t *db.Tx, jobs []job.Job, now time.Time, by audit.Actor, operation int64) error
	RestoreAll(t *db.Tx, jobs []job.Job) error
	// CheckAct returns why the source of the job does not allow an act of a kind, or "".
	CheckAct(j job.Job, kind operation.Kind) string
}

// Index is the search index, which finds jobs by their texts.
type Index interface {
	db.Finder

	// Complete returns an error if the index does not yet have all jobs that a filter selects.
	Complete(f filter.Filter) error
}

// Projection keeps the operations.
type Projection struct {
	writer   *db.Writer
	reader   *db.Reader
	policies *rows.Policies
	log      projection.Log
	acts     Acts
	index    Index

	underWay int64 // operations that collect, run or are paused, as of the last commit
	changes  *db.Slot[changes]
}

// changes is what a transaction changes for the operations as a whole.
type changes struct {
	underWay int64 // how many more operations are under way than before; can be negative
	ended    bool  // an operation that was running or paused has ended
}

// New returns a projection. Load has to be called before it is used.
func New(writer *db.Writer, reader *db.Reader, policies *rows.Policies, log projection.Log, acts Acts, index Index) *Projection {
	return &Projection{
		writer: writer, reader: reader, policies: policies, log: log, acts: acts, index: index,
		changes: db.NewSlot(func() *changes { return new(changes) }),
	}
}

// Load counts the operations that are under way. It is called once, at the start.
func (p *Projection) Load(src db.Source) (err error) {
	const query = `SELECT count(*) FROM operations
		WHERE state IN ('collecting', 'preview', 'running', 'paused') AND state <> 'preview'`
	p.underWay, err = db.Value[int64](src, query)
	return db.Wrap(err, "count the operations")
}

// UnderWay returns how many operations are collecting, running or paused, as of the last commit.
// Only code that the writer runs may call it, because it does not lock.
func (p *Projection) UnderWay() int64 { return p.underWay }

// Ended reports whether an operation that was running or paused has ended in this transaction.
func (p *Projection) Ended(t *db.Tx) bool { return p.changes.In(t).ended }

// Flush writes nothing: operations are written at once.
func (p *Projection) Flush(*db.Tx) error { return nil }

// Committed updates the number of operations that are under way.
func (p *Projection) Committed(t *db.Tx) { p.underWay += p.changes.In(t).underWay }

// columns are the columns of an operation. fields returns the fields into which they are scanned.
const columns = `id, kind, state, why, filter, source, until, start, rate, spread, canary, canary_at, guard,
	created_at, created_by, started_at, started_by, resumed_at, finished_at,
	position, total, pending, done, skipped, failed, succeeded, relapsed, dropped, unknown, key, causes, guarded, sift`

func fields(o *operation.Operation) []any {
	return []any{
		&o.ID, &o.Kind, &o.State, &o.Why, &o.Filter, &o.Source, db.Time(&o.Until), &o.Start, &o.Pace.Rate, db.Duration(&o.Pace.Spread),
		&o.Pace.Canary, db.Time(&o.CanaryAt), &o.Pace.Guard, db.Time(&o.CreatedAt), &o.CreatedBy, db.Time(&o.StartedAt), &o.StartedBy,
		db.Time(&o.ResumedAt), db.Time(&o.FinishedAt),
		&o.Position, &o.Total, &o.Pending, &o.Done, &o.Skipped, &o.Failed, &o.Succeeded, &o.Relapsed, &o.Dropped, &o.Unknown, &o.Key,
		&o.Causes, &o.Guarded, &o.Sift,
	}
}

func selectOperations(src db.Source, query string, args ...any) ([]operation.Operation, error) {
	return db.All(src, query, fields, args...)
}

func byID(src db.Source, id int64) (operation.Operation, error) {
	o, _, err := withCursor(src, id)
	return o, err
}

// withCursor returns an operation, and the cursor up to which its jobs have been collected. If
// there is no such operation, the error is job.ErrNotFound.
func withCursor(src db.Source, id int64) (o operation.Operation, cursor string, err error) {
	const query = `SELECT ` + columns + `, cursor FROM operations WHERE id = $1`

	found, err := db.Row(src, query, append(fields(&o), &cursor), id)
	if err == nil && !found {
		err = fmt.Errorf("operation %d: %w", id, job.ErrNotFound)
	}

	return o, cursor, err
}

// Get returns an operation, or job.ErrNotFound.
func (p *Projection) Get(ctx context.Context, id int64) (operation.Operation, error) {
	return byID(p.reader.In(ctx), id)
}

// List returns at most limit operations, the newest first: those whose numbers are lower than
// before, or the newest of all if before is 0.
func (p *Projection) List(ctx context.Context, before int64, limit int) (operation.List, error) {
	const query = `SELECT ` + columns + ` FROM operations WHERE CAST($1 AS BIGINT) = 0 OR id < $1 ORDER BY id DESC LIMIT $2 + 0`

	all, err := selectOperations(p.reader.In(ctx), query, before, limit+1)
	list := operation.List{Operations: all}
	if err == nil && len(all) > limit {
		list.Operations = all[:limit]
		list.Next = all[limit-1].ID
	}

	return list, err
}

// Unfinished returns the operations that have not ended, the oldest first.
func (p *Projection) Unfinished(ctx context.Context) ([]operation.Operation, error) {
	const query = `SELECT ` + columns + ` FROM operations
		WHERE state IN ('collecting', 'preview', 'running', 'paused') ORDER BY id`
	return selectOperations(p.reader.In(ctx), query)
}

// groupOperations is how many operations OfGroup returns at most.
const groupOperations = 10

// OfGroup returns the newest operations whose filter names the error group.
func (p *Projection) OfGroup(ctx context.Context, fingerprint string) ([]operation.Operation, error) {
	const query = `SELECT ` + columns + ` FROM operations WHERE (' ' || replace(filter, ',', ' group:') || ' ') LIKE $1 ESCAPE '\'
		ORDER BY id DESC LIMIT $2 + 0`
	return selectOperations(p.reader.In(ctx), query, "% group:"+clause.Like(fingerprint)+" %", groupOperations)
}

// maxActs is how many acts ActsOn returns at most.
const maxActs = 200

// ActsOn returns what operations did to the job with the number seq, the newest first.
func ActsOn(src db.Source, seq int64) ([]operation.Act, error) {
	const query = `SELECT i.operation_id, o.kind, i.run, i.at, o.started_by
		FROM operation_items AS i JOIN operations AS o ON o.id = i.operation_id
		WHERE i.job_seq = $1 AND i.state = 'done' ORDER BY i.operation_id DESC LIMIT $2 + 0`

	return db.All(src, query, func(a *operation.Act) []any {
		return []any{&a.Operation, &a.Kind, &a.Run, db.Time(&a.At), &a.By}
	}, seq, maxActs)
}

// Log returns the newest 50 entries of the audit log about an operation, the newest first.
func (p *Projection) Log(ctx context.Context, id int64) ([]audit.Entry, error) {
	const query = `SELECT seq, at, actor, address, action, subject, filter, count, before, after FROM audit
		WHERE subject = $1 ORDER BY seq DESC LIMIT 50`

	return db.All(p.reader.In(ctx), query, func(e *audit.Entry) []any {
		return []any{
			&e.Seq, db.Time(&e.At), &e.Actor.Name, &e.Actor.Address, &e.Action, &e.Subject, &e.Filter, &e.Count, &e.Before, &e.After,
		}
	}, operation.Subject(id))
}

// Invariants returns the queries that find rows which break a rule of this projection. After
// every commit, each of them finds none.
func (*Projection) Invariants() []db.Invariant {
	return []db.Invariant{
		{What: "the totals of every operation add up", Query: `SELECT id FROM operations WHERE total <> pending + done + skipped + failed`},
		{What: "the counts of every operation match its jobs", Query: miscounted},
		{What: "no operation has passed over a job", Query: `SELECT id FROM operations AS o WHERE EXISTS (
			SELECT 1 FROM operation_items AS i WHERE i.operation_id = o.id AND (i.n <= o.position) = (i.state = 'pending')
				AND i.state IN ('pending', 'done'))`},
		{What: "the rates of every operation add up to its progress", Query: `SELECT id FROM operations
			WHERE done <> (SELECT coalesce(sum(n), 0) FROM operation_pace WHERE operation_id = operations.id)`},
	}
}

// miscounted finds operations whose counts differ from their items. It ignores operations that
// have ended and have lost items, because retention removes these in time.
const miscounted = `SELECT id FROM operations AS o LEFT JOIN (
		SELECT operation_id, count(*) AS n,
			count(*) FILTER (WHERE state = 'pending') AS pending, count(*) FILTER (WHERE state = 'done') AS done,
			count(*) FILTER (WHERE state = 'skipped') AS skipped, count(*) FILTER (WHERE state = 'failed') AS failed,
			count(*) FILTER (WHERE outcome = 'succeeded') AS succeeded, count(*) FILTER (WHERE outcome = 'relapsed') AS relapsed,
			count(*) FILTER (WHERE outcome = 'dropped') AS dropped, count(*) FILTER (WHERE outcome = 'unknown') AS unknown
		FROM operation_items GROUP BY operation_id) AS i ON i.operation_id = o.id
	WHERE (coalesce(i.n, 0) = o.total OR o.state NOT IN ('finished', 'aborted')) AND o.total + coalesce(i.n, 0) > 0
		AND (i.n IS NULL OR (i.n, i.pending, i.done, i.skipped, i.failed, i.succeeded, i.relapsed, i.dropped, i.unknown) <>
			(o.total, o.pending, o.done, o.skipped, o.failed, o.succeeded, o.relapsed, o.dropped, o.unknown))`
