// Package sweep removes jobs some time after they ended, and says beforehand which ones. A
// forecast counts what will be removed soon ([Sweeper.Forecast]); dead letters that are too
// many are removed only after it has announced them, in a removal notice that the database
// keeps (notice.go). Both go by a clock that does not believe every jump of the machine's
// ([Sweeper.SetClock]).
//
// A pass ([Sweeper.Prune]) looks with a reader for jobs whose time has come, page by page; the
// writer removes them in small steps and looks again whether nothing has happened to them
// meanwhile. A step ends as soon as another caller waits for the writer.
//
// Each step counts what it removes in the table removals, and remembers the ids in
// removed_jobs. The audit log has one entry for each pass, with everything that
// was removed since the last one.
package sweep

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/stats"
	"redrive/internal/store/accounts"
	"redrive/internal/store/core"
	"redrive/internal/store/counters"
	"redrive/internal/store/db"
	"redrive/internal/store/groups"
	"redrive/internal/store/operations"
	"redrive/internal/store/rows"
)

// Options are the parts of the store with which a sweeper works.
type Options struct {
	Core     *core.Core
	Writer   *db.Writer
	Reader   *db.Reader
	Policies *rows.Policies

	Counters   *counters.Projection
	Groups     *groups.Projection
	Operations *operations.Projection
	Accounts   *accounts.Projection

	// Depths tells how many jobs have which status, as of the last commit.
	Depths func() stats.Depths
}

// Sweeper forecasts and removes. It takes part in every transaction: see notice.go.
type Sweeper struct {
	core     *core.Core
	writer   *db.Writer
	reader   *db.Reader
	policies *rows.Policies

	counters   *counters.Projection
	groups     *groups.Projection
	operations *operations.Projection
	audit      *accounts.Projection
	depths     func() stats.Depths

	arrived  *db.Slot[place]
	forecast atomic.Pointer[retention.Forecast]
	clock    atomic.Pointer[retention.Clock]
	maxSoon  int64 // retention.MaxSoon
}

// New returns the sweeper of a store.
func New(o Options) *Sweeper {
	return &Sweeper{
		core: o.Core, writer: o.Writer, reader: o.Reader, policies: o.Policies,
		counters: o.Counters, groups: o.Groups, operations: o.Operations, audit: o.Accounts, depths: o.Depths,
		arrived: db.NewSlot(func() *place { return new(farthest) }), maxSoon: retention.MaxSoon,
	}
}

// place is that of a job among others, by a time and its number.
type place struct{ at, seq int64 }

// Bounds of a pass.
const (
	duePage    = 5000 // rows that are read at once
	jobRows    = 4    // that the removal of a job changes, roughly
	dueChunk   = 50   // jobs that a step removes before it looks whether another caller waits
	pruneChunk = 500  // rows that one transaction removes of what is not a job
)

// parts counts jobs that were removed.
type parts map[retention.Part]int64

// pass is one pass of retention through the jobs.
type pass struct {
	*Sweeper
	now    time.Time
	limits retention.Limits
	done   retention.Pruned
}

func (p *pass) count(removed parts) {
	for part, n := range removed {
		p.done.Jobs[part] += n
	}
}

// Prune removes what was kept for its time: jobs that ended, dead letters, the
// oldest of those that are more than there may be and were announced as such by the
// newest forecast, and discarded jobs in the trash,
// each with everything that is known of it; the items of operations that ended as
// long ago as dead letters are kept, whose counts stay; and error groups in which
// nothing failed for so long and to which no job belongs, sooner when there is
// hardly room for new ones. What an operation under way needs stays, and so do
// refused dead letters and the newest dead letter. What is still at a source, or is on
// its way there, is not removed. Other writers come in between.
func (s *Sweeper) Prune(ctx context.Context, now time.Time, limits retention.Limits) (retention.Pruned, error) {
	p := &pass{Sweeper: s, now: now, limits: limits, done: retention.Pruned{Jobs: parts{}}}

	since, err := s.retentionSince(ctx)
	if err != nil {
		return p.done, err
	}

	if now.Before(since) {
		p.limits = limits.WithoutDefaults()
	}

	steps := []func(context.Context) error{
		p.overAge, p.overCount, p.purgeTrash, p.operationItems, p.emptyGroups, p.tombstones, p.writeAudit,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return p.done, fmt.Errorf("prune what is kept for its time only: %w", err)
		}
	}

	return p.done, nil
}

// retentionSince is from when on the defaults apply; zero when they always did.
func (s *Sweeper) retentionSince(ctx context.Context) (since time.Time, err error) {
	const query = `SELECT since FROM retention_notice`

	_, err = db.Row(s.reader.In(ctx), query, []any{db.Time(&since)})
	if !since.IsZero() {
		since = since.Add(retention.Notice)
	}

	return since, db.Wrap(err, "read when retention began")
}

// remove deletes jobs, counts them, and remembers that they were there.
func (p *pass) remove(t *db.Tx, kind retention.Kind, jobs []job.Job) (parts, error) {
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
		func(t *db.Tx) error { return p.core.Remove(t, jobs) })
}

// repeatedly removes in one transaction after the other, until one finds less
// than it may remove.
func (p *pass) repeatedly(ctx context.Context, some func(*db.Tx) (int, error)) (total int, err error) {
	for {
		n, err := db.Write(ctx, p.writer, pruneChunk, some)
		if err != nil {
			return total, err
		}

		total += n
		if n < pruneChunk {
			return total, nil
		}
	}
}
