// Package rows is how jobs are stored in their tables: the columns and how they are
// read, the policies that jobs share, and the queries of lists. It decides
// nothing; the store and its projections do.
package rows

import (
	"cmp"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/store/db"
)

// The columns of a job in the order in which scan reads them, and those of its
// body as scanWhole does. Most lists do without bodies.
const (
	Columns = `seq, id, queue, source, type, state, letter, held, unbegun, run, attempts, execution, priority, policy_id, ttr,
		run_at, enqueued_at, started_at, finished_at, changed_at, worker, lease_until, last_seen,
		reason, error_type, error_message, key, group_id`
	BodyColumns = `expires_at, trace_id, message_id, note, meta, payload, envelope`
	Whole       = `SELECT ` + Columns + `, ` + BodyColumns + ` FROM jobs JOIN bodies ON job_seq = seq`
)

// Found gathers jobs as they are in the table, each with the number of its
// policy. [Policies.Complete] makes jobs of them.
type Found struct {
	Jobs     []job.Job
	policies []int64
	row      *row
}

// FoundFor has room for a page of so many: jobs are large, and a slice that
// grows copies them.
func FoundFor(limit int) Found {
	n := min(limit, 500) + 1
	return Found{Jobs: make([]job.Job, 0, n), policies: make([]int64, 0, n)}
}

// row is where the columns of one row are read to. It is used again for every row.
type row struct {
	job                                              job.Job
	policy                                           int64
	state, deadLetter, reason                        string
	held, unbegun, ttr, runAt, enqueued, wait        int64
	started, finished, changed, lease, seen, expires int64
	fields                                           []any // of Columns, in their order
}

func newRow() *row {
	r := new(row)
	j := &r.job
	r.fields = []any{
		&j.Seq, &j.ID, &j.Queue, &j.Source, &j.Type, &r.state, &r.deadLetter, &r.held, &r.unbegun,
		&j.Run, &j.Attempts, &j.Execution, &j.Priority, &r.policy, &r.ttr,
		&r.runAt, &r.enqueued, &r.started, &r.finished, &r.changed, &j.Worker, &r.lease, &r.seen,
		&r.reason, &j.Error.Type, &j.Error.Message, &j.Key, &j.Group,
	}

	return r
}

// Scan appends the job of a row, whose further columns go to extra.
func (f *Found) Scan(rows *sql.Rows, extra ...any) error {
	if f.row == nil {
		f.row = newRow()
	}

	if err := rows.Scan(append(f.row.fields, extra...)...); err != nil {
		return err
	}

	f.Jobs, f.policies = append(f.Jobs, f.row.read()), append(f.policies, f.row.policy)

	return nil
}

// read is the job whose columns were scanned.
func (r *row) read() job.Job {
	j := r.job
	j.State, j.DeadLetter, j.Reason = job.State(r.state), job.DeadLetterState(r.deadLetter), retry.Reason(r.reason)
	j.Held, j.Unbegun = r.held != 0, r.unbegun != 0
	j.Timeout = time.Duration(r.ttr) * time.Microsecond
	j.RunAt, j.EnqueuedAt = db.FromMicros(r.runAt), db.FromMicros(r.enqueued)

	j.StartedAt, j.FinishedAt = db.FromMicros(r.started), db.FromMicros(r.finished)
	j.ChangedAt, j.LeaseUntil, j.LastSeen = db.FromMicros(r.changed), db.FromMicros(r.lease), db.FromMicros(r.seen)
	if j.State != job.Active { // what the last claim left behind
		j.LeaseUntil, j.LastSeen = time.Time{}, time.Time{}
		if j.State != job.Returned { // its source has the job then
			j.Worker = ""
		}
	}

	switch j.State {
	case job.Active:
		j.ChangedAt = j.StartedAt
	case job.Completed:
		j.ChangedAt = j.FinishedAt
	}

	return j
}

// ScanWhole appends the job of a row with its body.
func (f *Found) ScanWhole(rows *sql.Rows) error {
	var body job.Job
	var expires int64
	var meta []byte

	err := f.Scan(rows, &expires, &body.TraceID, &body.MessageID, &body.Note, &meta, &body.Payload, &body.Envelope)
	if err != nil {
		return err
	}

	j := &f.Jobs[len(f.Jobs)-1]
	j.ExpiresAt, j.TraceID = db.FromMicros(expires), body.TraceID
	j.MessageID, j.Note = body.MessageID, body.Note
	j.Meta, j.Payload, j.Envelope = meta, body.Payload, body.Envelope

	return nil
}

// NextColumns are what is worth reading of a job that waits to be claimed, in
// the order in which ScanNext reads them: its run has not ended, no worker holds
// it, and the claim overwrites when it entered its state. Workers have no use
// for its newest error, its keys and its note. Each column of each row has its
// price: a driver allocates each number above 255, and most jobs may run as soon
// as they are enqueued.
const NextColumns = `seq, id, type, unbegun, run, attempts, execution, priority, policy_id, group_id, ttr, enqueued_at,
	run_at - enqueued_at, expires_at, trace_id, meta, payload, envelope`

// ScanNext appends the job of a row that waits to be claimed; known has its
// queue and state.
func (f *Found) ScanNext(rows *sql.Rows, known job.Job) error {
	if f.row == nil {
		f.row = new(row)
		r, j := f.row, &f.row.job
		r.fields = []any{
			&j.Seq, &j.ID, &j.Type, &j.Unbegun, &j.Run, &j.Attempts, &j.Execution, &j.Priority, &r.policy, &j.Group, &r.ttr,
			&r.enqueued, &r.wait, &r.expires, &j.TraceID, db.Blob((*[]byte)(&j.Meta)), db.Blob(&j.Payload), db.Blob(&j.Envelope),
		}
	}

	if err := rows.Scan(f.row.fields...); err != nil {
		return err
	}

	r, j := f.row, f.row.job
	j.Queue, j.State = known.Queue, known.State
	j.Timeout, j.ExpiresAt = time.Duration(r.ttr)*time.Microsecond, db.FromMicros(r.expires)
	j.RunAt, j.EnqueuedAt = db.FromMicros(r.enqueued+r.wait), db.FromMicros(r.enqueued)
	f.Jobs, f.policies = append(f.Jobs, j), append(f.policies, r.policy)

	return nil
}

// ActColumns are what has to be known of a job to act on it together with many
// others, in the order in which scanAct reads them.
const ActColumns = `seq, id, queue, source, type, state, letter, held, run, attempts, execution, priority, policy_id,
	run_at, changed_at, reason, group_id`

// scanAct appends the job of a row that has ActColumns.
func (f *Found) scanAct(rows *sql.Rows) error {
	j, policy := f.grow(job.Job{})
	var runAt, changed int64
	err := rows.Scan(&j.Seq, &j.ID, &j.Queue, &j.Source, &j.Type, (*string)(&j.State), (*string)(&j.DeadLetter), &j.Held,
		&j.Run, &j.Attempts, &j.Execution, &j.Priority, policy, &runAt, &changed, (*string)(&j.Reason), &j.Group)
	j.RunAt, j.ChangedAt = db.FromMicros(runAt), db.FromMicros(changed)

	return err
}

// grow appends a job to be scanned into, and the place of its policy's number.
func (f *Found) grow(j job.Job) (*job.Job, *int64) {
	f.Jobs, f.policies = append(f.Jobs, j), append(f.policies, 0)
	last := len(f.Jobs) - 1
	return &f.Jobs[last], &f.policies[last]
}

// Whole runs a query that selects [Whole], and completes each job with its
// policy.
func (p *Policies) Whole(src db.Source, query string, args ...any) ([]job.Job, error) {
	var found Found
	err := src.Query(query, found.ScanWhole, args...)
	return p.Complete(src, found, err)
}

// Jobs runs a query that selects [Columns].
func (p *Policies) Jobs(src db.Source, query string, args ...any) ([]job.Job, error) {
	found := FoundFor(0)
	err := src.Query(query, func(rows *sql.Rows) error { return found.Scan(rows) }, args...)
	return p.Complete(src, found, err)
}

// ToActOn reads the jobs with these numbers as far as an act on many needs it.
func (p *Policies) ToActOn(src db.Source, seqs []int64) ([]job.Job, error) {
	const query = `SELECT ` + ActColumns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`
	found := Found{Jobs: make([]job.Job, 0, len(seqs)), policies: make([]int64, 0, len(seqs))}
	err := src.Query(query, found.scanAct, db.Numbers(seqs))
	return p.Complete(src, found, err)
}

// Complete gives the jobs their policies. What was found before an error is
// kept.
func (p *Policies) Complete(src db.Source, found Found, err error) ([]job.Job, error) {
	for i := range found.Jobs {
		policy, policyErr := p.get(src, found.policies[i])
		if policyErr != nil {
			return found.Jobs[:i], errors.Join(err, policyErr)
		}

		found.Jobs[i].Policy, found.Jobs[i].Origins = policy.Policy, policy.Origins
	}

	return found.Jobs, err
}

// ByID returns a whole job, or job.ErrNotFound: a *retention.Removed when it is
// known that retention removed the job.
func (p *Policies) ByID(src db.Source, id string) (job.Job, error) {
	const query = Whole + ` WHERE id = $1`

	j, err := One(p.Whole(src, query, id))
	if errors.Is(err, sql.ErrNoRows) {
		err = missing(src, id)
	}

	return j, err
}

// IDBytes is a job's id, a UUID, in 16 bytes.
func IDBytes(id string) []byte {
	bytes, _ := hex.DecodeString(strings.ReplaceAll(id, "-", "")) // what is no UUID is no job's id
	return bytes
}

// missing says what is known of a job that is not there.
func missing(src db.Source, id string) error {
	const query = `SELECT kind, enqueued_at, removed_at, until FROM removed_jobs WHERE id = $1`
	r, until := &retention.Removed{ID: id}, time.Time{}

	fields := []any{(*string)(&r.Kind), db.Time(&r.EnqueuedAt), db.Time(&r.RemovedAt), db.Time(&until)}

	found, err := db.Row(src, query, fields, IDBytes(id))
	r.Kept = until.Sub(r.RemovedAt)
	if found || err != nil {
		return cmp.Or(err, error(r))
	}

	return fmt.Errorf("%w with the id %s", job.ErrNotFound, clip.Text(id, 64))
}

// One is the only job that a query found, or sql.ErrNoRows.
func One(jobs []job.Job, err error) (job.Job, error) {
	if err == nil && len(jobs) == 0 {
		err = sql.ErrNoRows
	}

	if err != nil {
		return job.Job{}, err
	}

	return jobs[0], nil
}

// Numbers are the numbers of jobs.
func Numbers(jobs []job.Job) []int64 {
	numbers := make([]int64, len(jobs))
	for i, j := range jobs {
		numbers[i] = j.Seq
	}

	return numbers
}

// Seqs is the jobs' numbers as an argument of a statement.
func Seqs(jobs []job.Job) db.Numbers { return db.Numbers(Numbers(jobs)) }

// Recording appends attempts that did not succeed, or at a source. The record of any other
// success is the row of its job (see the view executions).
func Recording() db.Batch {
	return db.NewBatch(15, `INSERT INTO attempts (job_seq, execution, run, number, worker, started_at, finished_at,
		outcome, error_type, error_message, action, decided_by, delay, note, trace) VALUES `, "")
}

// AddAttempt appends an attempt of a job to a batch made by Recording.
func AddAttempt(t *db.Tx, to *db.Batch, seq int64, a job.Attempt) error {
	var delay []byte
	if a.Delay != nil {
		var err error

		delay, err = json.Marshal(a.Delay)
		if err != nil {
			return err
		}
	}

	return to.Add(t, seq, a.Execution, a.Run, a.Number, a.Worker, db.Micros(a.StartedAt), db.Micros(a.FinishedAt),
		string(a.Outcome), a.Error.Type, a.Error.Message, string(a.Action), a.DecidedBy, string(delay), a.Note, a.Trace)
}

// attemptColumns are those that scanAttempt reads.
const attemptColumns = `execution, run, number, worker, started_at, finished_at, outcome, error_type, error_message,
	action, decided_by, delay, note, trace`

func scanAttempt(rows *sql.Rows) (a job.Attempt, err error) {
	var delay []byte
	err = rows.Scan(&a.Execution, &a.Run, &a.Number, &a.Worker, db.Time(&a.StartedAt), db.Time(&a.FinishedAt), &a.Outcome,
		&a.Error.Type, &a.Error.Message, &a.Action, &a.DecidedBy, &delay, &a.Note, &a.Trace)
	if err == nil && len(delay) > 0 {
		a.Delay = new(retry.Delay)
		err = json.Unmarshal(delay, a.Delay)
	}

	return a, err
}

// What a page of attempts holds: one more attempt begins as long as the texts of those
// before it are smaller than that.
const (
	pageAttempts    = 200
	pageAttemptText = 2 << 20
)

// Attempts are the newest attempts of a job before an execution, as many as one page
// has, in the order of execution.
func Attempts(src db.Source, seq int64, before int) (all []job.Attempt, err error) {
	const query = `SELECT ` + attemptColumns + ` FROM executions WHERE job_seq = $1 AND execution < $2 ORDER BY execution DESC LIMIT $3 + 0`
	size := 0
	err = src.Query(query, func(rows *sql.Rows) error {
		if size >= pageAttemptText {
			return db.ErrEnough
		}

		a, err := scanAttempt(rows)
		size += len(a.Error.Message) + len(a.Trace)
		all = append(all, a)

		return err
	}, seq, before, pageAttempts)

	slices.Reverse(all)

	return all, err
}

// AttemptFrom is the first attempt of a job from an execution on, or nil.
func AttemptFrom(src db.Source, seq int64, execution int) (found *job.Attempt, err error) {
	const query = `SELECT ` + attemptColumns + ` FROM executions WHERE job_seq = $1 AND execution >= $2 ORDER BY execution LIMIT 1`
	err = src.Query(query, func(rows *sql.Rows) error {
		a, err := scanAttempt(rows)
		found = &a
		return err
	}, seq, execution)

	return found, err
}
