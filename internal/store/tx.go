package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"redrive/internal/job"
)

// tx is one transaction of the writer, with everything that becomes true only
// when it commits.
type tx struct {
	*writer
	delta               delta
	changes             []job.Change
	fresh               map[policyText]int64 // policies that were stored in this transaction
	paused              map[string]bool      // queues that were paused (true) or resumed
	groups              map[string]*group    // error groups that were changed, by fingerprint
	newestGroup         int64                // the number of the newest group
	active              map[string]*job.Job  // executions that began; nil: that ended
	head                auditHead            // of the audit log
	seq                 int64                // the number of the newest job
	proven              bool                 // something was written, whatever else happened
	touched             bool                 // a rollup has to be written although no job moved
	messages            map[message]job.Job  // new jobs that came as envelopes
	runs                map[runKey]endedRun  // replayed runs that ended
	underWay            int64                // operations that began to work less those that no longer do
	lockable            *bool                // whether anybody can log in, when that was changed
	jobs, bodies        batch
	completed, attempts batch
	unsearched          batch // failures that cannot be searched yet
}

func newTx(w *writer) *tx {
	return &tx{
		writer: w, delta: newDelta(), fresh: map[policyText]int64{}, paused: map[string]bool{},
		groups: map[string]*group{}, newestGroup: w.rollup.newestGroup,
		active: map[string]*job.Job{}, head: w.rollup.audit, seq: w.rollup.newest,
		messages: map[message]job.Job{}, runs: map[runKey]endedRun{},
		jobs: inserting(), bodies: insertingBodies(), completed: completing(), attempts: recording(),
		unsearched: queueing(),
	}
}

// runAll runs the operations and then writes what they counted.
func (t *tx) runAll(ops []op) error {
	for _, o := range ops {
		if err := o.run(t); err != nil {
			return err
		}
	}
	for _, b := range []*batch{&t.attempts, &t.unsearched} {
		if err := b.flush(t, 1); err != nil {
			return err
		}
	}
	if err := t.flushRuns(); err != nil {
		return err
	}
	if err := t.flushHead(); err != nil {
		return err
	}
	return t.flush()
}

// committed makes known what has become true.
func (t *tx) committed() {
	for text, id := range t.fresh {
		t.store.policies.add(id, text)
	}
	maps.Copy(t.rollup.paused, t.paused)
	maps.DeleteFunc(t.rollup.paused, func(_ string, on bool) bool { return !on })
	t.counts.Lock()
	open := t.rollup.openGroups
	t.rollup.learnGroups(t.groups)
	moved := t.underWay != 0 || t.rollup.openGroups != open
	t.rollup.apply(t.delta, slices.Collect(maps.Keys(t.paused)), t.underWay, moved)
	t.counts.Unlock()
	t.rollup.newest, t.rollup.audit = t.seq, t.head
	for id, j := range t.active {
		if j == nil {
			delete(t.rollup.active, id)
		} else {
			t.rollup.active[id] = j
		}
	}
	if t.lockable != nil {
		t.store.guarded.Store(*t.lockable)
	}
	t.store.publish(&t.rollup)
	t.tell()
}

// tell calls OnCommit: with the jobs that moved; and without any when a queue
// was resumed, because then jobs can run that did not move, or when a count
// changed otherwise.
func (t *tx) tell() {
	if t.store.onCommit == nil {
		return
	}
	if len(t.changes) > 0 {
		t.store.onCommit(t.changes)
	}
	resumed := slices.Contains(slices.Collect(maps.Values(t.paused)), false)
	if resumed || t.touched {
		t.store.onCommit(nil)
	}
}

// exec runs a statement and returns the number of rows that it changed.
func (t *tx) exec(query string, args ...any) (int64, error) {
	result, err := t.execResult(query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t *tx) execResult(query string, args ...any) (sql.Result, error) {
	stmt, err := t.stmt(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(context.Background(), args...)
}

// query calls each for every row.
func (t *tx) query(query string, each func(*sql.Rows) error, args ...any) error {
	stmt, err := t.stmt(query)
	if err != nil {
		return err
	}
	return scan(stmt.QueryContext(context.Background(), args...))(each)
}

// moved counts that a job went from one status to another, and tells it. A job
// that is new comes from the zero Job.
func (t *tx) moved(from, to job.Job) {
	if from.State != "" {
		t.delta.depth(from, -1)
		t.delta.stand(from, -1)
	}
	t.delta.depth(to, 1)
	t.delta.stand(to, 1)
	t.changes = append(t.changes, to.Changed())
	if to.State == job.Active {
		held := to // only here does a copy leave the stack
		held.Payload, held.Meta, held.Error = nil, nil, job.ErrorInfo{}
		t.active[to.ID] = &held
	} else if from.State == job.Active {
		t.active[to.ID] = nil
	}
}

// depth is the number of jobs in a state, as this transaction sees it.
func (t *tx) depth(queue string, state job.State) int64 {
	k := depthKey{queue, job.Status(state)}
	return t.rollup.queued[k] + t.delta.depths[k]
}

// execution returns the active job whose newest execution the token names.
func (t *tx) execution(token job.Token) (j *job.Job, ok bool) {
	j, known := t.active[token.ID]
	if !known {
		j = t.rollup.active[token.ID]
	}
	return j, j != nil && j.Token == token
}

// policyID returns the number under which a policy is stored.
func (t *tx) policyID(text policyText) (int64, error) {
	if id, ok := t.store.policies.id(text); ok {
		return id, nil
	}
	if id, ok := t.fresh[text]; ok {
		return id, nil
	}
	const insert = `INSERT INTO policies (policy, origins) VALUES ($1, $2)
		ON CONFLICT (policy, origins) DO UPDATE SET policy = excluded.policy RETURNING id`
	var id int64
	err := t.query(insert, func(rows *sql.Rows) error { return rows.Scan(&id) }, text.policy, text.origins)
	if err != nil {
		return 0, fmt.Errorf("store a policy: %w", err)
	}
	t.fresh[text] = id
	return id, nil
}
