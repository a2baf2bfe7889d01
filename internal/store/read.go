package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// source runs queries: the writer's transaction, or the pool of readers.
type source interface {
	query(query string, each func(*sql.Rows) error, args ...any) error
}

// reading is a source for one caller, on the pool or inside one transaction.
type reading struct {
	ctx   context.Context
	store *Store
	tx    *sql.Tx
}

func (s *Store) reading(ctx context.Context) reading { return reading{ctx: ctx, store: s} }

// query prepares each text once for every connection of the pool.
func (r reading) query(query string, each func(*sql.Rows) error, args ...any) error {
	stmt, err := r.store.prepare(r.ctx, query)
	if err != nil {
		return r.store.examine(err)
	}
	if r.tx != nil {
		stmt = r.tx.StmtContext(r.ctx, stmt)
	}
	return r.store.examine(scan(stmt.QueryContext(r.ctx, args...))(each))
}

func (s *Store) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := s.prepared.Load(query); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := s.reads.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if first, loaded := s.prepared.LoadOrStore(query, stmt); loaded {
		return first.(*sql.Stmt), stmt.Close()
	}
	return stmt, nil
}

// consistently runs do within one read transaction: all its queries see the
// same commit.
func (s *Store) consistently(ctx context.Context, do func(source) error) (err error) {
	tx, err := s.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return s.examine(err)
	}
	defer func() {
		if end := tx.Rollback(); end != nil && !errors.Is(end, sql.ErrTxDone) {
			err = errors.Join(err, end)
		}
	}()
	return do(reading{ctx: ctx, store: s, tx: tx})
}

// scan takes what a query returned and gives each row to a function.
func scan(rows *sql.Rows, err error) func(func(*sql.Rows) error) error {
	return func(each func(*sql.Rows) error) error {
		if err != nil {
			return err
		}
		for rows.Next() {
			if err := each(rows); err != nil {
				return errors.Join(err, rows.Close())
			}
		}
		return errors.Join(rows.Err(), rows.Close())
	}
}

// The columns of a job in the order in which scan reads them, and those of its
// body as scanWhole does. Most lists do without bodies.
const (
	jobColumns = `seq, id, queue, type, state, letter, held, run, attempts, execution, priority, policy_id, ttr,
		run_at, enqueued_at, started_at, finished_at, changed_at, worker, lease_until, last_seen,
		reason, error_type, error_message, key, group_id`
	bodyColumns = `expires_at, trace_id, message_id, note, meta, payload, envelope`
	wholeJobs   = `SELECT ` + jobColumns + `, ` + bodyColumns + ` FROM jobs JOIN bodies ON job_seq = seq`
)

// jobRows gathers jobs as they lie in the table, each with the number of its
// policy.
type jobRows struct {
	jobs     []job.Job
	policies []int64
	row      *jobRow
}

// jobRowsFor has room for a page of so many: jobs are large, and a slice that
// grows copies them.
func jobRowsFor(limit int) jobRows {
	n := min(limit, 100) + 1
	return jobRows{jobs: make([]job.Job, 0, n), policies: make([]int64, 0, n)}
}

// jobRow is where the columns of one row come to lie, for every row anew.
type jobRow struct {
	job                                                                 job.Job
	policy                                                              int64
	state, letter, reason                                               string
	held, ttr, runAt, enqueued, started, finished, changed, lease, seen int64
	fields                                                              []any // of jobColumns, in their order
}

func newJobRow() *jobRow {
	r := new(jobRow)
	j := &r.job
	r.fields = []any{
		&j.Seq, &j.ID, &j.Queue, &j.Type, &r.state, &r.letter, &r.held, &j.Run, &j.Attempts, &j.Execution, &j.Priority, &r.policy, &r.ttr,
		&r.runAt, &r.enqueued, &r.started, &r.finished, &r.changed, &j.Worker, &r.lease, &r.seen,
		&r.reason, &j.Error.Type, &j.Error.Message, &j.Key, &j.Group,
	}
	return r
}

// scan appends the job of a row, whose further columns go to extra.
func (r *jobRows) scan(rows *sql.Rows, extra ...any) error {
	if r.row == nil {
		r.row = newJobRow()
	}
	if err := rows.Scan(append(r.row.fields, extra...)...); err != nil {
		return err
	}
	r.jobs, r.policies = append(r.jobs, r.row.read()), append(r.policies, r.row.policy)
	return nil
}

// read is the job whose columns were scanned.
func (r *jobRow) read() job.Job {
	j := r.job
	j.State, j.Letter, j.Reason, j.Held = job.State(r.state), job.Letter(r.letter), retry.Reason(r.reason), r.held != 0
	j.Timeout = time.Duration(r.ttr) * time.Microsecond
	j.RunAt, j.EnqueuedAt, j.StartedAt, j.FinishedAt = fromMicros(r.runAt), fromMicros(r.enqueued), fromMicros(r.started), fromMicros(r.finished)
	j.ChangedAt, j.LeaseUntil, j.LastSeen = fromMicros(r.changed), fromMicros(r.lease), fromMicros(r.seen)
	if j.State != job.Active { // what the last claim left behind
		j.Worker, j.LeaseUntil, j.LastSeen = "", time.Time{}, time.Time{}
	}
	switch j.State {
	case job.Active:
		j.ChangedAt = j.StartedAt
	case job.Completed:
		j.ChangedAt = j.FinishedAt
	}
	return j
}

// scanWhole appends the job of a row with its body.
func (r *jobRows) scanWhole(rows *sql.Rows) error {
	var body job.Job
	var expires int64
	var meta []byte
	err := r.scan(rows, &expires, &body.TraceID, &body.MessageID, &body.Note, &meta, &body.Payload, &body.Envelope)
	if err != nil {
		return err
	}
	j := &r.jobs[len(r.jobs)-1]
	j.ExpiresAt, j.TraceID, j.MessageID, j.Note = fromMicros(expires), body.TraceID, body.MessageID, body.Note
	j.Meta, j.Payload, j.Envelope = meta, body.Payload, body.Envelope
	return nil
}

// nextColumns are what is worth reading of a job that waits to be claimed, in
// the order in which scanNext reads them: its run has not ended, nobody holds
// it, and the claim overwrites when it entered its state. Workers have no use
// for its newest error, its keys and its note. Each column of each row has its
// price.
const nextColumns = `seq, id, type, run, attempts, execution, priority, policy_id, ttr, run_at, enqueued_at,
	expires_at, trace_id, meta, payload, envelope`

// scanNext appends the job of a row that waits to be claimed; known has its
// queue and state.
func (r *jobRows) scanNext(rows *sql.Rows, known job.Job) error {
	r.jobs, r.policies = append(r.jobs, known), append(r.policies, 0)
	last := len(r.jobs) - 1
	j := &r.jobs[last]
	var ttr, runAt, enqueued, expires int64
	var meta []byte
	err := rows.Scan(&j.Seq, &j.ID, &j.Type, &j.Run, &j.Attempts, &j.Execution, &j.Priority, &r.policies[last], &ttr,
		&runAt, &enqueued, &expires, &j.TraceID, &meta, &j.Payload, &j.Envelope)
	j.Meta, j.Timeout, j.ExpiresAt = meta, time.Duration(ttr)*time.Microsecond, fromMicros(expires)
	j.RunAt, j.EnqueuedAt = fromMicros(runAt), fromMicros(enqueued)
	return err
}

// whole runs a query that selects wholeJobs, and completes each with its
// policy.
func (p *policies) whole(src source, query string, args ...any) ([]job.Job, error) {
	var found jobRows
	err := src.query(query, found.scanWhole, args...)
	return p.complete(src, found, err)
}

// jobs does so with one that selects the columns of a job without its body.
func (p *policies) jobs(src source, query string, args ...any) ([]job.Job, error) {
	return p.page(src, 0, query, args...)
}

// page does so with one that selects so many, and one more.
func (p *policies) page(src source, limit int, query string, args ...any) ([]job.Job, error) {
	found := jobRowsFor(limit)
	err := src.query(query, func(rows *sql.Rows) error { return found.scan(rows) }, args...)
	return p.complete(src, found, err)
}

// complete gives the jobs their policies. What was found before an error is
// kept.
func (p *policies) complete(src source, found jobRows, err error) ([]job.Job, error) {
	for i := range found.jobs {
		policy, policyErr := p.get(src, found.policies[i])
		if policyErr != nil {
			return found.jobs[:i], errors.Join(err, policyErr)
		}
		found.jobs[i].Policy, found.jobs[i].Origins = policy.Policy, policy.Origins
	}
	return found.jobs, err
}

// micros is a time as the database keeps it.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}
