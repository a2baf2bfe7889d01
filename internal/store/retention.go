package store

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// Retention removes jobs some time after they ended. A reader looks for those
// whose time has come, page by page; the writer removes them in small steps and
// looks again whether nothing has happened to them meanwhile. A step ends as soon
// as another caller waits for the writer.
//
// Each step counts what it removes in the table removals, and remembers the ids in
// removed_jobs. The audit log has one entry for each sweep, with everything that
// was removed since the last one.

// Bounds of a sweep.
const (
	duePage    = 5000 // rows that are read at once
	jobRows    = 4    // that the removal of a job changes, roughly
	dueChunk   = 50   // jobs that a step removes before it looks whether another caller waits
	pruneChunk = 500  // rows that one transaction removes of what is not a job
)

// notHeld is the condition that no operation under way needs the job.
const notHeld = `NOT EXISTS (SELECT 1 FROM operation_items AS i JOIN operations AS o ON o.id = i.operation_id
	WHERE i.job_seq = jobs.seq AND o.state IN ('running', 'paused'))`

// ownLetter is the condition that a dead letter is held here alone. A dead letter of a
// source is in its source too, which alone decides how long it stays: retention
// neither counts nor removes it.
const ownLetter = `letter = 'stored' AND source = ''`

// notNewest is the condition that the job is not the newest dead letter of our own,
// which always stays.
const notNewest = `seq <> (SELECT seq FROM jobs WHERE ` + ownLetter + ` ORDER BY changed_at DESC, seq DESC LIMIT 1)`

// notAtSource is the condition that a source has nothing of the job any more: its record
// has left, and no act on it is under way. Otherwise the source would bring the job back
// as a new one, and an act that was asked for would be forgotten.
const notAtSource = `(source = '' OR NOT EXISTS (SELECT 1 FROM mirrored AS m WHERE m.job_seq = jobs.seq AND m.lies <> 0)
	AND NOT EXISTS (SELECT 1 FROM source_acts AS a WHERE a.job_seq = jobs.seq AND a.state IN ('asked', 'begun')))`

// ended are the conditions by which jobs of a kind are found, each with what the
// index of its list repeats. Completed jobs have no such index (see the table jobs):
// they are read in the order of their numbers. Nothing is known of the end of a returned job,
// so it is kept as long as a completed one, from when it was to run.
func ended(k retention.Kind) (where, at string) {
	switch k {
	case retention.Completed:
		return `state IN ('completed', 'returned')`, `CASE state WHEN 'completed' THEN finished_at ELSE max(changed_at, run_at) END`
	case retention.Cancelled:
		return `list_state = 'cancelled' AND list_state <> ''`, `changed_at`
	case retention.Discarded:
		return `list_state = 'discarded' AND letter = ''`, `changed_at`
	}

	return ownLetter, `changed_at`
}

// parts counts jobs that were removed.
type parts map[retention.Part]int64

// sweep is one pass of retention through the jobs.
type sweep struct {
	store  *Store
	now    time.Time
	limits retention.Limits
	done   retention.Pruned
}

func (p *sweep) count(removed parts) {
	for part, n := range removed {
		p.done.Jobs[part] += n
	}
}

// Prune removes what was kept for its time: jobs that ended, dead letters, the
// oldest of those that are more than there may be and were announced as such by the
// newest forecast since the start, and discarded jobs in the trash,
// each with everything that is known of it; the items of operations that ended as
// long ago as dead letters are kept, whose counts stay; and error groups in which
// nothing failed for so long and to which no job belongs, sooner when there is
// hardly room for new ones. What an operation under way needs stays, and so do
// refused dead letters and the newest dead letter. What is still at a source, or is on
// its way there, is not removed. Other writers come in between.
func (s *Store) Prune(ctx context.Context, now time.Time, limits retention.Limits) (retention.Pruned, error) {
	p := &sweep{store: s, now: now, limits: limits, done: retention.Pruned{Jobs: parts{}}}

	since, err := s.retentionSince(ctx)
	if err != nil {
		return p.done, err
	}

	if now.Before(since) {
		p.limits = limits.WithoutDefaults()
	}

	steps := []func(context.Context) error{p.aged, p.excess, p.purgeTrash, p.items, p.groups, p.memories, p.audit}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return p.done, fmt.Errorf("prune what is kept for its time only: %w", err)
		}
	}

	return p.done, nil
}

// retentionSince is from when on the defaults apply; zero when they always did.
func (s *Store) retentionSince(ctx context.Context) (since time.Time, err error) {
	const query = `SELECT since FROM retention_notice`

	_, err = db.Row(s.reader.In(ctx), query, []any{db.Time(&since)})
	if !since.IsZero() {
		since = since.Add(retention.Notice)
	}

	return since, db.Wrap(err, "read when retention began")
}

// aged removes jobs that are older than they may be.
func (p *sweep) aged(ctx context.Context) error {
	for _, kind := range retention.WithAge() {
		if err := p.agedOf(ctx, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}

	return nil
}

func (p *sweep) agedOf(ctx context.Context, kind retention.Kind) error {
	ages := p.limits.Different(kind)
	if len(ages) == 0 {
		return nil
	}

	var last int64
	if kind == retention.Completed {
		if depths := p.store.Snapshot().Depths; depths[job.Status(job.Completed)]+depths[job.Status(job.Returned)] == 0 {
			return nil // all other jobs would be read to find none, which can be a million dead letters
		}

		var err error
		if last, err = p.store.enqueuedBefore(ctx, p.now.Add(-ages[0])); err != nil {
			return err
		}
	}

	next, more := (place{}), true
	for more {
		var due []int64
		var err error
		if due, next, more, err = p.due(ctx, kind, p.now.Add(-ages[0]), next, last); err != nil {
			return err
		}

		if err := p.removeDue(ctx, kind, due); err != nil {
			return err
		}
	}

	return nil
}

// due reads the next page of jobs of a kind that ended before a time, and names
// those whose own time has come.
func (p *sweep) due(ctx context.Context, kind retention.Kind, before time.Time, after place, last int64) (
	due []int64, next place, more bool, err error,
) {
	where, at := ended(kind)

	query := `SELECT ` + at + `, seq, queue, type FROM jobs WHERE ` + where + ` AND ` + notAtSource + ` AND changed_at < $1
		AND (changed_at, seq) > ($2, $3) ORDER BY changed_at, seq LIMIT $4 + 0`
	args := []any{db.Micros(before), after.at, after.seq, duePage}
	if kind == retention.Completed {
		query = `SELECT ` + at + `, seq, queue, type FROM jobs WHERE ` + where + ` AND ` + notAtSource + `
			AND ` + at + ` < $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4 + 0`
		args = []any{db.Micros(before), after.seq, last, duePage}
	}

	type row struct {
		place
		queue, typ string
	}
	page, err := db.All(p.store.reader.In(ctx), query, func(r *row) []any { return []any{&r.at, &r.seq, &r.queue, &r.typ} }, args...)
	for _, r := range page {
		next = r.place
		if p.over(kind, r.queue, r.typ, db.FromMicros(r.at)) {
			due = append(due, r.seq)
		}
	}

	return due, next, len(page) == duePage, err
}

// over reports whether a job that ended at a time is older than it may be.
func (p *sweep) over(kind retention.Kind, queue, typ string, at time.Time) bool {
	age := p.limits.Age(kind, queue, typ)
	return age > 0 && at.Before(p.now.Add(-age))
}

// enqueuedBefore is the number of the newest job that was enqueued before a time.
// Jobs are numbered in the order of their enqueueing, so it is found by halving.
func (s *Store) enqueuedBefore(ctx context.Context, at time.Time) (int64, error) {
	const newest = `SELECT newest FROM revision`
	const query = `SELECT seq, enqueued_at FROM jobs WHERE seq BETWEEN $1 AND $2 ORDER BY seq LIMIT 1`
	src := s.reader.In(ctx)

	high, err := db.Value[int64](src, newest)
	low := int64(0)
	for low < high && err == nil {
		middle := low + (high-low+1)/2

		var seq, enqueued int64
		var found bool
		if found, err = db.Row(src, query, []any{&seq, &enqueued}, middle, high); found && enqueued < db.Micros(at) {
			low = seq
		} else {
			high = middle - 1
		}
	}

	return low, err
}

// removeDue removes jobs in as many steps as it takes.
func (p *sweep) removeDue(ctx context.Context, kind retention.Kind, due []int64) error {
	type step struct {
		looked int
		jobs   parts
	}
	for len(due) > 0 {
		these := due // the write may still run when its caller no longer waits for it

		done, err := db.Write(ctx, p.store.writer, heavyStep, func(t *db.Tx) (s step, err error) {
			s.jobs = parts{}
			for more := true; more; more = s.looked < len(these) && !p.store.writer.Waited() {
				some := these[s.looked:min(s.looked+dueChunk, len(these))]
				if err = p.removeSome(t, kind, some, s.jobs); err != nil {
					return s, err
				}

				s.looked += len(some)
			}

			return s, nil
		})
		if err != nil {
			return err
		}

		p.count(done.jobs)
		due = due[done.looked:]
	}

	return nil
}

// heavyStep is what a step counts for in the database's writer, which lets it take
// turns with everything smaller.
const heavyStep = 500

// removeSome removes those of the jobs whose time has still come.
func (p *sweep) removeSome(t *db.Tx, kind retention.Kind, seqs []int64, into parts) error {
	where, _ := ended(kind)
	query := `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1)) AND ` + where + `
		AND ` + notHeld + ` AND ` + notAtSource
	if kind == retention.DeadLetters {
		query += ` AND ` + notNewest
	}

	found, err := p.store.policies.Jobs(t, query, db.Numbers(seqs))
	if err != nil {
		return err
	}

	jobs := found[:0]
	for _, j := range found {
		at := j.ChangedAt
		if j.State == job.Returned && j.RunAt.After(at) {
			at = j.RunAt
		}

		if p.over(kind, j.Queue, j.Type, at) {
			jobs = append(jobs, j)
		}
	}

	removed, err := p.remove(t, kind, jobs)
	for part, n := range removed {
		into[part] += n
	}

	return err
}

// excess removes the oldest of our own dead letters that are more than there may be, up
// to the last that was announced.
func (p *sweep) excess(ctx context.Context) error {
	more := p.limits.Count > 0 && p.store.excess.end() != (place{})
	for more {
		removed, err := db.Write(ctx, p.store.writer, heavyStep, p.removeExcess)
		if err != nil {
			return fmt.Errorf("%s: %w", retention.OverCount, err)
		}

		p.count(removed)
		more = len(removed) > 0
	}

	return nil
}

func (p *sweep) removeExcess(t *db.Tx) (parts, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE ` + ownLetter + ` AND ` + notHeld + ` AND ` + notNewest + `
		AND (changed_at, seq) <= ($1, $2) ORDER BY changed_at, seq LIMIT $3 + 0`

	most := min(p.store.Counters.OwnDeadLetters(t)-p.limits.Count, dueChunk)
	if most <= 0 {
		return nil, nil
	}

	last := p.store.excess.end()

	jobs, err := p.store.policies.Jobs(t, query, last.at, last.seq, most)
	if err != nil {
		return nil, err
	}

	return p.remove(t, retention.OverCount, jobs)
}

// remove deletes jobs, counts them, and remembers that they were there.
func (p *sweep) remove(t *db.Tx, kind retention.Kind, jobs []job.Job) (parts, error) {
	if len(jobs) == 0 {
		return nil, nil
	}

	t.Grew(jobRows * len(jobs))

	removed := parts{}
	memory := db.NewBatch(5, `INSERT INTO removed_jobs (id, kind, enqueued_at, removed_at, until) VALUES `,
		` ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, enqueued_at = excluded.enqueued_at,
			removed_at = excluded.removed_at, until = excluded.until`)
	for _, j := range jobs {
		removed[retention.Part{Kind: kind, Queue: j.Queue}]++
		until := p.now.Add(p.limits.Memory(kind, j.Queue, j.Type))

		err := memory.Add(t, rows.IDBytes(j.ID), string(kind), db.Micros(j.EnqueuedAt), db.Micros(p.now), db.Micros(until))
		if err != nil {
			return nil, err
		}
	}

	sums := db.NewBatch(5, `INSERT INTO removals (kind, queue, n, audited, last_at) VALUES `, ` ON CONFLICT (kind, queue)
		DO UPDATE SET n = removals.n + excluded.n, audited = removals.audited + excluded.audited, last_at = excluded.last_at`)

	return removed, db.Steps(t, memory.Flush,
		func(t *db.Tx) error {
			return db.AddSums(t, sums, removed, func(part retention.Part, n int64) []any {
				audited := int64(0)
				if kind == retention.Trash { // each has an entry of its own
					audited = n
				}

				return []any{string(part.Kind), part.Queue, n, audited, db.Micros(p.now)}
			})
		},
		func(t *db.Tx) error { return p.store.remove(t, jobs) })
}

// items removes the items of operations that ended long ago.
func (p *sweep) items(ctx context.Context) (err error) {
	if age := p.limits.Ages[retention.DeadLetters]; age > 0 {
		p.done.Items, err = p.repeatedly(ctx, func(t *db.Tx) (int, error) {
			return p.store.Operations.PruneItems(t, p.now.Add(-age), pruneChunk)
		})
	}

	return err
}

// groups removes error groups to which no job belongs. It comes after the jobs.
func (p *sweep) groups(ctx context.Context) (err error) {
	if age := p.limits.Ages[retention.DeadLetters]; age > 0 {
		p.done.Groups, err = p.repeatedly(ctx, func(t *db.Tx) (int, error) { return p.store.Groups.Prune(t, p.now.Add(-age), pruneChunk) })
	}

	if err != nil {
		return err
	}

	crowd, err := p.repeatedly(ctx, func(t *db.Tx) (int, error) { return p.store.Groups.MakeRoom(t, p.now, pruneChunk) })
	p.done.Groups += crowd

	return err
}

// memories forgets jobs that were removed long ago.
func (p *sweep) memories(ctx context.Context) error {
	const forget = `DELETE FROM removed_jobs WHERE id IN (SELECT id FROM removed_jobs WHERE until < $1 ORDER BY until LIMIT $2 + 0)`
	_, err := p.repeatedly(ctx, func(t *db.Tx) (int, error) {
		n, err := t.Exec(forget, db.Micros(p.now), pruneChunk)
		return int(n), err
	})

	return err
}

// repeatedly removes in one transaction after the other, until one finds less
// than it may remove.
func (p *sweep) repeatedly(ctx context.Context, some func(*db.Tx) (int, error)) (total int, err error) {
	for {
		n, err := db.Write(ctx, p.store.writer, pruneChunk, some)
		if err != nil {
			return total, err
		}

		total += n
		if n < pruneChunk {
			return total, nil
		}
	}
}

// audit writes what was removed since the last entry into the audit log: this
// sweep, and an earlier one that was cut short.
func (p *sweep) audit(ctx context.Context) error {
	const query = `SELECT kind, queue, n - audited FROM removals WHERE n > audited`
	const update = `UPDATE removals SET audited = n WHERE n > audited`
	type row struct {
		retention.Part
		n int64
	}

	read := func(src db.Source) (retention.Pruned, error) {
		all, err := db.All(src, query, func(r *row) []any { return []any{(*string)(&r.Kind), &r.Queue, &r.n} })
		removed := retention.Pruned{Jobs: parts{}}
		for _, r := range all {
			removed.Jobs[r.Part] = r.n
		}

		return removed, err
	}
	if removed, err := read(p.store.reader.In(ctx)); err != nil || removed.Total() == 0 {
		return err
	}

	return p.store.writer.Do(ctx, 2, func(t *db.Tx) error {
		removed, err := read(t)
		if err != nil {
			return err
		}

		entry := audit.Entry{At: p.now, Actor: retentionActor(), Action: "retention.sweep", Count: removed.Total(), After: removed.String()}

		return db.Steps(t, db.Any(update), func(t *db.Tx) error { return p.store.Accounts.Log(t, entry) })
	})
}

// retentionActor is who removes what is kept for its time only: no user has a
// name of two words.
func retentionActor() audit.Actor { return audit.Actor{Name: "the retention"} }

// Removals tells what retention removed since the beginning, by kind and queue.
func (s *Store) Removals(ctx context.Context) ([]retention.Removal, error) {
	const query = `SELECT kind, queue, n, last_at FROM removals ORDER BY kind, queue`
	return db.All(s.reader.In(ctx), query, func(r *retention.Removal) []any {
		return []any{(*string)(&r.Kind), &r.Queue, &r.Jobs, db.Time(&r.Last)}
	})
}
