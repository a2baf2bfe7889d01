package counters

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/stats"
	"redrive/internal/store/clause"
	"redrive/internal/store/db"
)

// Tallies returns the counters of each queue and type, in their order. Queues and types without
// counters of their own are in those of "other". Queues that were removed are left out.
func (p *Projection) Tallies(ctx context.Context) ([]queues.Tally, error) {
	const query = `SELECT queue, type, ` + totalColumns + ` FROM counters WHERE queue <> '' ORDER BY queue, type`
	return db.All(p.reader.In(ctx), query, func(t *queues.Tally) []any { return totalFields(&t.Totals, &t.Queue, &t.Type) })
}

// Held returns how many jobs of a queue wait for a handler, by type; for "", those of all
// queues, by queue and type. The largest count comes first, and there are at most limit.
func (p *Projection) Held(ctx context.Context, queue string, limit int) ([]queues.Held, error) {
	var where clause.Where
	where.Add("n > 0")
	where.Equal("queue", queue)
	last, args := where.Limit(limit)
	query := `SELECT queue, type, n FROM held` + where.String() + ` ORDER BY n DESC, queue, type` + last

	return db.All(p.reader.In(ctx), query, func(h *queues.Held) []any { return []any{&h.Queue, &h.Type, &h.Count} }, args...)
}

// HeldTypes returns the types of all jobs that wait for a handler.
func (p *Projection) HeldTypes(ctx context.Context) ([]string, error) {
	const query = `SELECT DISTINCT type FROM held WHERE n > 0`
	return db.All(p.reader.In(ctx), query, func(typ *string) []any { return []any{typ} })
}

// Queues describes the queues with these names, in the order of their names, as of one commit.
// Queues that are not known are left out. The cost depends only on these queues.
func (p *Projection) Queues(ctx context.Context, now time.Time, names []string) ([]queues.Info, error) {
	var all []queues.Info
	err := p.reader.Consistently(ctx, func(src db.Source) (err error) {
		these := db.Texts(names)

		all, err = queueInfos(src, now, p.fronts(names))
		if err != nil {
			return err
		}

		byName := map[string]*queues.Info{}
		for i := range all {
			all[i].Source = job.SourceOf(all[i].Name)
			byName[all[i].Name] = &all[i]
		}

		return addCounts(src, now, these, byName)
	})

	return all, err
}

// fronts are where the lists of queues begin: before these places no job waits. There is a row of nine
// values for each priority of a queue that is known to have jobs, and else one for all priorities.
func (p *Projection) fronts(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)

	rows := [][]any{}
	for _, name := range slices.Compact(names) {
		scheduled, retryable := p.waiting.Due(name, job.Scheduled), p.waiting.Due(name, job.Retryable)

		available, known := p.waiting.Available(name)
		if len(available) == 0 {
			available = []Front{{Priority: math.MaxInt}} // no job has this priority
		}

		for _, front := range available {
			rows = append(rows, []any{
				name, front.Priority, front.RunAt, front.Seq, !known,
				scheduled.RunAt, scheduled.Seq, retryable.RunAt, retryable.Seq,
			})
		}
	}

	return db.Rows(rows)
}

// queueInfos returns those of the queues that are known, each with its pause, and with the time
// from which on its next job could have run. That is the available job that a claim takes next, or
// else a scheduled or retryable job that has come due.
func queueInfos(src db.Source, now time.Time, fronts string) (all []queues.Info, err error) {
	const available = `(SELECT run_at FROM jobs WHERE queue = name AND state = 'available' AND held = 0 AND `
	const due = `(SELECT run_at FROM jobs WHERE queue = name AND run_at <= $2 AND list_state IN ('scheduled', 'retryable') AND list_state = `
	const query = `SELECT name, coalesce(q.paused_at, 0), coalesce(q.paused_by, ''), coalesce(
			` + available + `priority = front AND (run_at, seq) >= (front_at, front_seq) ORDER BY run_at, seq LIMIT 1),
			CASE WHEN below THEN ` + available + `priority < front ORDER BY priority DESC, run_at, seq LIMIT 1) END, 0), coalesce(
			` + due + `'scheduled' AND (run_at, seq) >= (scheduled_at, scheduled_seq) ORDER BY run_at, seq LIMIT 1),
			` + due + `'retryable' AND (run_at, seq) >= (retryable_at, retryable_seq) ORDER BY run_at, seq LIMIT 1), 0)
		FROM (SELECT value ->> 0 AS name, CAST(value ->> 1 AS BIGINT) AS front,
			CAST(value ->> 2 AS BIGINT) AS front_at, CAST(value ->> 3 AS BIGINT) AS front_seq, CAST(value ->> 4 AS BOOLEAN) AS below,
			CAST(value ->> 5 AS BIGINT) AS scheduled_at, CAST(value ->> 6 AS BIGINT) AS scheduled_seq,
			CAST(value ->> 7 AS BIGINT) AS retryable_at, CAST(value ->> 8 AS BIGINT) AS retryable_seq
			FROM json_each($1)) AS these LEFT JOIN queues AS q USING (name)
		WHERE q.name IS NOT NULL OR EXISTS (SELECT 1 FROM depths WHERE queue = these.name) ORDER BY name, front DESC`

	var q queues.Info
	var next, nextDue time.Time
	var waits bool // an available job of the queue was found
	fields := []any{&q.Name, db.Time(&q.PausedAt), &q.PausedBy, db.Time(&next), db.Time(&nextDue)}

	err = src.Query(query, func(row *sql.Rows) error {
		err := row.Scan(fields...)
		if err != nil {
			return err
		}

		// The rows of a queue follow each other, that of its highest priority first.
		last := len(all) - 1
		if last < 0 || all[last].Name != q.Name {
			q.Oldest, q.Depths, q.LastHour = nextDue, stats.Depths{}, make([]stats.Totals, lastHour)
			all, last = append(all, q), last+1
			waits = false
		}

		if !waits && !next.IsZero() {
			all[last].Oldest, waits = next, true
		}

		return nil
	}, fronts, db.Micros(now))

	return all, err
}

// addCounts fills in how many jobs queues have, and their counters.
func addCounts(src db.Source, now time.Time, names db.Texts, byName map[string]*queues.Info) error {
	const (
		depths  = `SELECT queue, status, n FROM depths WHERE queue IN (SELECT value FROM json_each($1))`
		minutes = `SELECT minute, queue, ` + totalColumns + ` FROM minutes
			WHERE minute BETWEEN $2 AND $3 AND queue IN (SELECT value FROM json_each($1))`
		totals = `SELECT queue, ` + totalColumns + ` FROM counters WHERE queue IN (SELECT value FROM json_each($1))`
	)

	// The jobs: a row for each queue and status, such as mail, dead_letter, 12.
	found, err := db.All(src, depths, func(d *depth) []any { return []any{&d.queue, &d.status, &d.n} }, names)
	for _, d := range found {
		if q := byName[d.queue]; q != nil {
			q.Depths[d.status] = d.n
		}
	}

	if err != nil {
		return err
	}

	// The last hour: a row for each minute, queue and type. Add up the types.
	first := firstMinute(now)

	err = src.Query(minutes, func(rows *sql.Rows) error {
		var minute int64
		var queue string

		var t stats.Totals
		err := rows.Scan(totalFields(&t, &minute, &queue)...)
		if q := byName[queue]; q != nil {
			q.LastHour[minute-first] = q.LastHour[minute-first].Add(t)
		}

		return err
	}, names, first, first+lastHour-1)
	if err != nil {
		return err
	}

	// The totals: a row for each queue and type. Add up the types.
	all, err := db.All(src, totals, func(t *queues.Tally) []any { return totalFields(&t.Totals, &t.Queue) }, names)
	for _, t := range all {
		if q := byName[t.Queue]; q != nil {
			q.Totals = q.Totals.Add(t.Totals)
		}
	}

	return err
}

// PausedQueues returns the names of at most limit paused queues, the one that was paused last
// first.
func (p *Projection) PausedQueues(ctx context.Context, limit int) ([]string, error) {
	const query = `SELECT name FROM queues WHERE paused_at <> 0 ORDER BY paused_at DESC, name LIMIT $1 + 0`
	return db.All(p.reader.In(ctx), query, func(name *string) []any { return []any{name} }, limit)
}
