package operations

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// workItem is an item on its way through a transaction.
type workItem struct {
	n     int64
	seq   int64
	run   int
	id    string   // as it was named, when it was
	job   *job.Job // as it was read; nil: not yet, or there is none
	code  operation.Skip
	why   string
	other int64
}

// A step has as many items as it may when no other caller waits for the writer: items
// share the pages that a commit writes. It takes them in chunks, and once another
// caller waits it ends with the chunk in which its time is over.
const (
	itemRows = 4 // that an item writes

	chunk      = 100 // items
	othersWait = 5 * time.Millisecond
)

// Work takes the next items of a running operation, at most n, as far as its
// canary, its guard and others who wait let it, and says how many it worked
// through. An item whose job is no longer what the person saw is skipped, and says
// why. The clock is read when the step has its turn.
func (p *Projection) Work(ctx context.Context, clock func() time.Time, id int64, n int) (operation.Step, error) {
	n = min(n, operation.MaxStep)

	return db.Write(ctx, p.writer, itemRows*min(n, chunk), func(t *db.Tx) (done operation.Step, err error) {
		done.At = clock()
		over := func() bool { return p.writer.Waited() && clock().Sub(done.At) >= othersWait }
		done.Operation, done.Items, err = p.work(t, id, n, done.At, over)
		t.Grew(max(0, done.Items-chunk)) // in the same pages

		return done, err
	})
}

func (p *Projection) work(t *db.Tx, id int64, n int, now time.Time, over func() bool) (o operation.Operation, worked int, err error) {
	o, err = byID(t, id)
	if err != nil || o.State != operation.Running || o.Sift > 0 {
		return o, 0, err
	}

	if why, err := p.guarded(t, o); why != "" || err != nil {
		if err == nil {
			o.Guarded = true
			o, err = p.pause(t, o, why, now, audit.Actor{Name: "the guard"})
		}

		return o, 0, err
	}

	if o.Pace.Canary > 0 && o.CanaryAt.IsZero() {
		n = min(n, int(o.Pace.Canary-o.Done))
	}

	for more := true; more && worked < n; more = more && !over() {
		items, err := p.nextItems(t, o, min(chunk, n-worked))
		if err == nil {
			o, err = p.workThrough(t, o, items, now)
		}

		if err != nil {
			return o, 0, fmt.Errorf("operation %d: %w", id, err)
		}

		worked, more = worked+len(items), len(items) == chunk
	}

	o, err = p.worked(t, o, now)

	return o, worked, err
}

// nextItems reads pending items in processing order.
func (p *Projection) nextItems(t *db.Tx, o operation.Operation, n int) ([]workItem, error) {
	const query = `SELECT n, job_seq, run FROM operation_items
		WHERE operation_id = $1 AND n > $2 AND state = 'pending' ORDER BY n LIMIT $3 + 0`
	return db.All(t, query, func(it *workItem) []any { return []any{&it.n, &it.seq, &it.run} }, o.ID, o.Position, n)
}

// workThrough does what the operation is for, and counts it.
func (p *Projection) workThrough(t *db.Tx, o operation.Operation, items []workItem, now time.Time) (operation.Operation, error) {
	if err := p.judge(t, o, items); err != nil {
		return o, err
	}

	fit := make([]job.Job, 0, len(items))
	skips := map[operation.Skip]int64{}
	for _, it := range items {
		o.Position = it.n
		o.Pending--
		if it.code != "" {
			skips[it.code]++
			o.Skipped++
			continue
		}

		o.Done++

		fit = append(fit, *it.job)
	}

	return o, db.Steps(t,
		func(t *db.Tx) error { return p.actOn(t, o, fit, now) },
		func(t *db.Tx) error { return p.markItems(t, o.ID, items, now) },
		func(t *db.Tx) error { return p.countPace(t, o, len(fit), now) },
		func(t *db.Tx) error { return p.countScope(t, o.ID, nil, skips) })
}

// actOn does to the jobs what the operation is for. They fit: nothing can have
// changed since they were read in this transaction.
func (p *Projection) actOn(t *db.Tx, o operation.Operation, jobs []job.Job, now time.Time) (err error) {
	if len(jobs) == 0 {
		return nil
	}

	by := audit.Actor{Name: o.StartedBy}
	switch o.Kind {
	case operation.Replay:
		err = p.acts.ReplayAll(t, jobs, now, by, o.ID)
	case operation.Discard:
		err = p.acts.DiscardAll(t, jobs, now, by, o.ID)
	case operation.Restore:
		err = p.acts.RestoreAll(t, jobs)
	default: // unreachable: Kind.Check has refused it
		err = fmt.Errorf("%q is no kind of operation", o.Kind)
	}

	return err
}

// markItems writes down what became of the pending items from the first to the
// last of these: some were skipped, all others are done.
func (p *Projection) markItems(t *db.Tx, id int64, items []workItem, now time.Time) error {
	const skip = `UPDATE operation_items SET state = 'skipped', code = $3, why = $4, other = $5, at = $6
		WHERE operation_id = $1 AND n = $2 AND state = 'pending'`
	const done = `UPDATE OR FAIL operation_items SET state = 'done', at = $4
		WHERE operation_id = $1 AND n BETWEEN $2 AND $3 AND state = 'pending'`

	if len(items) == 0 {
		return nil
	}

	left := len(items)
	for _, it := range items {
		if it.code == "" {
			continue
		}

		if err := t.ExecExactly(1, skip, id, it.n, string(it.code), it.why, it.other, db.Micros(now)); err != nil {
			return err
		}

		left--
	}

	return t.ExecExactly(left, done, id, items[0].n, items[len(items)-1].n, db.Micros(now))
}

// countPace counts items that are done by the step of the operation's time in
// which they were.
func (p *Projection) countPace(t *db.Tx, o operation.Operation, n int, now time.Time) error {
	const count = `INSERT INTO operation_pace (operation_id, second, n) VALUES ($1, $2, $3)
		ON CONFLICT (operation_id, second) DO UPDATE SET n = operation_pace.n + excluded.n`

	if n == 0 {
		return nil
	}

	r := o.Pacing(now)
	begin := time.Duration(len(r.Done)-1) * r.Step

	return t.Run(count, o.ID, int64(begin/time.Second), n)
}

// worked is the operation after a step: it goes on, pauses after its canary, or
// is finished.
func (p *Projection) worked(t *db.Tx, o operation.Operation, now time.Time) (operation.Operation, error) {
	if o.Pending == 0 {
		o.State, o.Why, o.FinishedAt = operation.Finished, "", now
		return o, p.record(t, operation.Running, o, entry(o, "operation.finish", now, audit.Actor{Name: o.StartedBy}))
	}

	if o.Pace.Canary > 0 && o.CanaryAt.IsZero() && o.Done >= o.Pace.Canary {
		o.CanaryAt = now
		why := fmt.Sprintf("the canary of %d is enqueued", o.Pace.Canary)
		return p.pause(t, o, why, now, audit.Actor{Name: "the canary"})
	}

	return o, p.save(t, operation.Running, o)
}

// guarded says why an operation should not go on: its replays keep failing as
// before. Runs that had ended before a person resumed it no longer count.
func (p *Projection) guarded(t *db.Tx, o operation.Operation) (why string, err error) {
	if !o.Pace.Guard || o.Kind != operation.Replay {
		return "", nil
	}

	var seen operation.Progress
	err = guardSees(t, o, &seen)
	if err != nil || seen.Ended < operation.GuardLeast || 2*seen.Same <= seen.Ended {
		return "", err
	}

	if 2*seen.BackN > seen.Ended && seen.Back.Class != "" {
		return fmt.Sprintf("%s came back in %d of the last %d replays", seen.Back.Class, seen.BackN, seen.Ended), nil
	}

	// Several errors came back, or one that has no name.
	why = fmt.Sprintf("%d of the last %d replays failed permanently with the same errors as before", seen.Same, seen.Ended)
	if seen.Back.Class != "" {
		why += fmt.Sprintf(", most often, %d times, with %s", seen.BackN, seen.Back.Class)
	}

	return why, nil
}

// guardSees counts the replays that ended last, and those of them that failed in the same
// group as before.
func guardSees(src db.Source, o operation.Operation, p *operation.Progress) error {
	const newest = `(SELECT same, cause FROM operation_items
		WHERE operation_id = $1 AND ended_at > $2 AND ended_at <> 0 ORDER BY ended_at DESC LIMIT $3 + 0) AS newest`
	const counts = `SELECT count(*), coalesce(sum(same), 0) FROM ` + newest
	const back = `SELECT count(*) AS n, ` + named + ` FROM ` + newest + ` JOIN groups AS g ON g.id = newest.cause
		WHERE same = 1 GROUP BY g.id ORDER BY n DESC, g.id LIMIT 1`

	args := []any{o.ID, db.Micros(o.ResumedAt), operation.GuardWindow}
	_, err := db.Row(src, counts, []any{&p.Ended, &p.Same}, args...)
	if err == nil && p.Same > 0 {
		_, err = db.Row(src, back, append([]any{&p.BackN}, causeFields(&p.Back)...), args...)
	}

	return db.Wrap(err, "read what the guard of operation %d sees", o.ID)
}

// judge holds items against their jobs, which it reads unless they are known,
// and says why some do not fit.
func (p *Projection) judge(t *db.Tx, o operation.Operation, items []workItem) error {
	if err := p.readJobs(t, items); err != nil {
		return err
	}

	late := map[int64]*workItem{}
	for i := range items {
		it := &items[i]
		if it.job == nil {
			it.code, it.why = operation.SkipGone, gone(it.id)
			continue
		}

		it.code = o.Kind.Unfit(*it.job, it.run)
		it.why = unfit(it.code, *it.job, it.run)
		if refused := p.acts.CheckAct(*it.job, o.Kind); refused != "" && it.code == "" {
			it.code, it.why = operation.SkipRefused, refused
		}

		if it.code == operation.SkipReplayed {
			late[it.seq] = it
		}
	}

	return p.whoWasFirst(t, late)
}

// readJobs gives items their jobs as they are in this transaction.
func (p *Projection) readJobs(t *db.Tx, items []workItem) error {
	unknown := make([]int64, 0, len(items))
	for _, it := range items {
		if it.job == nil {
			unknown = append(unknown, it.seq)
		}
	}

	if len(unknown) == 0 {
		return nil
	}

	jobs, err := p.policies.ToActOn(t, unknown)
	bySeq := make(map[int64]*job.Job, len(jobs))
	for i := range jobs {
		bySeq[jobs[i].Seq] = &jobs[i]
	}

	for i := range items {
		if it := &items[i]; it.job == nil {
			it.job = bySeq[it.seq]
		}
	}

	return err
}

func gone(id string) string {
	if id == "" {
		return "the job was removed"
	}
	return "there is no job " + id
}

// unfit says in words why a job does not take part.
func unfit(code operation.Skip, j job.Job, run int) string {
	switch code {
	case "":
		return ""
	case operation.SkipReplayed:
		return fmt.Sprintf("replayed already, run %d", j.Run)
	case operation.SkipNoRun:
		return fmt.Sprintf("the job never had run %d; it is %s in run %d", run, j.Status(), j.Run)
	case operation.Skip(job.StatusTrashed):
		if name := j.Source; name != "" {
			return "discarded at " + name + ", cannot be restored"
		}
		return "discarded, in the trash"
	case operation.Skip(job.Completed):
		return fmt.Sprintf("run %d succeeded", j.Run)
	}

	return fmt.Sprintf("%s, run %d", j.Status(), j.Run)
}

// whoWasFirst says of items that came too late who replayed their runs.
func (p *Projection) whoWasFirst(t *db.Tx, late map[int64]*workItem) error {
	const query = `SELECT r.job_seq, r.by, r.operation_id FROM json_each($1) AS e
		JOIN replays AS r ON r.job_seq = e.value ->> 0 AND r.run = e.value ->> 1`

	if len(late) == 0 {
		return nil
	}

	rows := make([][2]int64, 0, len(late))
	for seq, it := range late {
		rows = append(rows, [2]int64{seq, int64(it.run)})
	}

	type replay struct {
		seq, other int64
		by         string
	}
	all, err := db.All(t, query, func(r *replay) []any { return []any{&r.seq, &r.by, &r.other} }, db.Rows(rows))
	for _, r := range all {
		it := late[r.seq]
		it.why, it.other = fmt.Sprintf("replayed already by %s, run %d", audit.Name(r.by), it.run+1), r.other
	}

	return err
}

// undropQuery finds the items of replayed runs by their jobs.
const undropQuery = `UPDATE operation_items SET outcome = '', ended_at = 0
	FROM (SELECT value ->> 0 AS seq, value ->> 1 AS run FROM json_each($1)) AS e
	JOIN replays AS r ON r.job_seq = e.seq AND r.run = e.run - 1 AND r.operation_id <> 0
	WHERE operation_items.job_seq = e.seq AND operation_items.run = r.run AND operation_items.operation_id = r.operation_id
		AND operation_items.outcome = 'dropped'
	RETURNING operation_items.operation_id, 'dropped'`

// RunsEnded writes the outcomes of replayed runs to the items of the operations
// that replayed them, and to their meters.
func (p *Projection) RunsEnded(t *db.Tx, runs []projection.EndedRun) error {
	// A single UPDATE with the runs as JSON and RETURNING took twice as long.
	const unsettled = `SELECT i.operation_id, i.n, i.job_seq, i.run + 1, i.outcome FROM json_each($1) AS e
		JOIN operation_items AS i ON i.job_seq = e.value WHERE i.state = 'done' AND i.outcome IN ('', 'unknown')`
	update := db.NewBatch(5, `UPDATE operation_items SET outcome = e.column3, ended_at = e.column4, same = e.column5 FROM (VALUES `,
		`) AS e WHERE operation_items.operation_id = e.column1 AND operation_items.n = e.column2`)
	type jobRun struct {
		seq int64
		run int
	}

	ended, seqs := make(map[jobRun]projection.EndedRun, len(runs)), make([]int64, 0, len(runs))
	for _, r := range runs {
		if r.Operation != 0 {
			ended[jobRun{r.Seq, r.Run}] = r
			seqs = append(seqs, r.Seq)
		}
	}

	if len(seqs) == 0 {
		return nil
	}

	slices.Sort(seqs)
	type item struct {
		operation, n int64
		jobRun
		outcome operation.RunOutcome
	}

	items, err := db.All(t, unsettled, func(it *item) []any { return []any{&it.operation, &it.n, &it.seq, &it.run, &it.outcome} },
		db.Numbers(slices.Compact(seqs)))
	if err != nil {
		return fmt.Errorf("read which items have ended: %w", err)
	}

	counts := meters{}
	for _, it := range items {
		r := ended[it.jobRun]
		if it.operation != r.Operation {
			continue
		}

		// A run whose fate was unknown is settled only by what its source says of it since.
		if it.outcome == operation.RunUnknown {
			if r.Outcome != operation.RunSucceeded && r.Outcome != operation.RunRelapsed {
				continue
			}

			counts.add(it.operation, operation.RunUnknown, -1)
		}

		// It is not known that a run of unknown fate has ended: the guard does not count it.
		if r.Outcome == operation.RunUnknown {
			r.At = 0
		}

		same := r.Outcome == operation.RunRelapsed && r.Group == r.Origin // it failed in the same group as before
		if err := update.Add(t, it.operation, it.n, string(r.Outcome), r.At, same); err != nil {
			return fmt.Errorf("write the outcomes of replayed runs: %w", err)
		}

		counts.add(it.operation, r.Outcome, 1)
	}

	return db.Steps(t, update.Flush, counts.write)
}

// RunsResumed takes back that these runs were dropped: they go on, and may still
// succeed or fail.
func (p *Projection) RunsResumed(t *db.Tx, runs string) error {
	type dropped struct {
		operation int64
		outcome   operation.RunOutcome
	}

	all, err := db.All(t, undropQuery, func(d *dropped) []any { return []any{&d.operation, &d.outcome} }, runs)
	if err != nil {
		return fmt.Errorf("take back the outcomes of dropped runs: %w", err)
	}

	counts := meters{}
	for _, d := range all {
		counts.add(d.operation, d.outcome, -1)
	}

	return counts.write(t)
}

// meters count by operation how replayed runs ended.
type meters map[int64]map[operation.RunOutcome]int64

func (m meters) add(id int64, outcome operation.RunOutcome, n int64) {
	if m[id] == nil {
		m[id] = map[operation.RunOutcome]int64{}
	}

	m[id][outcome] += n
}

// write adds the counts to those of the operations.
func (m meters) write(t *db.Tx) error {
	const update = `UPDATE operations SET succeeded = succeeded + $2, relapsed = relapsed + $3, dropped = dropped + $4,
		unknown = unknown + $5 WHERE id = $1`
	for _, id := range slices.Sorted(maps.Keys(m)) {
		err := t.ExecExactly(1, update, id, m[id][operation.RunSucceeded], m[id][operation.RunRelapsed], m[id][operation.RunDropped],
			m[id][operation.RunUnknown])
		if err != nil {
			return fmt.Errorf("count the outcomes of operation %d: %w", id, err)
		}
	}

	return nil
}
