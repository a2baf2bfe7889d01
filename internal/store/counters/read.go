package counters

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/store/db"
)

// Tallies returns the counters by queue and type. Past the first thousand
// queues or types the rest is counted under "other".
func (b *Book) Tallies(ctx context.Context) ([]queues.Tally, error) {
	var all []queues.Tally
	err := tallies(b.reader.In(ctx), func(t queues.Tally) { all = append(all, t) })
	return all, err
}

func tallies(src db.Source, each func(queues.Tally)) error {
	const query = `SELECT queue, type, ` + totalColumns + ` FROM counters ORDER BY queue, type`
	return src.Query(query, func(rows *sql.Rows) error {
		var t queues.Tally
		err := rows.Scan(append([]any{&t.Queue, &t.Type}, totalFields(&t.Totals)...)...)
		each(t)
		return err
	})
}

// Held tells, by queue and type, how many jobs wait for a handler.
func (b *Book) Held(ctx context.Context) ([]queues.Held, error) {
	const query = `SELECT queue, type, n FROM held WHERE n > 0 ORDER BY queue, type`
	var held []queues.Held
	err := b.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		var h queues.Held
		err := rows.Scan(&h.Queue, &h.Type, &h.Count)
		held = append(held, h)
		return err
	})
	return held, err
}

// lastHour is the number of minutes that pages draw.
const lastHour = 60

// LastHour returns the counters of the sixty minutes that end with the one of
// now, the oldest first, over all queues.
func (b *Book) LastHour(ctx context.Context, now time.Time) ([]job.Totals, error) {
	all := make([]job.Totals, lastHour)
	err := eachMinute(b.reader.In(ctx), now, func(_ string, i int, t job.Totals) { all[i] = all[i].Add(t) })
	return all, err
}

// eachMinute calls each with the counters of a queue in the i-th of the sixty
// minutes up to now.
func eachMinute(src db.Source, now time.Time, each func(queue string, i int, t job.Totals)) error {
	const query = `SELECT minute, queue, ` + totalColumns + ` FROM minutes WHERE minute BETWEEN $1 AND $2`
	last := db.Micros(now) / db.MicrosPerMinute
	first := last - lastHour + 1
	return src.Query(query, func(rows *sql.Rows) error {
		var minute int64
		var queue string
		var t job.Totals
		if err := rows.Scan(append([]any{&minute, &queue}, totalFields(&t)...)...); err != nil {
			return err
		}
		each(queue, int(minute-first), t)
		return nil
	}, first, last)
}

// Series returns the counters of a queue and a type over a span of time that
// ends now, the oldest first. An empty name means all of them; a type can be a
// prefix such as "email.*". Past the first thousand types the rest has no series
// of its own. It gives up, with context.DeadlineExceeded, when that takes too
// long.
func (b *Book) Series(ctx context.Context, now time.Time, queue, typ string, scale queues.Scale) ([]job.Totals, error) {
	const query = `SELECT (minute - CAST($1 AS BIGINT)) / CAST($2 AS BIGINT) AS step, sum(succeeded), sum(failed), sum(requeued),
			sum(failed_permanently), sum(dlq_failed), sum(replayed)
		FROM minutes WHERE minute BETWEEN $1 AND $3 AND ($4 = '' OR queue = $4) AND ($5 = '' OR type = $5)
			AND ($6 = '' OR type >= $6 AND type < $7)
		GROUP BY step`
	prefix, beyond := "", ""
	if name, ok := strings.CutSuffix(typ, ".*"); ok {
		typ, prefix, beyond = "", name+".", name+"/" // '/' follows '.'
	}
	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()
	all := make([]job.Totals, scale.Steps)
	first, step := db.Micros(scale.First(now))/db.MicrosPerMinute, int64(scale.Step/time.Minute)
	err := b.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		var i int
		var t job.Totals
		err := rows.Scan(append([]any{&i}, totalFields(&t)...)...)
		all[i] = t
		return err
	}, first, step, db.Micros(now)/db.MicrosPerMinute, queue, typ, prefix, beyond)
	return all, db.TimedOut(ctx, err)
}

// Queues describes every queue that ever had a job or was paused, by name, as
// of one commit.
func (b *Book) Queues(ctx context.Context, now time.Time) ([]queues.Info, error) {
	var all []queues.Info
	err := b.reader.Consistently(ctx, func(src db.Source) (err error) {
		if all, err = queueInfos(src, now); err != nil {
			return err
		}
		byName := map[string]*queues.Info{}
		for i := range all {
			byName[all[i].Name] = &all[i]
		}
		return addCounts(src, now, byName)
	})
	return all, err
}

// queueInfos lists the queues, each with its pause and the time since when its
// next job could run: of the available ones the next that a claim takes,
// otherwise one that has come due.
func queueInfos(src db.Source, now time.Time) ([]queues.Info, error) {
	const query = `SELECT name, coalesce(q.paused_at, 0), coalesce(q.paused_by, ''), coalesce(
			(SELECT run_at FROM jobs WHERE queue = name AND state = 'available' AND held = 0 ORDER BY priority DESC, run_at, seq LIMIT 1),
			(SELECT min(run_at) FROM jobs WHERE queue = name AND shelf IN ('scheduled', 'retryable') AND shelf = 'scheduled' AND run_at <= $1),
			(SELECT min(run_at) FROM jobs WHERE queue = name AND shelf IN ('scheduled', 'retryable') AND shelf = 'retryable' AND run_at <= $1), 0)
		FROM (SELECT queue AS name FROM depths UNION SELECT name FROM queues) AS known LEFT JOIN queues AS q USING (name)
		ORDER BY name`
	var all []queues.Info
	err := src.Query(query, func(rows *sql.Rows) error {
		q := queues.Info{Depths: job.Depths{}, LastHour: make([]job.Totals, lastHour)}
		var paused, oldest int64
		err := rows.Scan(&q.Name, &paused, &q.PausedBy, &oldest)
		q.PausedAt, q.Oldest = db.FromMicros(paused), db.FromMicros(oldest)
		all = append(all, q)
		return err
	}, db.Micros(now))
	return all, err
}

// addCounts gives queues their depths and counters.
func addCounts(src db.Source, now time.Time, byName map[string]*queues.Info) error {
	err := eachDepth(src, func(k depthKey, n int64) {
		if q := byName[k.queue]; q != nil {
			q.Depths[k.status] = n
		}
	})
	if err != nil {
		return err
	}
	err = eachMinute(src, now, func(queue string, i int, t job.Totals) {
		if q := byName[queue]; q != nil {
			q.LastHour[i] = q.LastHour[i].Add(t)
		}
	})
	if err != nil {
		return err
	}
	return tallies(src, func(t queues.Tally) {
		if q := byName[t.Queue]; q != nil {
			q.Totals = q.Totals.Add(t.Totals)
		}
	})
}
