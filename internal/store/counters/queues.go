package counters

import (
	"context"
	"database/sql"
	"time"

	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/stats"
	"redrive/internal/store/clause"
	"redrive/internal/store/db"
)

// Tallies returns the counters by queue and type, but for queues that were
// removed. Past the first thousand queues or types the rest is counted under
// "other".
func (p *Projection) Tallies(ctx context.Context) ([]queues.Tally, error) {
	const query = `SELECT queue, type, ` + totalColumns + ` FROM counters WHERE queue <> '' ORDER BY queue, type`
	return db.All(p.reader.In(ctx), query, func(t *queues.Tally) []any { return totalFields(&t.Totals, &t.Queue, &t.Type) })
}

// Held tells, by queue and type, how many jobs wait for a handler, the most
// first: of one queue, or of all for an empty name. It tells no more than limit.
func (p *Projection) Held(ctx context.Context, queue string, limit int) ([]queues.Held, error) {
	var where clause.Where
	where.Add("n > 0")
	where.Equal("queue", queue)
	last, args := where.Limit(limit)
	query := `SELECT queue, type, n FROM held` + where.String() + ` ORDER BY n DESC, queue, type` + last

	return db.All(p.reader.In(ctx), query, func(h *queues.Held) []any { return []any{&h.Queue, &h.Type, &h.Count} }, args...)
}

// HeldTypes are the types of the jobs that wait for a handler.
func (p *Projection) HeldTypes(ctx context.Context) ([]string, error) {
	const query = `SELECT DISTINCT type FROM held WHERE n > 0`
	return db.All(p.reader.In(ctx), query, func(typ *string) []any { return []any{typ} })
}

// Queues describes some queues, by name, as of one commit. It costs what these
// have; those that are not known are left out.
func (p *Projection) Queues(ctx context.Context, now time.Time, names []string) ([]queues.Info, error) {
	var all []queues.Info
	err := p.reader.Consistently(ctx, func(src db.Source) (err error) {
		these := db.Texts(names)

		all, err = queueInfos(src, now, these)
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

// queueInfos lists the queues, each with its pause and the time since when its
// next job could run: of the available ones the next that a claim takes,
// otherwise one that has come due.
func queueInfos(src db.Source, now time.Time, names db.Texts) ([]queues.Info, error) {
	const due = `(SELECT min(run_at) FROM jobs
			WHERE queue = name AND list_state IN ('scheduled', 'retryable') AND run_at <= $2 AND list_state = `
	const query = `SELECT name, coalesce(q.paused_at, 0), coalesce(q.paused_by, ''), coalesce(
			(SELECT run_at FROM jobs WHERE queue = name AND state = 'available' AND held = 0 ORDER BY priority DESC, run_at, seq LIMIT 1),
			` + due + `'scheduled'), ` + due + `'retryable'), 0)
		FROM (SELECT DISTINCT value AS name FROM json_each($1)) AS these LEFT JOIN queues AS q USING (name)
		WHERE q.name IS NOT NULL OR EXISTS (SELECT 1 FROM depths WHERE queue = these.name) ORDER BY name`

	return db.All(src, query, func(q *queues.Info) []any {
		q.Depths, q.LastHour = stats.Depths{}, make([]stats.Totals, lastHour)
		return []any{&q.Name, db.Time(&q.PausedAt), &q.PausedBy, db.Time(&q.Oldest)}
	}, names, db.Micros(now))
}

// addCounts gives queues their depths and counters.
func addCounts(src db.Source, now time.Time, names db.Texts, byName map[string]*queues.Info) error {
	const (
		depths  = `SELECT queue, status, n FROM depths WHERE queue IN (SELECT value FROM json_each($1))`
		minutes = `SELECT minute, queue, ` + totalColumns + ` FROM minutes
			WHERE minute BETWEEN $2 AND $3 AND queue IN (SELECT value FROM json_each($1))`
		totals = `SELECT queue, ` + totalColumns + ` FROM counters WHERE queue IN (SELECT value FROM json_each($1))`
	)

	// Depths: a row for each queue and status, such as mail, dead_letter, 12.
	found, err := db.All(src, depths, func(d *depth) []any { return []any{&d.queue, &d.status, &d.n} }, names)
	for _, d := range found {
		if q := byName[d.queue]; q != nil {
			q.Depths[d.status] = d.n
		}
	}

	if err != nil {
		return err
	}

	// The last hour: the rows of a minute are one for each type, and add up.
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

	// Totals: one row for each type again.
	all, err := db.All(src, totals, func(t *queues.Tally) []any { return totalFields(&t.Totals, &t.Queue) }, names)
	for _, t := range all {
		if q := byName[t.Queue]; q != nil {
			q.Totals = q.Totals.Add(t.Totals)
		}
	}

	return err
}

// PausedQueues names the queues that are paused, the last ones that were first,
// no more than limit.
func (p *Projection) PausedQueues(ctx context.Context, limit int) ([]string, error) {
	const query = `SELECT name FROM queues WHERE paused_at <> 0 ORDER BY paused_at DESC, name LIMIT $1 + 0`
	return db.All(p.reader.In(ctx), query, func(name *string) []any { return []any{name} }, limit)
}
