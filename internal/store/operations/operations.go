// Package operations is the projection of acts on many jobs.
//
// An operation is frozen before it runs. Collect writes its scope down as items,
// in chunks, and remembers where it was, so that a restart goes on there. Work
// then takes the items in their order, in chunks, and holds each against its job
// once more: the run that a person saw, or a skip that says why. Nothing is
// touched before its turn, so that a pause and an abort act at once and what is
// not yet done stays as it is.
//
// Every chunk is one transaction with its items, their jobs, the meters and the
// audit log: whatever ends the process, an item was done once or not at all.
//
// The projection is told how replayed runs end, and counts that for the operations that
// replayed them.
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

// Acts are what an operation does to jobs, each as it is in the transaction, in
// the name of the operation with the number.
type Acts interface {
	ReplayAll(t *db.Tx, jobs []job.Job, now time.Time, by audit.Actor, operation int64) error
	DiscardAll(t *db.Tx, jobs []job.Job, now time.Time, by audit.Actor, operation int64) error
	RestoreAll(t *db.Tx, jobs []job.Job) error
	// CheckAct says why an act on the job is not allowed where the job is; empty when it is.
	CheckAct(j job.Job, kind operation.Kind) string
}

// Index finds jobs by their texts.
type Index interface {
	db.Finder

	// Complete returns an error for a filter whose jobs the index does not all
	// know.
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

// changes are what a transaction changed of the operations as a whole.
type changes struct {
	underWay int64 // how many more of them are under way
	ended    bool  // one that had begun has ended
}

// New returns a projection; Load reads what it knows in memory.
func New(writer *db.Writer, reader *db.Reader, policies *rows.Policies, log projection.Log, acts Acts, index Index) *Projection {
	return &Projection{
		writer: writer, reader: reader, policies: policies, log: log, acts: acts, index: index,
		changes: db.NewSlot(func() *changes { return new(changes) }),
	}
}

// Load counts the operations that are under way.
func (p *Projection) Load(src db.Source) (err error) {
	const query = `SELECT count(*) FROM operations
		WHERE state IN ('collecting', 'preview', 'running', 'paused') AND state <> 'preview'`
	p.underWay, err = db.Value[int64](src, query)
	return db.Wrap(err, "count the operations")
}

// UnderWay is how many operations collect, run or are paused, as of the last commit. Only
// code that the writer runs may call it.
func (p *Projection) UnderWay() int64 { return p.underWay }

// Ended reports whether an operation that had begun has ended in this transaction.
func (p *Projection) Ended(t *db.Tx) bool { return p.changes.In(t).ended }

// Flush writes nothing: operations are written at once.
func (p *Projection) Flush(*db.Tx) error { return nil }

// Committed takes the count over.
func (p *Projection) Committed(t *db.Tx) { p.underWay += p.changes.In(t).underWay }

// columns are those of an operation, and fields the places to which they go.
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

// withCursor is an operation, and where its collection is.
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

// List returns a page of operations, the newest first, from the one with
// the number before on; 0 is the beginning.
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

// groupOperations is how many operations a group shows.
const groupOperations = 10

// OfGroup returns the newest operations whose filter names the error group.
func (p *Projection) OfGroup(ctx context.Context, fingerprint string) ([]operation.Operation, error) {
	const query = `SELECT ` + columns + ` FROM operations WHERE (' ' || replace(filter, ',', ' group:') || ' ') LIKE $1 ESCAPE '\'
		ORDER BY id DESC LIMIT $2 + 0`
	return selectOperations(p.reader.In(ctx), query, "% group:"+clause.Like(fingerprint)+" %", groupOperations)
}

// maxActs bounds what is read of the operations of one job, the newest first.
const maxActs = 200

// ActsOn is what operations did to one job, the newest first.
func ActsOn(src db.Source, seq int64) ([]operation.Act, error) {
	const query = `SELECT i.operation_id, o.kind, i.run, i.at, o.started_by
		FROM operation_items AS i JOIN operations AS o ON o.id = i.operation_id
		WHERE i.job_seq = $1 AND i.state = 'done' ORDER BY i.operation_id DESC LIMIT $2 + 0`

	return db.All(src, query, func(a *operation.Act) []any {
		return []any{&a.Operation, &a.Kind, &a.Run, db.Time(&a.At), &a.By}
	}, seq, maxActs)
}

// Log is what was written about an operation in the audit log, the newest first.
func (p *Projection) Log(ctx context.Context, id int64) ([]audit.Entry, error) {
	const query = `SELECT seq, at, actor, address, action, subject, filter, count, before, after FROM audit
		WHERE subject = $1 ORDER BY seq DESC LIMIT 50`

	return db.All(p.reader.In(ctx), query, func(e *audit.Entry) []any {
		return []any{
			&e.Seq, db.Time(&e.At), &e.Actor.Name, &e.Actor.Address, &e.Action, &e.Subject, &e.Filter, &e.Count, &e.Before, &e.After,
		}
	}, operation.Subject(id))
}

// Invariants are what holds after every commit.
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

// miscounted finds operations whose meters say something else than their
// items. The items of operations that ended are removed after a time, and some of
// them may be gone already.
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
