package store

import (
	"context"
	"database/sql"
	"time"

	"redrive/internal/job"
	"redrive/internal/queues"
)

// totalColumns are the counters in the order in which totalFields lists them.
const totalColumns = `succeeded, failed, requeued, failed_permanently, dlq_failed, replayed`

func totalFields(t *job.Totals) []any {
	return []any{&t.Succeeded, &t.Failed, &t.Requeued, &t.FailedPermanently, &t.DLQFailed, &t.Replayed}
}

// Tallies returns the counters by queue and type. Past the first thousand
// queues or types the rest is counted under "other".
func (s *Store) Tallies(ctx context.Context) ([]queues.Tally, error) {
	var all []queues.Tally
	err := tallies(s.reading(ctx), func(t queues.Tally) { all = append(all, t) })
	return all, err
}

func tallies(src source, each func(queues.Tally)) error {
	const query = `SELECT queue, type, ` + totalColumns + ` FROM counters ORDER BY queue, type`
	return src.query(query, func(rows *sql.Rows) error {
		var t queues.Tally
		err := rows.Scan(append([]any{&t.Queue, &t.Type}, totalFields(&t.Totals)...)...)
		each(t)
		return err
	})
}

// lastHour is the number of minutes that pages draw.
const lastHour = 60

// LastHour returns the counters of the sixty minutes that end with the one of
// now, the oldest first, over all queues.
func (s *Store) LastHour(ctx context.Context, now time.Time) ([]job.Totals, error) {
	all := make([]job.Totals, lastHour)
	err := eachMinute(s.reading(ctx), now, func(_ string, i int, t job.Totals) { all[i] = all[i].Add(t) })
	return all, err
}

// eachMinute calls each with the counters of a queue in the i-th of the sixty
// minutes up to now.
func eachMinute(src source, now time.Time, each func(queue string, i int, t job.Totals)) error {
	const query = `SELECT minute, queue, ` + totalColumns + ` FROM minutes WHERE minute BETWEEN $1 AND $2`
	last := micros(now) / microsPerMinute
	first := last - lastHour + 1
	return src.query(query, func(rows *sql.Rows) error {
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

// Queues describes every queue that ever had a job or was paused, by name, as
// of one commit.
func (s *Store) Queues(ctx context.Context, now time.Time) ([]queues.Info, error) {
	var all []queues.Info
	err := s.consistently(ctx, func(src source) (err error) {
		if all, err = queueInfos(src, now); err != nil {
			return err
		}
		byName := map[string]*queues.Info{}
		for i := range all {
			byName[all[i].Name] = &all[i]
		}
		if err := addDepths(src, byName); err != nil {
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
	})
	return all, err
}

// queueInfos lists the queues, each with its pause and the time since when its
// next job could run: of the available ones the next that a claim takes,
// otherwise one that has come due.
func queueInfos(src source, now time.Time) ([]queues.Info, error) {
	const query = `SELECT name, coalesce(q.paused_at, 0), coalesce(q.paused_by, ''), coalesce(
			(SELECT run_at FROM jobs WHERE queue = name AND state = 'available' AND held = 0 ORDER BY priority DESC, run_at, seq LIMIT 1),
			(SELECT min(run_at) FROM jobs WHERE queue = name AND shelf IN ('scheduled', 'retryable') AND shelf = 'scheduled' AND run_at <= $1),
			(SELECT min(run_at) FROM jobs WHERE queue = name AND shelf IN ('scheduled', 'retryable') AND shelf = 'retryable' AND run_at <= $1), 0)
		FROM (SELECT queue AS name FROM depths UNION SELECT name FROM queues) AS known LEFT JOIN queues AS q USING (name)
		ORDER BY name`
	var all []queues.Info
	err := src.query(query, func(rows *sql.Rows) error {
		q := queues.Info{Depths: job.Depths{}, LastHour: make([]job.Totals, lastHour)}
		var paused, oldest int64
		err := rows.Scan(&q.Name, &paused, &q.PausedBy, &oldest)
		q.PausedAt, q.Oldest = fromMicros(paused), fromMicros(oldest)
		all = append(all, q)
		return err
	}, micros(now))
	return all, err
}

func addDepths(src source, byName map[string]*queues.Info) error {
	const query = `SELECT queue, status, n FROM depths`
	return src.query(query, func(rows *sql.Rows) error {
		var queue, status string
		var n int64
		err := rows.Scan(&queue, &status, &n)
		if q := byName[queue]; q != nil {
			q.Depths[job.Status(status)] = n
		}
		return err
	})
}
